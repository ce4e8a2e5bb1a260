// The C++ face of queues, of waiting, and of backups.
#include "test.hpp"

#include <cstring>
#include <hashmere/queue.hpp>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

static void queues(hashmere::store &store) {
    CHECK(fails(HM_E_QUEUE_NOT_FOUND, [&] { hashmere::pool pool(store, "jobs"); }));
    hashmere::pool pool(store, "jobs", hashmere::pool_options(16, 32).queues(4).hands(8).batch(8));
    auto todo = pool.queue("todo");
    auto hand = pool.hand();
    CHECK(!hand.pull(todo) && !hand.pull(todo, 2ms) && todo.empty() && pool.free().size() == 16);
    {
        auto job = hand.pull(pool.free());
        CHECK(job && job->number() == 0 && job->size() == 32);
        job->as<std::uint64_t>() = 7;
        CHECK(job->push(todo) && todo.size() == 1);
        auto dropped = hand.pull(pool.free()); // goes back by itself
    }
    CHECK(pool.free().size() == 15);
    auto job = hand.pull(todo, 10s);
    CHECK(job->as<std::uint64_t>() == 7 && job->push(pool.free()));
    auto bounded = pool.queue("bounded", hashmere::queue_kind::mpmc, 1);
    auto one = hand.pull(pool.free()), two = hand.pull(pool.free());
    CHECK(one->push(bounded) && !two->push(bounded) && two->push(pool.free()));
    CHECK(hand.pull_many(pool.free(), 3) == 3 && hand.batch(2).second == 32 && hand.batch(3).first == nullptr);
    CHECK(hand.push_many(todo) == 3 && pool.stats().held == 0);
    CHECK(todo.peek()->size() == 32 && hand.wait(todo, 0ms) && hand.drain(todo, pool.free()) == 3 && !todo.peek());
    auto passed = hand.pull(pool.free());
    CHECK(hand.push_pull(passed, todo, pool.free()) && passed && todo.size() == 1);
    CHECK(!hand.push_pull(passed, bounded, todo) && passed && hand.push_pull(passed, pool.free(), todo) && todo.empty());
    CHECK(!hand.push_pull(passed, pool.free(), todo) && !passed && !hand.wait(todo, 2ms));
    CHECK(hand.push_pull_many(pool.free(), pool.free(), 2).pulled == 2 && hand.batch_size() == 2);
    CHECK(hand.push_pull_many(todo, todo, 0).pushed == 2);
    hashmere::readiness ready(todo);
    CHECK(ready.fd() >= 0);
    ready.take();

    if (fork() == 0) {
        hashmere::pool mine(store, "jobs");
        auto held = mine.hand();
        auto element = held.pull(mine.free());
        _exit(element ? 0 : 1); // with the element
    }
    int status = 1;
    CHECK(wait(&status) > 0 && status == 0 && pool.recover() == 1);
    CHECK(hashmere::pool::remove(store, "jobs") && !hashmere::pool::remove(store, "jobs"));
}

static void waiting(hashmere::store &store) {
    CHECK(!hashmere::wait(store, "key", 0, 2ms));
    std::thread later([&] { store.set("key", "1"); });
    const auto now = hashmere::wait(store, "key", 0, 300s);
    CHECK(now && now == store.peek("key")->version);
    later.join();
    CHECK(!hashmere::wait_any(store, {{"none", 0}, {"key", *now}}, 2ms));
    CHECK(hashmere::wait_any(store, {{"none", 0}, {"key", 0}}, 10s)->which == 1);
    {
        auto held = hashmere::lock::acquire(store, "mutex", 1s);
        CHECK(held && !held->was_abandoned() && !hashmere::lock::acquire(store, "mutex", 0ms));
        CHECK(fails(HM_E_QUEUE_REENTERED, [&] { (void)hashmere::lock::acquire(store, "mutex", 2ms); }));
        auto is_free = [&] {
            bool free = false;
            std::thread([&] { free = hashmere::lock::acquire(store, "mutex", 2ms).has_value(); }).join();
            return free;
        };
        store.clear();
        CHECK(!is_free());
        held.reset();
        CHECK(is_free());
        store.set("key", "1");
    }
    CHECK(hashmere::lock::acquire(store, "mutex", 0ms));
    int calls = 0;
    auto make = [&] { return calls++, std::string(1000, 'x'); };
    CHECK(hashmere::once(store, "once", 1s, make)->size() == 1000 && hashmere::once(store, "once", 1s, make) && calls == 1);
    bool thrown = false;
    try {
        hashmere::once(store, "never", 1s, []() -> std::string { throw std::logic_error("no"); });
    } catch (const std::logic_error &) {
        thrown = true;
    }
    CHECK(thrown && !store.exists("never"));
    hashmere::barrier alone(store, "barrier", 1);
    CHECK(alone.wait(300s)->round == 1 && alone.wait(300s)->round == 2);
}

static void backup(hashmere::store &store) {
    const auto path = store.path() + ".copy";
    std::uint64_t told = 0;
    const auto report = store.backup(path, hashmere::if_there::refuse, [&](std::uint64_t, std::uint64_t) { told++; });
    CHECK(report.items == store.size() && !report.is_thinned && told > 0);
    CHECK(fails(HM_E_BACKUP_EXISTS, [&] { store.backup(path); }));
    store.backup(path, hashmere::if_there::replace);
    CHECK(hashmere::store(path).get("key") == "1" && hashmere::store::remove(path));
}

int main() {
    auto store = new_store("cpp-queues");
    queues(store);
    waiting(store);
    backup(store);
}
