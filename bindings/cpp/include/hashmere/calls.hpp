// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file calls.hpp
/// All calls on a store, once, for both ways of reporting errors.
#ifndef HASHMERE_CALLS_HPP
#define HASHMERE_CALLS_HPP

#include "scan.hpp"
#include "transaction.hpp"

namespace hashmere {

/// The calls on an open store. `Policy` is `throwing` (as `store` has them) or `expecting` (as `store::expected()` has them);
/// `returns<T>` is `T` or `result<T>`. hashmere.h says at each function what it does, guarantees and can fail with.
template <class Policy> class calls : public transactions<Policy> {
public:
    template <class T> using returns = typename calling<Policy>::template returns<T>;

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
    /// Calls `f(const pair &)`, which returns a `change`, with every key that passes the filter, and does what it returns, each key
    /// atomically; returns how many keys were stored or removed. What `f` throws ends the call.
    template <class F> returns<std::uint64_t> update_each(const filter &which, F &&f) {
        using function = std::remove_reference_t<F>;
        detail::visitor<function> v{f, std::nullopt, {}};
        std::uint64_t changed = 0;
        const hm_filter c = which.c();
        return base::template answer<std::uint64_t>(
            [&](hm_error *e) {
                const int rc = hm_update_each(c_, &c, &detail::visitor<function>::visit_each, &v, &changed, e);
                return v.wall.lift(), rc;
            },
            [&](int) { return changed; });
    }
    /// Where a scan begins with this key; empty: it is absent.
    returns<std::optional<cursor>> cursor_of(const key &k) const {
        std::uint64_t at = 0;
        return base::template maybe<cursor>([&](hm_error *e) { return hm_cursor_of_at(c_, &k.c(), &at, e); },
                                            [&] { return cursor(at); });
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
        return base::template answer_check(
            [&](hm_report *r, hm_show_problem keep, void *user, hm_error *e) { return hm_check(c_, r, keep, user, e); });
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
    using typename transactions<Policy>::base;
    using transactions<Policy>::transactions;
    using base::c_;
    using base::done;
    using base::yes;
    using base::sure;
    friend class store;
};

} // namespace hashmere

#endif
