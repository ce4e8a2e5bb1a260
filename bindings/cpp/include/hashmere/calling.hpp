// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file calling.hpp
/// How the outcomes of C become those of C++.
#ifndef HASHMERE_CALLING_HPP
#define HASHMERE_CALLING_HPP

#include "detail.hpp"

namespace hashmere {

/// How calls of C are made with one way of reporting errors.
template <class Policy> class answers {
public:
    /// `T` or `result<T>`.
    template <class T> using returns = typename Policy::template type<T>;

protected:
    /// Runs a call; `make` turns a result that is no error into the value.
    template <class T, class Call, class Make> static returns<T> answer(Call &&call, Make &&make) {
        return detail::answer<Policy, T>(call, make);
    }
    template <class Call> static returns<void> done(Call &&call) {
        return answer<void>(call, [](int) {});
    }
    template <class Call> static returns<bool> yes(Call &&call) {
        return answer<bool>(call, [](int rc) { return rc == HM_OK; });
    }
    template <class T, class Call, class Make> static returns<std::optional<T>> maybe(Call &&call, Make &&make) {
        return answer<std::optional<T>>(
            call, [&](int rc) { return rc == HM_OK ? std::optional<T>(make()) : std::nullopt; });
    }
    /// A value that did not fit was found as well.
    static int found(int rc) noexcept { return rc == HM_BUFFER_TOO_SMALL ? HM_OK : rc; }

    template <class Read> static returns<std::optional<std::string>> text(Read &&read) {
        std::string value;
        return maybe<std::string>(
            [&](hm_error *e) {
                return detail::grow(
                    value, [&](char *to, std::size_t room, std::size_t &len) { return read(to, room, len, e); });
            },
            [&] { return std::move(value); });
    }
    template <class Read> static returns<std::string> sure(Read &&read) {
        std::string value;
        return answer<std::string>(
            [&](hm_error *e) {
                return detail::grow(
                    value, [&](char *to, std::size_t room, std::size_t &len) { return read(to, room, len, e); });
            },
            [&](int) { return std::move(value); });
    }
    template <class Read> static returns<std::optional<item>> whole_item(Read &&read) {
        std::string value;
        hm_metadata m = {};
        return maybe<item>(
            [&](hm_error *e) {
                return detail::grow(value, [&](char *to, std::size_t room, std::size_t &len) {
                    const int rc = read(to, room, m, e);
                    len = static_cast<std::size_t>(m.value_len);
                    return rc;
                });
            },
            [&] { return item{std::move(value), metadata(m)}; });
    }
    template <class Call> static returns<std::optional<stored>> write(Call &&call) {
        hm_stored s = {};
        return maybe<stored>([&](hm_error *e) { return call(&s, e); }, [&] { return stored(s); });
    }
    template <class N = std::uint64_t, class Call> static returns<std::optional<N>> count(Call &&call) {
        N now = 0;
        return maybe<N>([&](hm_error *e) { return call(&now, e); }, [&] { return now; });
    }
    static outcome outcome_of(int rc) noexcept {
        return rc == HM_OK ? outcome::stored : rc == HM_MISMATCH ? outcome::mismatch : outcome::absent;
    }
    template <class Call> static returns<cas_outcome> compare(Call &&call) {
        hm_stored s = {};
        return answer<cas_outcome>([&](hm_error *e) { return call(&s, e); },
                                [&](int rc) { return cas_outcome{outcome_of(rc), stored(s)}; });
    }
    template <class Call> static returns<report> answer_check(Call &&call) {
        report found = {};
        hm_report r = {};
        r.size = sizeof r;
        auto keep = [](void *user, hm_bytes code, std::uint64_t offset, hm_bytes what) noexcept {
            static_cast<report *>(user)->problems.push_back(
                {std::string(bytes(code.data, code.len)), offset, std::string(bytes(what.data, what.len))});
            return 0;
        };
        return answer<report>([&](hm_error *e) { return call(&r, keep, &found, e); },
                              [&](int) {
                                  found.items = r.items;
                                  found.segments = r.segments;
                                  found.leaves = r.leaves;
                                  found.dead_locks = r.dead_locks;
                                  return std::move(found);
                              });
    }
    template <class F, class Call> static returns<updated> visit(F &f, Call &&call) {
        detail::visitor<F> v{f, std::nullopt, {}};
        return answer<updated>(
            [&](hm_error *e) {
                const int rc = call(&detail::visitor<F>::visit, &v, e);
                return v.wall.lift(), rc;
            },
            [](int rc) {
                return rc == HM_OK ? updated::stored : rc == HM_UNCHANGED ? updated::unchanged : updated::removed;
            });
    }
};

/// A store of C, and how it is called.
template <class Policy> class calling : public answers<Policy> {
public:
    template <class T> using returns = typename answers<Policy>::template returns<T>;

    /// The store of C, for calls that are not here. NULL if it was moved away.
    hm_store *c() const noexcept { return c_; }

protected:
    explicit calling(hm_store *c) noexcept : c_(c) {}
    hm_store *c_;
};

} // namespace hashmere

#endif
