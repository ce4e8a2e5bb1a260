// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file calls.hpp
/// All calls on a store, once, for both ways of reporting errors.
#ifndef HASHMERE_CALLS_HPP
#define HASHMERE_CALLS_HPP

#include "by_key.hpp"
#include "scan.hpp"

namespace hashmere {

/// The calls on an open store. `Policy` is `throwing` (as `store` has them) or `expecting` (as `store::expected()` has them);
/// `returns<T>` is `T` or `result<T>`. hashmere.h says at each function what it does, guarantees and can fail with.
template <class Policy> class calls : public by_key<Policy> {
public:
    template <class T> using returns = typename calling<Policy>::template returns<T>;
    using by_key<Policy>::add;
    using by_key<Policy>::erase;
    using by_key<Policy>::contains;
    using by_key<Policy>::get;
    using by_key<Policy>::get_item;
    using by_key<Policy>::incr;
    using by_key<Policy>::set;
    using by_key<Policy>::update_with;

    /// @name Access by number
    /// An `entry_id` that is stale is error HM_E_STALE; a `uid` may come to mean another key.
    /// @{

    returns<std::optional<hashmere::uid>> uid_of(bytes key) const {
        std::uint32_t n = 0;
        return base::template maybe<hashmere::uid>([&](hm_error *e) { return hm_uid_of(c_, key.data(), key.size(), &n, e); },
                                    [&] { return hashmere::uid(n); });
    }
    returns<std::optional<hashmere::entry_id>> id_of(bytes key) const {
        std::uint64_t n = 0;
        return base::template maybe<hashmere::entry_id>([&](hm_error *e) { return hm_id_of(c_, key.data(), key.size(), &n, e); },
                                       [&] { return hashmere::entry_id(n); });
    }
    returns<std::string> get(hashmere::entry_id at) const {
        return sure([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return hm_id_get(c_, static_cast<std::uint64_t>(at), to, room, &len, nullptr, e);
        });
    }
    returns<std::string> get(hashmere::uid at) const {
        return sure([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return hm_uid_get(c_, static_cast<std::uint32_t>(at), to, room, &len, nullptr, e);
        });
    }
    returns<std::string> key_of(hashmere::entry_id at) const {
        return sure([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return hm_id_key(c_, static_cast<std::uint64_t>(at), to, room, &len, e);
        });
    }
    returns<std::string> key_of(hashmere::uid at) const {
        return sure([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return hm_uid_key(c_, static_cast<std::uint32_t>(at), to, room, &len, e);
        });
    }
    returns<void> set(hashmere::entry_id at, bytes value) {
        return done([&](hm_error *e) {
            return hm_id_set(c_, static_cast<std::uint64_t>(at), value.data(), value.size(), nullptr, e);
        });
    }
    returns<void> set(hashmere::uid at, bytes value) {
        return done([&](hm_error *e) {
            return hm_uid_set(c_, static_cast<std::uint32_t>(at), value.data(), value.size(), nullptr, e);
        });
    }
    returns<void> erase(hashmere::entry_id at) {
        return done([&](hm_error *e) { return hm_id_delete(c_, static_cast<std::uint64_t>(at), e); });
    }
    returns<void> erase(hashmere::uid at) {
        return done([&](hm_error *e) { return hm_uid_delete(c_, static_cast<std::uint32_t>(at), e); });
    }
    template <class F> returns<updated> update_with(hashmere::entry_id at, F &&f) {
        return visit(f, [&](hm_visitor visitor, void *user, hm_error *e) {
            return hm_id_update_with(c_, static_cast<std::uint64_t>(at), visitor, user, nullptr, e);
        });
    }
    template <class F> returns<updated> update_with(hashmere::uid at, F &&f) {
        return visit(f, [&](hm_visitor visitor, void *user, hm_error *e) {
            return hm_uid_update_with(c_, static_cast<std::uint32_t>(at), visitor, user, nullptr, e);
        });
    }
    /// @}

    /// @name Keys with a hash of the caller's
    /// @{

    returns<std::optional<std::string>> get(const hashed &k) const {
        return text([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return hm_hashed_get(c_, k.key.data(), k.key.size(), k.hash, to, room, &len, e);
        });
    }
    returns<std::optional<item>> get_item(const hashed &k) const {
        return whole_item([&](void *to, std::size_t room, hm_metadata &m, hm_error *e) {
            return hm_hashed_get_item(c_, k.key.data(), k.key.size(), k.hash, to, room, &m, e);
        });
    }
    returns<bool> contains(const hashed &k) const {
        return yes([&](hm_error *e) { return hm_hashed_contains(c_, k.key.data(), k.key.size(), k.hash, e); });
    }
    returns<std::optional<hashmere::uid>> uid_of(const hashed &k) const {
        std::uint32_t n = 0;
        return base::template maybe<hashmere::uid>(
            [&](hm_error *e) { return hm_hashed_uid_of(c_, k.key.data(), k.key.size(), k.hash, &n, e); },
            [&] { return hashmere::uid(n); });
    }
    returns<stored> set(const hashed &k, bytes value, const attributes &with = {}) {
        hm_stored s = {};
        return base::template answer<stored>(
            [&](hm_error *e) {
                return hm_hashed_set(c_, k.key.data(), k.key.size(), k.hash, value.data(), value.size(), &with.c(), &s,
                                     e);
            },
            [&](int) { return s; });
    }
    returns<std::optional<stored>> add(const hashed &k, bytes value, const attributes &with = {}) {
        return write([&](hm_stored *s, hm_error *e) {
            return hm_hashed_add(c_, k.key.data(), k.key.size(), k.hash, value.data(), value.size(), &with.c(), s, e);
        });
    }
    returns<bool> erase(const hashed &k) {
        return yes([&](hm_error *e) { return hm_hashed_delete(c_, k.key.data(), k.key.size(), k.hash, e); });
    }
    returns<std::optional<std::uint64_t>> incr(const hashed &k, std::uint64_t by = 1,
                                               std::optional<counter> create = {}) {
        return count([&](std::uint64_t *now, hm_error *e) {
            return hm_hashed_incr(c_, k.key.data(), k.key.size(), k.hash, by, create ? &create->c : nullptr, now, e);
        });
    }
    template <class F> returns<updated> update_with(const hashed &k, F &&f) {
        return visit(f, [&](hm_visitor visitor, void *user, hm_error *e) {
            return hm_hashed_update_with(c_, k.key.data(), k.key.size(), k.hash, visitor, user, nullptr, e);
        });
    }
    /// @}

    /// @name All keys
    /// @{

    /// Every pair that passes the filter, from a cursor on.
    returns<hashmere::scan> scan(const filter &which = {}, cursor from = cursor::start) const {
        hm_scan *s = nullptr;
        const hm_filter c = which.c();
        return base::template answer<hashmere::scan>(
            [&](hm_error *e) { return hm_scan_open(c_, &c, static_cast<std::uint64_t>(from), &s, e); },
            [&](int) { return hashmere::scan(s); });
    }
    /// Scans with several threads. `f(const pair &)` is called from all of them; if it returns a `bool`, false ends the call. It
    /// must not throw.
    template <class F> returns<void> parallel_scan(std::size_t threads, const filter &which, F &&f) const {
        using function = std::remove_reference_t<F>;
        const hm_filter c = which.c();
        auto show = [](void *user, const hm_pair *p) noexcept -> int {
            return detail::goes_on(*static_cast<function *>(user), pair(*p)) ? 0 : 1;
        };
        void *user = const_cast<void *>(static_cast<const void *>(std::addressof(f)));
        return done([&](hm_error *e) { return hm_parallel_scan(c_, threads, &c, show, user, e); });
    }
    /// A pair chosen at random; empty: the store is.
    returns<std::optional<owned_pair>> random() const {
        std::optional<owned_pair> found;
        auto keep = [&](const pair &p) { found.emplace(p); };
        detail::shown<decltype(keep)> to{keep, {}};
        return base::template answer<std::optional<owned_pair>>(
            [&](hm_error *e) {
                const int rc = hm_random(c_, &decltype(to)::pair, &to, e);
                return to.wall.lift(), rc;
            },
            [&](int) { return std::move(found); });
    }
    /// @}

    /// @name The whole store
    /// @{

    /// How many keys are stored, at once; expired ones, which no read returns, count until they are cleaned away.
    returns<std::uint64_t> size() const {
        std::uint64_t n = 0;
        return base::template answer<std::uint64_t>([&](hm_error *e) { return hm_len(c_, &n, e); }, [&](int) { return n; });
    }
    /// How many keys a scan returns now. It looks at every key.
    returns<std::uint64_t> len_exact() const {
        std::uint64_t n = 0;
        return base::template answer<std::uint64_t>([&](hm_error *e) { return hm_len_exact(c_, &n, e); },
                                                    [&](int) { return n; });
    }
    returns<void> clear() {
        return done([&](hm_error *e) { return hm_clear(c_, e); });
    }
    returns<void> sync() {
        return done([&](hm_error *e) { return hm_sync(c_, e); });
    }
    /// Returns the bytes that became free.
    returns<std::uint64_t> compact() {
        std::uint64_t n = 0;
        return base::template answer<std::uint64_t>([&](hm_error *e) { return hm_compact(c_, &n, e); }, [&](int) { return n; });
    }
    returns<hashmere::stats> stats() const {
        hm_stats s = {};
        s.size = sizeof s;
        return base::template answer<hashmere::stats>([&](hm_error *e) { return hm_get_stats(c_, &s, e); }, [&](int) { return s; });
    }
    returns<std::vector<client>> clients() const {
        std::vector<client> all;
        auto keep = [](void *user, const hm_client *c) noexcept {
            std::string name(static_cast<const char *>(c->name.data), c->name.len);
            static_cast<std::vector<client> *>(user)->push_back(
                {c->slot, c->pid, c->since_ms, c->hits, c->misses, c->sets, c->deletes, c->pins, std::move(name)});
            return 0;
        };
        return base::template answer<std::vector<client>>([&](hm_error *e) { return hm_each_client(c_, keep, &all, e); },
                                           [&](int) { return std::move(all); });
    }
    /// Reads the whole store and names what contradicts itself.
    returns<report> check() const {
        report found = {};
        hm_report r = {};
        r.size = sizeof r;
        auto keep = [](void *user, hm_bytes code, std::uint64_t offset, hm_bytes what) noexcept {
            static_cast<report *>(user)->problems.push_back(
                {std::string(bytes(code.data, code.len)), offset, std::string(bytes(what.data, what.len))});
            return 0;
        };
        return base::template answer<report>([&](hm_error *e) { return hm_check(c_, &r, keep, &found, e); },
                              [&](int) {
                                  found.items = r.items;
                                  found.segments = r.segments;
                                  found.leaves = r.leaves;
                                  found.dead_locks = r.dead_locks;
                                  return std::move(found);
                              });
    }
    /// Copies the store to a new file as it is at one moment.
    returns<backup_report> backup(const std::string &path, if_there there = if_there::refuse) const {
        return backup(path, there, [](std::uint64_t, std::uint64_t) {});
    }
    /// The same; `progress(done, of)` is called with the number of keys copied and about how many there are. It must not throw.
    template <class F> returns<backup_report> backup(const std::string &path, if_there there, F &&progress) const {
        using function = std::remove_reference_t<F>;
        auto tell = [](void *user, std::uint64_t part, std::uint64_t of) noexcept {
            (*static_cast<function *>(user))(part, of);
        };
        void *user = const_cast<void *>(static_cast<const void *>(std::addressof(progress)));
        const std::uint64_t flags = there == if_there::replace ? HM_REPLACE : 0;
        backup_report r = {};
        r.size = sizeof r;
        return base::template answer<backup_report>(
            [&](hm_error *e) { return hm_backup(c_, path.c_str(), flags, tell, user, &r, e); }, [&](int) { return r; });
    }
    returns<std::string> path() const {
        return sure([&](char *to, std::size_t room, std::size_t &len, hm_error *e) {
            const int rc = hm_path(c_, to, room, &len, e);
            return rc == HM_BUFFER_TOO_SMALL ? (++len, rc) : rc; // the NUL needs room too
        });
    }
    returns<bool> is_read_only() const {
        return yes([&](hm_error *e) { return hm_is_read_only(c_, e); });
    }
    /// @}

protected:
    using typename by_key<Policy>::base;
    using by_key<Policy>::by_key;
    using base::c_;
    using base::count;
    using base::done;
    using base::text;
    using base::visit;
    using base::whole_item;
    using base::write;
    using base::yes;
    using base::sure;
    friend class store;
};

} // namespace hashmere

#endif
