// Several processes move money between accounts; the sum never changes, not even for a moment.
#include <array>
#include <hashmere.hpp>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

static const std::array<std::string, 3> accounts = {"alice", "bob", "carol"};

static bool transfer(hashmere::store &store, const std::string &from, const std::string &to, long amount) {
    // The function may run several times: it has no effects but through `t`.
    return store.transaction([&](hashmere::transaction &t) {
        if (std::stol(t.get(from).value_or("0")) < amount) return false;
        t.incr_by(from, -amount);
        t.incr_by(to, amount);
        return true;
    });
}

static long sum(const hashmere::store &store) {
    long total = 0;
    for (const auto &item : store.get_many_snapshot(accounts)) total += item ? std::stol(item->value) : 0;
    return total;
}

int main() {
    constexpr unsigned processes = 4, steps = 500;
    hashmere::store store("sample-transactions");
    hashmere::write_batch batch;
    for (const auto &account : accounts) batch.set(account, "100");
    store.write_batch(batch);

    for (unsigned who = 0; who < processes; who++) {
        if (fork() == 0) { // the child goes on with the open store
            for (unsigned step = 0; step < steps; step++)
                transfer(store, accounts[(who + step) % 3], accounts[(who + step + 1) % 3], 1 + step % 5);
            _exit(0);
        }
    }
    for (int i = 0; i < 100; i++)
        if (sum(store) != 300) return 1;
    while (wait(nullptr) > 0) {
    }
    std::cout << "the sum of all accounts is " << sum(store) << '\n';

    // If alice still has what was seen, close her account and note it; else read what she has.
    const std::string seen = store.get("alice").value();
    hashmere::write_batch close, look;
    close.erase("alice").set("closed", "alice");
    look.get("alice");
    const auto branch = store.write_batch_if({hashmere::condition::value("alice", seen)}, close, look);
    std::cout << "alice's account is closed: " << std::boolalpha << branch.succeeded << '\n';
    store.close();
    hashmere::store::remove("sample-transactions");
}
