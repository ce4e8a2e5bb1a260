// Errors as exceptions and as results, exceptions in callbacks, and what a caller can do wrong.
#include "test.hpp"

#include <map>
#include <thread>

using namespace std::chrono_literals;
using namespace std::string_literals;
using hashmere::change;

struct own_exception {};

/// Whether `f` throws what a callback threw.
template <class F> bool throws_own(F &&f) {
    try {
        f();
    } catch (const own_exception &) {
        return true;
    }
    return false;
}

static void results(hashmere::store &store) {
    auto calls = store.expected();
    CHECK(calls.set("key", "value") && *calls.get("key") == "value" && calls.get("key")->value() == "value");
    const auto absent = calls.get("no");
    CHECK(absent && !*absent && absent.code() == HM_OK);
    const auto wrong = calls.incr("key");
    CHECK(!wrong && wrong.code() == HM_E_NOT_A_NUMBER && wrong.why().text.find("number") != std::string::npos);
    CHECK(fails(HM_E_NOT_A_NUMBER, [&] { (void)wrong.value(); }));
    CHECK(calls.erase("key").value() && !calls.erase("key").value());
    CHECK(calls.set(hashmere::entry_id(12345), "x").code() == HM_E_STALE);
    CHECK(calls.sync().code() == HM_E_INVALID_STATE);

    const auto missing = hashmere::store::open("missing", hashmere::options().create(false));
    CHECK(!missing && missing.code() == HM_E_NOT_FOUND);
    auto opened = hashmere::store::open("another", hashmere::options().remove_on_last_close());
    CHECK(opened && opened->add("a", "b"));
    hashmere::store moved = std::move(opened).value();
    CHECK(moved.get("a") == "b");

    auto scan = calls.scan({}, hashmere::cursor(UINT64_MAX));
    CHECK(scan && scan->try_next().code() == HM_E_BAD_CURSOR);
    auto room = calls.reserve("r", 2);
    CHECK(room && room->try_commit() && room->try_commit().code() == HM_E_INVALID_STATE);
}

static void callbacks(hashmere::store &store) {
    store.set("key", "value");
    CHECK(throws_own([&] { store.update_with("key", [](auto) -> change { throw own_exception(); }); }));
    CHECK(throws_own([&] { (void)store.expected().update_with("key", [](auto) -> change { throw own_exception(); }); }));
    CHECK(throws_own([&] { store.get_many(std::vector{"key"}, [](std::size_t, auto) { throw own_exception(); }); }));
    CHECK(store.get("key") == "value");
    // A visitor that changes its mind when another writer was faster.
    int calls = 0;
    store.update_with("key", [&](std::optional<hashmere::pair> old) {
        if (calls++ == 0) std::thread([&] { store.set("key", "faster"); }).join();
        return change::set(std::string(old->value) + "!");
    });
    CHECK(calls == 2 && store.get("key") == "faster!");
    // One that writes its own key gets an error where it does so, and reads what is stored.
    store.update_with("key", [&](std::optional<hashmere::pair>) {
        CHECK(fails(HM_E_REENTERED, [&] { store.set("key", "own"); }) && fails(HM_E_REENTERED, [&] { store.clear(); }));
        CHECK(store.expected().erase("key").code() == HM_E_REENTERED && store.get("key") == "faster!");
        store.update_with("other", [&](auto) {
            CHECK(fails(HM_E_REENTERED, [&] { store.erase("key"); }));
            return change::set("written");
        });
        return change::set("own");
    });
    CHECK(store.get("key") == "own" && store.get("other") == "written");
    CHECK(fails(HM_E_REENTERED, [&] { store.update_with("key", [&](auto) { return store.set("key", "x"), change::keep(); }); }));
    hashmere::store again(store.path());
    CHECK(fails(HM_E_INVALID_STATE, [&] { store.update_with("key", [&](auto) { return again.append("key", "x"), change::set(""); }); }));
}

static void bad_input(hashmere::store &store) {
    CHECK(fails(HM_E_ARGUMENT, [&] { store.set("k", "v", hashmere::attributes().after(-1ms)); }));
    CHECK(fails(HM_E_ARGUMENT, [&] { store.touch("k", hashmere::expiry::after(-5h)); }));
    CHECK(fails(HM_E_ARGUMENT, [&] { store.parallel_scan(0, {}, [](const hashmere::pair &) {}); }));
    CHECK(fails(HM_E_BAD_PATTERN, [&] { (void)store.scan(hashmere::filter().glob("[a")); }));
    CHECK(store.expected().scan(hashmere::filter().glob("[z-a]")).code() == HM_E_BAD_PATTERN);
    CHECK(fails(HM_E_BAD_PATTERN, [&] { store.parallel_scan(2, hashmere::filter().glob("a\\"), [](const hashmere::pair &) {}); }));
    CHECK(fails(HM_E_TOO_LARGE, [&] { store.set("k", hashmere::bytes("v", std::size_t(1) << 32)); }));
    CHECK(fails(HM_E_TOO_LARGE, [&] { store.reserve("k", std::size_t(1) << 40); }));
    CHECK(fails(HM_E_BAD_NAME, [&] { hashmere::store bad("a\0b"s); }));
    CHECK(fails(HM_E_BAD_NAME, [&] { hashmere::store::remove("a\0b"s); }));
    CHECK(fails(HM_E_BAD_NAME, [&] { hashmere::store bad(""); }));
    CHECK(fails(HM_E_ARGUMENT, [&] { hashmere::store bad("bad", hashmere::options().strict().cache()); }));
    hashmere::store gone = new_store("gone");
    gone.set("k", "v");
    auto view = gone.view("k");
    auto scan = gone.scan();
    const auto calls = gone.expected();
    hm_store *const raw = gone.c();
    gone.close();
    CHECK(fails(HM_E_ARGUMENT, [&] { (void)gone.get("k"); }));
    CHECK(calls.get("k").code() == HM_E_CLOSED && hm_contains(raw, "k", 1, nullptr) == HM_E_CLOSED);
    CHECK(view->bytes() == "v" && scan.next()->key == "k");
    hashmere::scan moved = std::move(scan);
    CHECK(fails(HM_E_ARGUMENT, [&] { (void)scan.next(); }) && !moved.next());
}

int main() {
    auto store = new_store("errors");
    results(store);
    callbacks(store);
    bad_input(store);
    CHECK(store.check().is_clean());
}
