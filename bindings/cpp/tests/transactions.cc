// Several keys at one moment: batches, conditions, transactions, snapshot reads.
#include "test.hpp"

#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;
using namespace std::string_literals;
using hashmere::condition, hashmere::counter, hashmere::float_counter, hashmere::signed_counter, hashmere::transaction, hashmere::write_batch;

static void batches(hashmere::store &store) {
    write_batch batch;
    CHECK(batch.empty() && store.write_batch(batch).empty());
    batch.set("a", "1").set("b", "x", hashmere::attributes().flags(7).after(100s)).incr_by("a", 4);
    batch.incr_by("made", 2, counter(40)).incr_by("no", 2).append("b", "z").prepend("b", "w");
    batch.touch("made", hashmere::expiry::after(50s)).erase("no").get("b").get("no");
    CHECK(batch.size() == 11);
    const auto done = store.write_batch(batch);
    CHECK(done.size() == 11);
    CHECK(done[0].was_there && done[0].stored.created && done[0].stored.version != 0 && !done[0].item);
    CHECK(done[2].number == 5 && done[3].number == 40 && done[3].was_there && !done[4].was_there);
    CHECK(done[5].was_there && done[6].was_there && done[7].was_there && !done[8].was_there);
    CHECK(done[9].item && done[9].item->value == "wxz" && done[9].item->metadata.flags == 7 && !done[10].item && !done[10].was_there);
    CHECK(store.get("a") == "5" && store.get("b") == "wxz" && store.get("made") == "40" && *store.ttl("made") <= 50s);
    // An empty value is one.
    batch.clear();
    batch.set("empty", "").get("empty");
    const auto empty = store.write_batch(batch);
    CHECK(empty[1].was_there && empty[1].item && empty[1].item->value.empty());
    // None happens if one cannot.
    batch.clear();
    batch.set("c", "1").incr_by("b", 1);
    CHECK(fails(HM_E_NOT_A_NUMBER, [&] { store.write_batch(batch); }) && !store.contains("c"));
    CHECK(store.expected().write_batch(batch).code() == HM_E_NOT_A_NUMBER);
    // The other kinds of counter.
    batch.clear();
    batch.incr_signed("signed", 1, signed_counter(-2)).incr_signed("signed", -5).incr_signed("no", 1);
    batch.incr_float("float", 1, float_counter(0.1)).incr_float("float", 0.2);
    const auto counted = store.write_batch(batch);
    CHECK(counted[0].signed_number == -2 && counted[1].signed_number == -7 && !counted[2].was_there);
    CHECK(counted[4].float_number == 0.3 && store.get("signed") == "-7" && store.get("float") == "0.3");
    batch.incr_signed("signed", INT64_MIN);
    CHECK(fails(HM_E_OVERFLOW, [&] { store.write_batch(batch); }) && store.get("float") == "0.3");
    // The limit, and one more.
    batch.clear();
    for (int i = 0; i < 1024; i++) batch.set(hashmere::bytes::of(i), "x");
    CHECK(store.write_batch(batch).size() == 1024);
    batch.erase("one more");
    CHECK(fails(HM_E_TOO_MANY_KEYS, [&] { store.write_batch(batch); }));
    write_batch moved = std::move(batch);
    CHECK(moved.size() == 1025);
    CHECK(fails(HM_E_ARGUMENT, [&] { batch.get("x"); }) && fails(HM_E_ARGUMENT, [&] { store.write_batch(batch); }));
}

static void conditions(hashmere::store &store) {
    store.set("leader", "me");
    const auto version = store.metadata("leader")->version;
    write_batch then, otherwise;
    then.set("leader", "you");
    otherwise.get("leader");
    const auto all = {condition::present("leader"), condition::value("leader", "me"), condition::version("leader", version),
                      condition::absent("other"), condition::version("other", 0)};
    auto branch = store.write_batch_if(all, then, otherwise);
    CHECK(branch.succeeded && branch.results.size() == 1 && store.get("leader") == "you");
    branch = store.write_batch_if(all, then, otherwise);
    CHECK(!branch.succeeded && branch.results[0].item->value == "you");
    CHECK(store.write_batch_if({}, otherwise, then).succeeded);
    CHECK(!store.write_batch_if(std::vector{condition::absent("leader")}, then, otherwise).succeeded);
    CHECK(store.expected().write_batch_if({condition::present("leader")}, otherwise, then)->succeeded);
}

