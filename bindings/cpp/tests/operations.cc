// Every call of the C++ interface once, and what each outcome looks like.
#include "test.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <thread>

using namespace std::chrono_literals;
using namespace std::string_literals;
using hashmere::change, hashmere::counter, hashmere::float_counter, hashmere::outcome, hashmere::signed_counter,
    hashmere::updated;

static void reading(hashmere::store &store) {
    CHECK(!store.get("no") && !store.get_item("no") && !store.metadata("no") && !store.value_len("no") && !store.ttl("no"));
    CHECK(!store.contains("no") && !store.view("no") && !store.get_into("no", nullptr, 0));
    store.set("key", "value");
    CHECK(store.get("key") == "value" && store.contains("key") && store.value_len("key") == 5u);
    char small[3], large[9];
    CHECK(store.get_into("key", small, sizeof small) == 5u && store.get_into("key", large, sizeof large) == 5u);
    CHECK(std::string(large, 5) == "value");
    const auto item = store.get_item("key");
    CHECK(item && item->value == "value" && item->metadata.version == store.metadata("key")->version);
    CHECK(store.ttl("key") == -1ms);
    // Values longer than what a string has room for at first, NULs, empty ones, containers of bytes.
    const std::string large_value(100'000, 'x');
    store.set("large", large_value);
    CHECK(store.get("large") == large_value && store.get_item("large")->value == large_value);
    store.set("a\0b"s, "\0\0"s);
    CHECK(store.get("a\0b"s) == "\0\0"s && !store.contains("a"));
    store.set("", "");
    CHECK(store.get("") == "");
    store.set(std::vector<unsigned char>{1, 2}, std::array<char, 2>{'h', 'i'});
    CHECK(store.get("\1\2") == "hi");
    const double pi = 3.25;
    store.set("pod", hashmere::bytes::of(pi));
    CHECK(store.get("pod") == hashmere::bytes::of(pi));
}

static void writing(hashmere::store &store) {
    const auto stored = store.set("w", "1", hashmere::attributes().flags(9));
    CHECK(stored.created && store.metadata("w")->flags == 9);
    CHECK(store.set("asked", "1", hashmere::attributes().min_version(2000000000000)).version == 2000000000000);
    CHECK(store.erase("asked"));
    CHECK(!store.add("w", "2") && store.add("added", "2") && !store.replace("absent", "x") && store.replace("w", "b"));
    CHECK(store.append("w", "c") && store.prepend("w", "a") && !store.append("absent", "x"));
    CHECK(store.take("w") == "abc" && !store.take("w"));
    CHECK(store.erase("added") && !store.erase("added"));
    {
        auto given_up = store.reserve("r", 4);
        auto room = store.reserve("r", 4, hashmere::attributes().flags(3));
        auto moved = std::move(room);
        std::copy_n("room", 4, moved.begin());
        CHECK(moved.commit().created);
        CHECK(fails(HM_E_INVALID_STATE, [&] { moved.commit(); }) && moved.try_commit().code() == HM_E_INVALID_STATE);
    }
    CHECK(store.get("r") == "room" && store.metadata("r")->flags == 3);
    auto view = store.view("r");
    store.set("r", "else");
    hashmere::view second = std::move(*view);
    view = store.view("r");
    CHECK(!second.is_up_to_date() && view->is_up_to_date());
    CHECK(second.bytes() == "room" && second.is_zero_copy() && view->bytes() == "else" && second.metadata().flags == 3);
    second = std::move(*view);
    CHECK(std::string(second.begin(), second.end()) == "else" && second.data()[1] == 'l');
}

static void conditions(hashmere::store &store) {
    const auto first = store.cas("c", 0, "x");
    CHECK(first && first.stored.created);
    CHECK(store.cas("c", 0, "y").outcome == outcome::mismatch && store.cas("no", 1, "y").outcome == outcome::absent);
    CHECK(store.cas("c", 0, "y").stored.version == first.stored.version);
    const auto second = store.cas("c", first.stored.version, "y");
    CHECK(second && store.cas("c", "y", "z") && !store.cas("c", "y", "z"));
    CHECK(store.erase_version("c", 1) == outcome::mismatch && store.erase_value("c", "y") == outcome::mismatch);
    CHECK(store.erase_value("c", "z") == outcome::stored && store.erase_version("c", 1) == outcome::absent);

    auto keep = [](std::optional<hashmere::pair> old) { return old ? change::remove() : change::keep(); };
    CHECK(store.update_with("u", keep) == updated::unchanged);
    auto with = [](auto) { return change::set("1", hashmere::attributes().flags(4)); };
    CHECK(store.update_with("u", with) == updated::stored && store.metadata("u")->flags == 4);
    auto longer = [](std::optional<hashmere::pair> old) { return change::set(std::string(old->value) + "2"); };
    CHECK(store.update_with("u", longer) == updated::stored && store.get("u") == "12" && store.metadata("u")->flags == 4);
    CHECK(store.update_with("u", [](auto) { return change::remove(); }) == updated::removed && !store.contains("u"));
}

static void counting(hashmere::store &store) {
    CHECK(!store.incr("n") && store.incr("n", 1, counter(10)) == 10u && store.incr("n") == 11u);
    CHECK(store.decr("n", 20) == 0u && store.incr_by("n", 7) == 7u && store.incr_by("n", -9) == 0u);
    CHECK(store.inc_ref("ref") == 1 && store.inc_ref("ref") == 2);
    CHECK(store.dec_ref("ref") == 1u && store.dec_ref("ref") == 0u && !store.dec_ref("ref"));
    CHECK(store.inc_ref("ref", 5) == 5 && store.dec_ref("ref", 3) == 2u && store.dec_ref("ref", 3) == 0u);
    CHECK(!store.incr_signed("signed", 1) && store.incr_signed("signed", 1, signed_counter(-2)) == -2);
    CHECK(store.incr_signed("signed", -1) == -3 && store.get("signed") == "-3");
    CHECK(fails(HM_E_OVERFLOW, [&] { store.incr_signed("signed", INT64_MIN); }) && store.get("signed") == "-3");
    CHECK(store.incr_float("float", 1, float_counter(0.1)) == 0.1 && store.incr_float("float", 0.2) == 0.3);
    CHECK(store.get("float") == "0.3" && fails(HM_E_INVALID_STATE, [&] { store.incr_float("float", NAN); }));

    store.set("t", "x", hashmere::attributes().after(1min));
    CHECK(store.ttl("t") > 50s && store.touch("t", {}) && store.ttl("t") == -1ms);
    const auto tomorrow = std::chrono::system_clock::now() + 24h;
    CHECK(store.get_and_touch("t", hashmere::expiry::at(tomorrow))->value == "x" && store.ttl("t") > 23h);
    CHECK(!store.touch("no", {}) && !store.get_and_touch("no", {}));
}

static void many(hashmere::store &store) {
    store.clear();
    std::map<std::string, std::string> pairs;
    for (int i = 0; i < 1000; i++) pairs["k" + std::to_string(i)] = std::to_string(i);
    store.set_many(pairs);
    std::vector<std::string> keys = {"k1", "no", "k999"};
    std::string seen;
    store.get_many(keys, [&](std::size_t i, auto value) { seen += std::to_string(i) + std::string(value.value_or("-")); });
    CHECK(seen == "011-2999");
    store.get_many(keys, [&](std::size_t i, auto) { return seen = std::to_string(i), i != 1; });
    CHECK(seen == "1");

    std::map<std::string, std::string> found;
    auto all = store.scan(hashmere::filter().keys_only());
    all = store.scan();
    for (const auto &pair : all) found.emplace(pair.key, pair.value);
    CHECK(found == pairs);
    std::set<std::string> some;
    auto scan = store.scan(hashmere::filter().prefix("k1").glob("*[05]").keys_only());
    for (const auto &pair : scan) CHECK(pair.value.empty() && some.emplace(pair.key).second);
    CHECK(some.size() == 22);
    CHECK(!scan.next() && !scan.position());
    auto part = store.scan();
    for (int i = 0; i < 10; i++) CHECK(pairs.erase(std::string(part.next()->key)) == 1);
    for (auto rest = store.scan({}, *part.position()); auto pair = rest.next();)
        CHECK(pairs.erase(std::string(pair->key)) == 1);
    CHECK(pairs.empty());

    std::atomic<int> count{0};
    store.parallel_scan(3, {}, [&](const hashmere::pair &) { count++; });
    CHECK(count == 1000);
    CHECK(store.random()->key[0] == 'k');
    CHECK(store.erase_many(keys) == 2 && store.size() == 998);
}

static void whole(hashmere::store &store) {
    CHECK(store.stats().items == store.size() && store.clients().at(0).sets > 0 && store.check().is_clean());
    CHECK(store.len_exact() == store.size());
    const auto before = store.size();
    store.set("expired", "v", hashmere::attributes().after(1ms));
    std::this_thread::sleep_for(20ms);
    CHECK(store.size() == before + 1 && store.len_exact() == before);
    store.compact();
    CHECK(store.size() == before);
    CHECK(fails(HM_E_INVALID_STATE, [&] { store.sync(); }));
    const std::string path = store.path();
    CHECK(path.size() > 16 && path.substr(path.size() - 15) == "operations.mere");
    CHECK(!store.is_read_only() && hashmere::store(path, hashmere::options().read_only()).is_read_only());
    store.clear();
    CHECK(store.size() == 0 && !store.random());
    CHECK(!hashmere::store::remove("absent"));

    hashmere::store other = new_store("moved", hashmere::options().fixed_key_len(2).busy_timeout(10ms).expected_items(9));
    hashmere::store taken = std::move(other);
    taken.set("ab", "x");
    CHECK(fails(HM_E_WRONG_LENGTH, [&] { taken.set("abc", "x"); }) && other.c() == nullptr);
    other = std::move(taken);
    CHECK(other.get("ab") == "x");
    auto durable = new_store("synced", hashmere::options().durable().sync_every(1h).segment_bytes(4096).leaf_bytes(256));
    durable.set("k", "v");
    durable.sync();
    auto resized = new_store("resized", hashmere::options().cache().max_bytes(8 << 20).segment_bytes(8192));
    CHECK(hashmere::store(resized.path(), hashmere::options().max_bytes(3 << 20)).stats().bytes_max == 3 << 20);
    CHECK(resized.stats().bytes_max == 3 << 20 && resized.stats().segments_offline == 0);
    CHECK(resized.stats().no_space_since_ms == 0);
    CHECK(fails(HM_E_BAD_OPTION, [&] { hashmere::store(resized.path(), hashmere::options().max_bytes(1000)); }));
    auto set = new_store("set", hashmere::options().no_values().permissions(0600).strict());
    set.set("member", "");
}

int main() {
    auto store = new_store("operations");
    reading(store);
    writing(store);
    conditions(store);
    counting(store);
    many(store);
    whole(store);
}
