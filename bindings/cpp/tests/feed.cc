// The change feed in C++: events of each kind, resuming, a place that is gone, transactions, clears, descriptors, errors.
#include "test.hpp"

#include <hashmere/feed.hpp>
#include <poll.h>
#include <thread>

using namespace std::chrono_literals;
using hashmere::feed_kind;
using hashmere::operation;
using hashmere::reset_reason;

namespace {

hashmere::store fed_store(const std::string &name) { return new_store(name, hashmere::options().feed(1 << 20).feed_values().origin(7)); }

const auto values = hashmere::feed_options().values();

/// What there is, as texts.
std::vector<std::string> all(hashmere::feed &feed) {
    static const char *const operations[] = {"read", "set", "delete", "touch", "evict", "expire"};
    std::vector<std::string> texts;
    while (const auto event = feed.next()) {
        switch (event->kind()) {
        case feed_kind::reset: texts.push_back("reset " + std::to_string(static_cast<int>(event->reason()))); break;
        case feed_kind::synced: texts.push_back("synced"); break;
        case feed_kind::clear: texts.push_back("clear"); break;
        default:
            texts.push_back(std::string(operations[static_cast<int>(event->operation())]) + ' ' + std::string(event->key()) +
                            (event->value() ? " " + std::string(*event->value()) : ""));
        }
    }
    return texts;
}
using texts = std::vector<std::string>;

void events() {
    auto store = fed_store("cpp-feed");
    store.set("a", "1");
    hashmere::feed feed(store, "start", values), users(store, "now", hashmere::feed_options().prefix("user:"));
    CHECK(all(feed) == texts{"reset 0", "read a 1", "synced"});
    store.set("b", "2", hashmere::attributes().flags(9));
    store.set(hashmere::key("h", 77), "v");
    store.erase("a");
    CHECK(feed.lag() == 3);
    const auto set = feed.next(30s);
    CHECK(set && set->kind() == feed_kind::change && set->operation() == operation::set && set->flags() == 9 && set->origin() == 7);
    CHECK(set->version() > 0 && set->ts_ms() > 0 && set->expires_at_ms() == 0 && !set->transaction() && !set->supplied_hash());
    CHECK(set->value_len() == 1 && set->token() == feed.token() && feed.next()->supplied_hash() == 77u);
    CHECK(all(feed) == texts{"delete a"} && feed.lag() == 0);
    store.set("user:1", "x");
    const auto user = users.next();
    CHECK(user->key() == "user:1" && !user->value() && user->value_state() == hashmere::value_state::not_kept);
    store.clear();
    CHECK(all(users) == texts{"clear"});
}

void resuming() {
    auto store = fed_store("cpp-feed");
    hashmere::feed feed(store, "now", values);
    const auto before = feed.token();
    hashmere::write_batch batch;
    batch.set("a", "1").set("b", "2");
    store.write_batch(batch);
    store.set("c", "3");
    const auto first = feed.next();
    CHECK(first->transaction()->index == 0 && first->transaction()->len == 2 && first->token() == before);
    const auto id = first->transaction()->id;
    const auto second = feed.next();
    CHECK(second->transaction()->index == 1 && second->transaction()->id == id);
    hashmere::feed whole(store, before, values), rest(store, second->token(), values);
    CHECK(all(whole) == texts{"set a 1", "set b 2", "set c 3"} && all(rest) == texts{"set c 3"});
    for (int i = 0; i < 60000; i++) store.set("k", std::to_string(i));
    hashmere::feed gone(store, before, values);
    CHECK(gone.next()->reason() == reset_reason::gone && all(gone).size() == 4 + 1);
}

void switching() {
    auto store = new_store("cpp-feed");
    CHECK(!hashmere::feed::info(store) && fails(HM_E_FEED_OFF, [&] { hashmere::feed feed(store); }));
    CHECK(fails(HM_E_INVALID_STATE, [&] { hashmere::feed::enable(store, 5); }) && !hashmere::feed::disable(store));
    hashmere::feed::enable(store, 1 << 20, true);
    CHECK(hashmere::feed::info(store)->values && hashmere::feed::info(store)->number > 0);
    CHECK(fails(HM_E_BAD_TOKEN, [&] { hashmere::feed feed(store, "yesterday"); }));
    hashmere::feed feed(store);
    CHECK(hashmere::feed::disable(store) && fails(HM_E_FEED_OFF, [&] { feed.next(); }));
    CHECK(feed.try_next().why().code == HM_E_FEED_OFF);
}

bool is_readable(int fd, int ms) {
    pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, ms) == 1 && (one.revents & POLLIN) != 0;
}

void loops() {
    auto store = fed_store("cpp-feed");
    hashmere::feed feed(store, "now", values);
    const int fd = feed.ready_fd();
    CHECK(!is_readable(fd, 20));
    store.set("a", "1");
    CHECK(is_readable(fd, 30000) && all(feed) == texts{"set a 1"} && !is_readable(fd, 20));
    std::thread writer([&] {
        std::this_thread::sleep_for(30ms);
        store.set("b", "2");
        store.set("c", "3");
    });
    std::string keys;
    for (const auto &event : feed) {
        keys += std::string(event.key());
        if (keys.size() == 2) break;
    }
    writer.join();
    CHECK(keys == "bc");
    hashmere::feed moved = std::move(feed);
    CHECK(!moved.next(1ms));
}

} // namespace

int main() {
    events();
    resuming();
    switching();
    loops();
}
