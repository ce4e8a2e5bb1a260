// Several processes count in one store, and share something that the last of them removes.
#include <hashmere.hpp>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

int main() {
    constexpr int processes = 4, steps = 1000;
    hashmere::store store("sample-counters");
    store.clear();

    store.inc_ref("shared", processes);
    for (int i = 0; i < processes; i++) {
        if (fork() == 0) { // the child goes on with the open store
            for (int step = 0; step < steps; step++) store.incr("hits", 1, hashmere::counter(1));
            store.dec_ref("shared");
            _exit(0);
        }
    }
    while (wait(nullptr) > 0) {
    }

    std::cout << processes << " processes counted to " << store.get("hits").value() << '\n';
    std::cout << "the last of " << processes << " references is gone: " << (store.contains("shared") ? "no" : "yes")
              << '\n';
    store.close();
    hashmere::store::remove("sample-counters");
}
