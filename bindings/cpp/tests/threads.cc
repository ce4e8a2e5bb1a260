// One store, many threads and a forked child.
#include "test.hpp"

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static constexpr int threads = 4, steps = 2000;

static void work(hashmere::store &store, char mark) {
    for (int i = 0; i < steps; i++) {
        store.incr("hits", 1, hashmere::counter(1));
        store.set("block", std::string(3000, static_cast<char>(mark + i % 8)));
        const auto view = store.view("block");
        CHECK(view->bytes().find_first_not_of(view->bytes()[0]) == std::string::npos);
        const std::string copy = *store.get("block");
        CHECK(copy.find_first_not_of(copy[0]) == std::string::npos);
        store.update_with("sum", [](auto old) {
            return hashmere::change::set(std::to_string(old ? std::stoi(std::string(old->value)) + 1 : 1));
        });
    }
}

int main() {
    auto store = new_store("threads");
    std::vector<std::thread> crew;
    for (int i = 0; i < threads; i++) crew.emplace_back([&store, i] { work(store, static_cast<char>('a' + i)); });
    for (auto &thread : crew) thread.join();
    CHECK(store.get("hits") == std::to_string(threads * steps) && store.get("sum") == store.get("hits"));

    const pid_t child = fork();
    if (child == 0) {
        work(store, 'p');
        store.close();
        _exit(0);
    }
    work(store, 'q');
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(store.get("hits") == std::to_string((threads + 2) * steps) && store.get("sum") == store.get("hits"));
    CHECK(store.check().is_clean());
}
