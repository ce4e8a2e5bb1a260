// One of the programs of README.md.
#include <chrono>
#include <hashmere.hpp>
#include <iostream>
#include <sstream>
#include <thread>

using namespace std::chrono_literals;

constexpr int sums = 2000, steps = 200;
constexpr auto time_limit = 600s;

static void must(bool is, const char *what) {
    if (!is) throw std::runtime_error(what);
}

template <class F> static void wait_until(const char *what, F &&f) {
    const auto end = std::chrono::steady_clock::now() + time_limit;
    while (!f()) {
        must(std::chrono::steady_clock::now() < end, what);
        std::this_thread::sleep_for(1ms);
    }
}

static std::string greeting(const std::string &name) {
    std::string bytes;
    for (int i = 0; i < 256; i++) bytes += static_cast<char>(i);
    return bytes + name;
}

static void next_number(hashmere::store &store) {
    for (;;) {
        const auto seen = store.get_item("cas").value();
        const auto next = std::to_string(std::stoull(seen.value) + 1);
        if (store.cas("cas", seen.metadata.version, next)) return;
    }
}

/// The same bytes with a hash are another key.
static hashmere::key with_hash(const std::string &bytes) { return hashmere::key(bytes, 7); }

static void read_of(hashmere::store &store, const std::string &peer) {
    const auto key = "from:" + peer;
    wait_until("a value of another language never came", [&] { return store.contains(key); });
    const auto item = store.get_item(key).value();
    must(item.value == greeting(peer), "another language stored other bytes");
    must(item.metadata.flags == peer.size(), "another language stored other flags");
    const auto ttl = store.ttl(key).value();
    must(ttl > 2000s && ttl <= 3600s, "another language stored another time to live");
    must(store.get(with_hash(key)) == peer, "another language's key with a hash is another one");
    const hashmere::entry_id id{std::stoull(store.get("id:" + peer).value())};
    must(store.get(id) == peer && store.key_of(id) == key, "another language's entry id means another key");
}

[[noreturn]] static void forever(hashmere::store &store, const std::string &me) {
    for (unsigned n = 0;; n++) {
        const auto key = "noise:" + me + ":" + std::to_string(n % 50);
        store.set(key, std::string(n % 700, static_cast<char>('a' + n % 26)));
        if (n % 7 == 0) store.erase(key);
        store.incr("noise:" + me, 1, hashmere::counter(1));
    }
}

static void work(hashmere::store &store, const std::string &me, const std::vector<std::string> &all) {
    const hashmere::counter one(1);
    store.incr("arrived", 1, one);
    wait_until("the others do not come", [&] { return std::stoull(store.get("arrived").value()) >= all.size(); });

    for (int i = 0; i < sums; i++) {
        store.incr("sum", 1, one);
        store.incr("sum:" + me, 1, one);
    }
    for (int i = 0; i < steps; i++) {
        next_number(store);
        store.update_with("log", [&](std::optional<hashmere::pair> old) {
            return hashmere::change::set((old ? std::string(old->value) : "") + me + ";");
        });
    }
    const std::string mine = "from:" + me;
    store.set(with_hash(mine), me);
    store.set("id:" + me, std::to_string(static_cast<std::uint64_t>(store.id_of(with_hash(mine)).value())));
    const auto flags = static_cast<std::uint32_t>(me.size());
    store.set(mine, greeting(me), hashmere::attributes().flags(flags).after(1h));
    for (const auto &peer : all) read_of(store, peer);

    store.set("brief:" + me, "x", hashmere::attributes().after(50ms));
    std::this_thread::sleep_for(80ms);
    must(!store.contains("brief:" + me), "what had expired was there");
    store.dec_ref("refs");
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    try {
        hashmere::store store(argv[1]);
        if (std::string(argv[3]) == "forever") forever(store, argv[2]);
        std::vector<std::string> all;
        std::istringstream names(argv[3]);
        for (std::string name; std::getline(names, name, ',');) all.push_back(name);
        work(store, argv[2], all);
    } catch (const std::exception &e) {
        std::cerr << "cpp: " << e.what() << '\n';
        return 1;
    }
}
