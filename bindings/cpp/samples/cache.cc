// A cache: values with a time to live, in a file that never grows beyond its size.
#include <hashmere.hpp>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

static const char *yes(bool is) {
    return is ? "yes" : "no";
}

int main() {
    constexpr std::uint64_t max_bytes = 4 << 20;
    hashmere::store store("sample-cache", hashmere::options().cache().max_bytes(max_bytes));
    store.clear();

    store.set("session:1", "Ada", hashmere::attributes().flags(7).after(1min));
    const auto left = store.ttl("session:1").value();
    std::cout << "session:1 lives for less than a minute: " << yes(left > 0ms && left <= 1min) << '\n';

    store.set("session:2", "Grace", hashmere::attributes().after(20ms));
    std::this_thread::sleep_for(40ms);
    std::cout << "session:2 is gone after its time: " << yes(!store.contains("session:2")) << '\n';

    store.touch("session:1", hashmere::expiry::after(10min));
    std::cout << "session:1 was touched, flags " << store.metadata("session:1")->flags
              << ", lives for more than a minute: " << yes(store.ttl("session:1").value() > 1min) << '\n';

    const std::string page(1000, '.');
    for (int i = 1; i <= 20000; i++) store.set("page:" + std::to_string(i), page);
    std::cout << "after 20000 pages the file has at most 4 MiB: " << yes(store.stats().bytes_file <= max_bytes) << '\n';
    std::cout << "the last page is there, the first made room: "
              << yes(store.contains("page:20000") && !store.contains("page:1")) << '\n';

    store.close();
    hashmere::store::remove("sample-cache");
}