static void transactions(hashmere::store &store) {
    store.set("alice", "100");
    // What it returns is returned; nothing is seen before it is done.
    const int answer = store.transaction([&](transaction &t) {
        CHECK(t.incr_by("alice", -30) == 70u && t.incr_by("bob", 30, counter(30)) == 30u);
        CHECK(t.get("alice") == "70" && t.contains("bob") && store.get("alice") == "100" && !store.contains("bob"));
        t.set("note", "b", hashmere::attributes().flags(4));
        CHECK(t.append("note", "c") && t.prepend("note", "a") && !t.append("no", "x") && !t.prepend("no", "x"));
        CHECK(t.touch("note", hashmere::expiry::after(50s)) && !t.touch("no", {}) && !t.incr_by("no", 1) && !t.get("no"));
        CHECK(t.incr_signed("never", 1, signed_counter(-2)) == -2 && t.incr_float("never", 0.5) == -1.5);
        CHECK(!t.incr_signed("no", 1) && !t.incr_float("no", 1));
        t.set("never", "x");
        t.erase("never");
        CHECK(!t.contains("never"));
        return 7;
    });
    CHECK(answer == 7 && store.get("alice") == "70" && store.get("bob") == "30" && store.get("note") == "abc");
    CHECK(store.metadata("note")->flags == 4 && *store.ttl("note") > 0s && !store.contains("never"));
    // What it throws is thrown, and nothing has happened.
    const auto thrown = [&] {
        try {
            store.transaction([](transaction &t) {
                t.set("alice", "0");
                throw std::runtime_error("not today");
            });
        } catch (const std::runtime_error &e) {
            return e.what() == "not today"s;
        }
        return false;
    };
    CHECK(thrown() && store.get("alice") == "70");
    CHECK(fails(HM_E_NOT_A_NUMBER, [&] { store.transaction([](transaction &t) { t.incr_by("note", 1); }); }));
    // Others change what it read: it runs again, also if it threw because of that.
    int runs = 0;
    store.transaction([&](transaction &t) {
        const auto seen = t.get("alice");
        if (runs++ == 0) store.set("alice", "80");
        t.set("seen", *seen);
    });
    CHECK(runs == 2 && store.get("seen") == "80");
    runs = 0;
    const auto kept = store.transaction([&](transaction &t) {
        const auto seen = t.get("alice");
        if (runs++ == 0) {
            store.set("alice", "90");
            throw std::runtime_error("seen too early");
        }
        return *seen;
    });
    CHECK(runs == 2 && kept == "90");
    runs = 0;
    store.transaction([&](transaction &t) {
        t.get("alice");
        if (runs++ == 0) store.set("alice", "95");
        t.get("alice"); // the first time this is HM_E_CONFLICT, which passes through
    });
    CHECK(runs == 2);
    // Without exceptions.
    using hashmere::result;
    runs = 0;
    const result<int> expected = store.expected().transaction([&](hashmere::expected_transaction &t) -> result<int> {
        const auto seen = t.get("alice");
        if (!seen) return seen.why();
        if (runs++ == 0) {
            store.set("alice", "96");
            return t.incr_by("note", 1).why(); // an error, but of what is not there any more
        }
        CHECK(t.set("alice", "97"));
        return static_cast<int>((*seen)->size());
    });
    CHECK(expected && *expected == 2 && runs == 2 && store.get("alice") == "97");
    const auto failed = store.expected().transaction([](hashmere::expected_transaction &t) -> result<void> {
        (void)t.set("alice", "98");
        const auto counted = t.incr_by("note", 1);
        if (!counted) return counted.why();
        return hashmere::detail::nothing();
    });
    CHECK(failed.code() == HM_E_NOT_A_NUMBER && store.get("alice") == "97");
    hashmere::store gone = new_store("gone");
    gone.close();
    CHECK(fails(HM_E_ARGUMENT, [&] { gone.transaction([](transaction &) {}); }));
}

// Threads move money, and every snapshot has all of it.
static void bank(hashmere::store &store) {
    std::vector<std::string> accounts;
    for (int i = 0; i < 20; i++) store.set(accounts.emplace_back("account:" + std::to_string(i)), "1000");
    std::vector<std::thread> clerks;
    for (unsigned clerk = 0; clerk < 2; clerk++) {
        clerks.emplace_back([&store, &accounts, clerk] {
            unsigned chance = 17 + clerk;
            for (int i = 0; i < 1000; i++) {
                const auto &from = accounts[static_cast<unsigned>(rand_r(&chance)) % 20];
                const auto &to = accounts[static_cast<unsigned>(rand_r(&chance)) % 20];
                store.transaction([&](transaction &t) {
                    if (t.get(from) == "0") return;
                    t.incr_by(from, -1);
                    t.incr_by(to, 1);
                });
            }
        });
    }
    for (int i = 0; i < 500; i++) {
        unsigned long sum = 0;
        for (const auto &item : store.get_many_snapshot(accounts)) sum += std::stoul(item->value);
        CHECK(sum == 20'000);
    }
    for (auto &clerk : clerks) clerk.join();
    const auto some = store.get_many_snapshot(std::vector<std::string>{"no", "account:1"});
    CHECK(!some[0] && some[1] && some[1]->metadata.version == store.metadata("account:1")->version);
}

int main() {
    hashmere::store store = new_store("transactions-cpp");
    batches(store);
    conditions(store);
    transactions(store);
    bank(store);
    return 0;
}
