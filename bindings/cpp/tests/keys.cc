// Every call that takes a key, by every kind of key, and by the number of an entry that is gone.
#include "test.hpp"

#include <algorithm>
#include <array>

using namespace std::chrono_literals;
using namespace std::string_literals;
using hashmere::change, hashmere::counter, hashmere::key, hashmere::outcome, hashmere::updated;

/// What is a key, and what is none: a number must say of what kind it is, and a hash that it is one.
static void kinds() {
    static_assert(std::is_convertible_v<const char *, key> && std::is_convertible_v<std::string, key>);
    static_assert(std::is_convertible_v<std::string_view, key> && std::is_convertible_v<std::array<unsigned char, 3>, key>);
    static_assert(std::is_convertible_v<hashmere::uid, key> && std::is_convertible_v<hashmere::entry_id, key>);
    static_assert(!std::is_constructible_v<key, std::uint32_t> && !std::is_constructible_v<key, std::uint64_t>);
    static_assert(std::is_constructible_v<key, const char *, std::uint64_t>);
    CHECK(key("ab").c().kind == HM_KEY_BYTES && key("ab").c().len == 2 && key("ab").c().number == 0);
    CHECK(key("a\0b"s, 7).c().kind == HM_KEY_HASHED && key("a\0b"s, 7).c().len == 3 && key("", 7).c().number == 7);
    CHECK(key(hashmere::uid(5)).c().kind == HM_KEY_UID && key(hashmere::uid(5)).c().number == 5);
    CHECK(key(hashmere::entry_id(6)).c().kind == HM_KEY_ID && key(hashmere::entry_id(6)).c().data == nullptr);
}

static void one_after_the_other(hashmere::store &store, const key &k, const std::string &name, hashmere::uid uid) {
    char buffer[8];
    store.set(k, "value");
    CHECK(store.get(k) == "value" && store.get_into(k, buffer, sizeof buffer) == 5u && store.contains(k));
    CHECK(store.get_item(k)->value == "value" && store.get_item(k)->metadata.uid == uid && store.value_len(k) == 5u);
    CHECK(store.metadata(k)->uid == uid && store.ttl(k) == -1ms && store.view(k)->bytes() == "value");
    CHECK(store.key_of(k) == name && store.uid_of(k) == uid && store.id_of(k) == store.id_of(uid));

    CHECK(store.set(k, "b", hashmere::attributes().flags(7)).uid == uid && store.metadata(k)->flags == 7);
    CHECK(!store.add(k, "no") && store.append(k, "c")->uid == uid && store.prepend(k, "a") && store.get(k) == "abc");
    CHECK(!store.replace(k, "r")->created);
    auto room = store.reserve(k, 4);
    std::copy_n("room", 4, room.begin());
    CHECK(store.get(k) == "r" && room.commit().uid == uid && store.get(k) == "room");

    CHECK(store.cas(k, 0, "no").outcome == outcome::mismatch && store.cas(k, "r", "no").outcome == outcome::mismatch);
    const auto done = store.cas(k, "room", "x");
    CHECK(done && store.cas(k, done.stored.version, "y") && store.erase_version(k, 1) == outcome::mismatch);
    CHECK(store.erase_value(k, "x") == outcome::mismatch);
    auto twice = [&](std::optional<hashmere::pair> old) {
        CHECK(old->key == (k.c().data ? name : ""));
        return change::set(std::string(old->value).append(old->value));
    };
    CHECK(store.update_with(k, twice) == updated::stored && store.get(k) == "yy");

    store.set(k, "7");
    CHECK(store.incr(k, 5, counter(99)) == 12u && store.decr(k, 2) == 10u && store.incr_by(k, -9) == 1u);
    CHECK(store.inc_ref(k) == 2 && store.dec_ref(k) == 1u);
    CHECK(store.incr_signed(k, -3) == -2 && store.incr_float(k, 2.5) == 0.5);
    store.set(k, "1");
    const auto seen = store.metadata(k)->version;
    CHECK(store.is_up_to_date(k, seen) && !store.is_up_to_date(k, seen - 1));
    CHECK(store.touch(k, hashmere::expiry::after(1min)) && store.ttl(k) > 50s);
    CHECK(store.get_and_touch(k, {})->metadata.uid == uid && store.ttl(k) == -1ms);
}

static void gone(hashmere::store &store, const key &k) {
    auto all = store.expected();
    CHECK(!store.get(k) && !store.get_into(k, nullptr, 0) && !store.get_item(k) && !store.metadata(k) && !store.contains(k));
    CHECK(!store.value_len(k) && !store.ttl(k) && !store.view(k) && !store.key_of(k) && !store.uid_of(k) && !store.id_of(k));
    CHECK(!store.replace(k, "x") && !store.append(k, "x") && !store.prepend(k, "x") && !store.erase(k) && !store.take(k));
    CHECK(store.cas(k, 5, "x").outcome == outcome::absent && store.cas(k, "1", "x").outcome == outcome::absent);
    CHECK(store.erase_version(k, 5) == outcome::absent && store.erase_value(k, "1") == outcome::absent);
    CHECK(!store.incr(k) && !store.decr(k) && !store.incr_by(k, 1) && !store.incr_signed(k, 1) && !store.incr_float(k, 1) && !store.dec_ref(k));
    CHECK(!store.touch(k, {}) && !store.get_and_touch(k, {}));

    CHECK(fails(HM_E_STALE, [&] { store.set(k, "x"); }) && fails(HM_E_STALE, [&] { store.set(k, "x", {}); }));
    auto never = [](auto) -> change { std::abort(); };
    CHECK(fails(HM_E_STALE, [&] { store.update_with(k, never); }) && fails(HM_E_STALE, [&] { store.inc_ref(k); }));
    CHECK(all.add(k, "x").code() == HM_E_STALE && all.reserve(k, 3).code() == HM_E_STALE);
    CHECK(all.cas(k, 0, "x").code() == HM_E_STALE && all.incr(k, 1, counter(1)).code() == HM_E_STALE);
    CHECK(all.decr(k, 1, counter(1)).code() == HM_E_STALE && all.incr_by(k, 1, counter(1)).code() == HM_E_STALE);
    CHECK(store.size() == 0);
}

int main() {
    kinds();
    auto store = new_store("keys");
    const std::string name = "a key";
    for (const key &named : {key(name), key(name, 77)}) {
        const auto first = store.set(named, "first", {});
        CHECK(first.created);
        const auto id = *store.id_of(named);
        for (const key &k : {named, key(first.uid), key(id)}) one_after_the_other(store, k, name, first.uid);
        CHECK(store.take(id) == "1" && !store.contains(named));
        gone(store, first.uid);
        gone(store, id);
    }
    // The same bytes, without a hash and with two, are three keys.
    const key plain("h"), one("h", 1), two("h", 2);
    CHECK(store.add(plain, "0") && store.add(one, "1") && store.add(two, "2") && !store.add(two, "2"));
    CHECK(store.get("h") == "0" && store.get(one) == "1" && store.get(two) == "2" && store.size() == 3);
    CHECK(store.update_with(two, [](auto) { return change::remove(); }) == updated::removed && store.erase(one));
    CHECK(store.uid_of("h") != store.uid_of(one) && !store.contains(two));
}
