// A scan by a regular expression, one that processes share, one that begins at a key; every key changed; dump and load.
#include <cstdio>
#include <hashmere.hpp>
#include <hashmere/dump.hpp>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

using hashmere::change, hashmere::filter;

int main() {
    constexpr std::uint32_t parts = 4;
    hashmere::store store("sample-scan");
    store.clear();
    for (int n = 0; n < 1000; n++) store.set("user:" + std::to_string(n), std::to_string(n));

    int sevens = 0;
    for (const auto &pair : store.scan(filter().regex("^user:.*7$"))) sevens += pair.key.back() == '7';
    std::cout << sevens << " of " << store.size() << " keys end in 7\n";

    for (std::uint32_t part = 0; part < parts; part++) {
        if (fork() == 0) { // the child goes on with the open store
            auto own = store.scan(filter().prefix("user:").part(part, parts).keys_only());
            while (own.next()) store.incr("seen", 1, hashmere::counter(1));
            _exit(0);
        }
    }
    while (wait(nullptr) > 0) {
    }
    std::cout << parts << " processes saw " << store.take("seen").value() << " keys\n";

    const auto twice = [](const hashmere::pair &old) { return change::set(std::to_string(2 * std::stoi(std::string(old.value)))); };
    const auto changed = store.update_each({}, twice);
    std::cout << changed << " keys changed, user:7 is " << store.get("user:7").value() << " now\n";

    auto rest = store.scan({}, store.cursor_of("user:7").value());
    std::cout << "a scan from user:7 begins with " << rest.next()->key << '\n';

    const std::string file = "/tmp/sample-scan-" + std::to_string(getpid()) + ".jsonl";
    const auto dumped = hashmere::dump(store, file);
    store.clear();
    std::cout << dumped << " records dumped, " << hashmere::load(store, file) << " loaded\n";
    std::remove(file.c_str());
    store.close();
    hashmere::store::remove("sample-scan");
}
