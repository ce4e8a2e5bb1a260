// What happens to the keys of a store, followed by a consumer that stops and resumes.
#include <hashmere/feed.hpp>
#include <hashmere/transaction.hpp>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

constexpr int changes = 500;
using hashmere::feed_kind;

void show(const hashmere::feed_event &event) {
    static const char *const reasons[] = {"asked", "gone", "other feed", "gap"};
    static const char *const operations[] = {"read", "set", "delete", "touch", "evict", "expire"};
    switch (event.kind()) {
    case feed_kind::reset: std::cout << "reset: " << reasons[static_cast<int>(event.reason())] << '\n'; break;
    case feed_kind::synced: std::cout << "synced\n"; break;
    case feed_kind::clear: std::cout << "clear\n"; break;
    default:
        if (const auto part = event.transaction(); part && part->index == 0)
            std::cout << "in a transaction, " << part->len << " of it:\n";
        std::cout << operations[static_cast<int>(event.operation())] << ' ' << event.key();
        if (const auto value = event.value()) std::cout << " = " << *value;
        std::cout << '\n';
    }
}

// Shows what there is.
void drain(hashmere::feed &feed) {
    while (const auto event = feed.next()) show(*event);
}

int main() {
    hashmere::store::remove("sample-feed");
    hashmere::store store("sample-feed", hashmere::options().feed(1 << 20).feed_values());
    store.set("alice", "100");

    const auto how = hashmere::feed_options().values();
    std::string token; // a consumer keeps it where its data are
    {
        hashmere::feed feed(store, "start", how); // every key first
        drain(feed);
        store.set("bob", "7");
        hashmere::write_batch batch;
        batch.set("alice", "70").set("bob", "37");
        store.write_batch(batch);
        store.erase("bob");
        drain(feed);
        token = feed.token();
    }
    store.set("carol", "5");
    store.clear();
    std::cout << "resumed\n";
    hashmere::feed feed(store, token, how);
    drain(feed);

    std::cout.flush();
    const pid_t child = fork();
    if (child == 0) { // the child goes on with the open store
        for (int i = 0; i < changes; i++) store.incr("hits", 1, hashmere::counter(1));
        _exit(0);
    }
    int next = 1;
    for (const auto &event : feed) { // waits for each
        if (event.value() != std::to_string(next)) {
            std::cerr << "change " << next << " is missing\n";
            return 1;
        }
        if (next++ == changes) break;
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    std::cout << changes << " changes of another process, in order\n";
    hashmere::store::remove("sample-feed");
}
