// Queues in C++, waiting, and backups.
#include "test.hpp"

#include <cstring>
#include <hashmere/queue.hpp>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

static void queues(hashmere::store &store) {
    CHECK(fails(HM_E_QUEUE_NOT_FOUND, [&] { hashmere::pool pool(store, "jobs"); }));
    hashmere::pool pool(store, "jobs", hashmere::pool_options(16, 32).max_queues(4).max_endpoints(8).batch(8));
    auto todo = pool.queue("todo");
    auto endpoint = pool.endpoint();
    CHECK(!endpoint.pop(todo) && !endpoint.pop(todo, 2ms) && todo.empty() && pool.free().size() == 16);
    {
        auto job = endpoint.pop(pool.free());
        CHECK(job && job->index() == 0 && job->size() == 32);
        job->as<std::uint64_t>() = 7;
        CHECK(job->push(todo) && todo.size() == 1);
        auto dropped = endpoint.pop(pool.free()); // goes back by itself
    }
    CHECK(pool.free().size() == 15);
    auto job = endpoint.pop(todo, 10s);
    CHECK(job->as<std::uint64_t>() == 7 && job->push(pool.free()));
    auto bounded = pool.queue("bounded", hashmere::queue_kind::mpmc, 1);
    auto one = endpoint.pop(pool.free()), two = endpoint.pop(pool.free());
    CHECK(one->push(bounded) && !two->push(bounded) && two->push(pool.free()));
    CHECK(endpoint.pop_many(pool.free(), 3) == 3 && endpoint.batch(2).second == 32 && endpoint.batch(3).first == nullptr);
    CHECK(endpoint.push_many(todo) == 3 && pool.stats().held == 0);
    CHECK(todo.peek()->size() == 32 && endpoint.wait(todo, 0ms) && endpoint.drain(todo, pool.free()) == 3 && !todo.peek());
    auto passed = endpoint.pop(pool.free());
    CHECK(endpoint.push_pop(passed, todo, pool.free()) && passed && todo.size() == 1);
    CHECK(!endpoint.push_pop(passed, bounded, todo) && passed && endpoint.push_pop(passed, pool.free(), todo) && todo.empty());
    CHECK(!endpoint.push_pop(passed, pool.free(), todo) && !passed && !endpoint.wait(todo, 2ms));
    CHECK(endpoint.push_pop_many(pool.free(), pool.free(), 2).popped == 2 && endpoint.batch_size() == 2);
    CHECK(endpoint.push_pop_many(todo, todo, 0).pushed == 2);
    hashmere::ready_fd ready(todo);
    CHECK(ready.fd() >= 0);
    ready.acknowledge();

    if (fork() == 0) {
        hashmere::pool mine(store, "jobs");
        auto held = mine.endpoint();
        auto element = held.pop(mine.free());
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
    using waited = hashmere::wait_outcome::kind;
    CHECK(now.what == waited::changed && now.version == store.metadata("key")->version);
    later.join();
    CHECK(!hashmere::wait_any(store, {{"none", 0}, {"key", now.version}}, 2ms));
    CHECK(hashmere::wait_any(store, {{"none", 0}, {"key", 0}}, 10s).index == 1);
    CHECK(hashmere::wait(store, "none", 7, 2ms).what == waited::removed);
    hashmere::mutex mutex(store, "mutex");
    {
        auto held = mutex.lock(1s);
        CHECK(held && !held->was_abandoned() && !mutex.lock(0ms));
        CHECK(fails(HM_E_QUEUE_REENTERED, [&] { (void)mutex.lock(2ms); }));
        auto is_free = [&] {
            bool free = false;
            std::thread([&] { free = mutex.lock(2ms).has_value(); }).join();
            return free;
        };
        store.clear();
        CHECK(!is_free() && mutex.holder());
        held.reset();
        CHECK(is_free());
        store.set("key", "1");
    }
    CHECK(mutex.lock(0ms));
    hashmere::rwlock rwlock(store, "rwlock");
    hashmere::semaphore semaphore(store, "semaphore", 1);
    {
        auto held = rwlock.read(1s);
        auto permit = semaphore.acquire(1s);
        CHECK(held && !held->was_abandoned() && !rwlock.write(0ms) && permit && !permit->was_abandoned());
        CHECK(rwlock.readers() == std::vector<std::uint32_t>{static_cast<std::uint32_t>(getpid())} && !rwlock.writer());
        CHECK(semaphore.holders() == rwlock.readers());
        CHECK(fails(HM_E_QUEUE_REENTERED, [&] { (void)rwlock.read(2ms); }));
        CHECK(fails(HM_E_QUEUE_REENTERED, [&] { (void)semaphore.acquire(2ms); }));
        std::thread([&] {
            const bool reads = rwlock.read(2ms).has_value();
            const bool writes = rwlock.write(2ms).has_value();
            CHECK(reads && !writes && !semaphore.acquire(2ms));
        }).join();
    }
    {
        auto held = rwlock.write(1s);
        CHECK(rwlock.writer() == static_cast<std::uint32_t>(getpid()) && rwlock.readers().empty());
        std::thread([&] { CHECK(!rwlock.read(2ms)); }).join();
    }
    CHECK(semaphore.acquire(0ms));
    CHECK(semaphore.holders().empty());
    CHECK(fails(HM_E_QUEUE_BAD_OPTION, [&] { (void)hashmere::semaphore(store, "many", 1025).acquire(0ms); }));
    hashmere::atomics set(store, "set");
    auto atomic = set.atomic("a"), same = hashmere::atomics(store, "set").atomic("a");
    CHECK(atomic.load() == 0 && atomic.fetch_add(5) == 0 && same.fetch_add(UINT64_MAX) == 5 && atomic.load() == 4);
    CHECK(atomic.fetch_or(3) == 4 && atomic.fetch_and(5) == 7 && atomic.fetch_xor(4) == 5 && atomic.swap(9) == 1);
    CHECK(atomic.compare_exchange(8, 1) == 9 && atomic.compare_exchange(9, 2) == 9 && same.load() == 2);
    CHECK(!atomic.wait(2, 2ms) && atomic.wait(1, 0ms) == 2u);
    std::thread waker([&] { __atomic_store_n(same.word(), 7, __ATOMIC_SEQ_CST), same.notify(); });
    CHECK(atomic.wait(2, 300s) == 7u);
    waker.join();
    store.clear();
    store.set("key", "1");
    atomic.store(8);
    CHECK(same.load() == 8 && hashmere::atomics::remove(store, "set") && !hashmere::atomics::remove(store, "set"));
    CHECK(fails(HM_E_QUEUE_REMOVED, [&] { (void)atomic.wait(8, 1s); }));
    int calls = 0;
    auto make = [&] { return calls++, std::string(1000, 'x'); };
    CHECK(hashmere::once(store, "once", 1s, make)->size() == 1000 && hashmere::once(store, "once", 1s, make) && calls == 1);
    bool thrown = false;
    try {
        hashmere::once(store, "never", 1s, []() -> std::string { throw std::logic_error("no"); });
    } catch (const std::logic_error &) {
        thrown = true;
    }
    CHECK(thrown && !store.contains("never"));
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
