// Regular expressions, parts, a scan from a key, a visitor of all keys; dump and load; a store by its name.
#include "test.hpp"

#include <cstdlib>
#include <hashmere/dump.hpp>
#include <set>
#include <stdexcept>

using hashmere::change, hashmere::filter;

static std::size_t found(const hashmere::store &store, const filter &which, hashmere::cursor from = hashmere::cursor::start) {
    std::size_t n = 0;
    for (const auto &pair : store.scan(which, from)) n += pair.key.size() > 0;
    return n;
}

static std::string beside(const std::string &name) { return std::string(std::getenv("HASHMERE_DIR")) + "/" + name; }

int main() {
    auto store = new_store("dump-cc");
    for (int i = 0; i < 1000; i++) store.set("k" + std::to_string(i), std::to_string(i));

    CHECK(found(store, filter().regex("^k[0-9]5$")) == 9);
    CHECK(fails(HM_E_BAD_PATTERN, [&] { store.scan(filter().regex("(")); }));
    std::set<std::string> all;
    for (std::uint32_t part = 0; part < 4; part++)
        for (const auto &pair : store.scan(filter().part(part, 4).keys_only())) CHECK(all.emplace(pair.key).second);
    CHECK(all.size() == 1000);
    CHECK(fails(HM_E_BAD_PART, [&] { store.scan(filter().part(4, 4)); }));
    CHECK(fails(HM_E_BAD_PART, [&] { store.scan(filter().part(0, 0)); }));

    CHECK(!store.cursor_of("absent"));
    auto scan = store.scan({}, *store.cursor_of("k500"));
    CHECK(scan.next()->key == "k500");

    CHECK(store.update_each(filter().prefix("k9"), [](const hashmere::pair &old) { return change::set(std::string(old.value) + "!"); }) == 111);
    CHECK(store.get("k99") == "99!");
    CHECK(store.update_each({}, [](const hashmere::pair &) { return change::keep(); }) == 0);
    int calls = 0;
    try {
        store.update_each({}, [&](const hashmere::pair &) -> change {
            if (++calls == 3) throw std::runtime_error("enough");
            return change::keep();
        });
        CHECK(false);
    } catch (const std::runtime_error &) {
        CHECK(calls == 3);
    }
    CHECK(store.update_each(filter().prefix("k9"), [](const hashmere::pair &) { return change::remove(); }) == 111);
    CHECK(*store.expected().update_each({}, [](const hashmere::pair &) { return change::keep(); }) == 0);

    const std::string file = beside("all-cc.jsonl");
    CHECK(hashmere::dump(store, file) == 889);
    CHECK(hashmere::named::load("copy-cc", file) == 889);
    CHECK(hashmere::named::dump("copy-cc", file, hashmere::format::tsv, filter().prefix("k1")) == 111);
    auto other = new_store("other-cc");
    CHECK(hashmere::load(other, file, hashmere::format::tsv) == 111 && other.get("k123") == "123");
    CHECK(fails(HM_E_MALFORMED, [&] { hashmere::load(other, file); }));
    CHECK(std::remove(file.c_str()) == 0);
    CHECK(fails(HM_E_IO, [&] { hashmere::load(other, file); }));

    CHECK(hashmere::named::check("copy-cc").is_clean() && hashmere::named::stats("copy-cc").items == 889);
    CHECK(hashmere::named::backup("copy-cc", beside("saved-cc.mere")).items == 889);
    CHECK(fails(HM_E_BACKUP_EXISTS, [&] { hashmere::named::backup("copy-cc", beside("saved-cc.mere")); }));
    CHECK(hashmere::store::remove(beside("saved-cc.mere")) && hashmere::store::remove("copy-cc"));
    CHECK(fails(HM_E_NOT_FOUND, [&] { hashmere::named::check("copy-cc"); }));
}
