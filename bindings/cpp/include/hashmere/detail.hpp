// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file detail.hpp
/// Between the calls and C: callbacks that keep exceptions on this side, and what C has opened.
#ifndef HASHMERE_DETAIL_HPP
#define HASHMERE_DETAIL_HPP

#include "types.hpp"

#include <memory>

namespace hashmere {
namespace detail {

/// Runs `f`, which is called back from C, and keeps what it throws until C has returned.
class barrier {
public:
    template <class F> bool run(F &&f) noexcept {
#if HASHMERE_EXCEPTIONS
        try {
            f();
            return true;
        } catch (...) {
            thrown_ = std::current_exception();
            return false;
        }
#else
        f();
        return true;
#endif
    }
    /// Throws it.
    void lift() {
#if HASHMERE_EXCEPTIONS
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
#endif
    }

private:
#if HASHMERE_EXCEPTIONS
    std::exception_ptr thrown_;
#endif
};

/// Calls `f` with what it is shown. If it returns a `bool`, false ends the call early.
template <class F, class... Args> bool goes_on(F &f, Args &&...args) {
    if constexpr (std::is_same_v<std::invoke_result_t<F &, Args...>, bool>) {
        return f(std::forward<Args>(args)...);
    } else {
        f(std::forward<Args>(args)...);
        return true;
    }
}

/// A callable with a barrier, as the `user` of a callback.
template <class F> struct shown {
    F &f;
    barrier wall;

    static int pair(void *user, const hm_pair *c) noexcept {
        auto &self = *static_cast<shown *>(user);
        bool on = true;
        return self.wall.run([&] { on = goes_on(self.f, hashmere::pair(*c)); }) && on ? 0 : 1;
    }
    static int value(void *user, std::size_t index, const hm_bytes *c) noexcept {
        auto &self = *static_cast<shown *>(user);
        bool on = true;
        auto show = [&] {
            on = goes_on(self.f, index, c ? std::optional<bytes>(bytes(c->data, c->len)) : std::nullopt);
        };
        return self.wall.run(show) && on ? 0 : 1;
    }
};

/// A visitor with its last answer, which C reads after it has returned.
template <class F> struct visitor {
    F &f;
    std::optional<change> answer;
    barrier wall;

    static void visit(void *user, const hm_pair *old, hm_change *c) noexcept {
        auto &self = *static_cast<visitor *>(user);
        const bool done = self.wall.run(
            [&] { self.answer.emplace(self.f(old ? std::optional<pair>(pair(*old)) : std::nullopt)); });
        if (!done) return; // left as it was
        c->action = self.answer->action();
        c->value = {self.answer->value().data(), self.answer->value().size()};
        c->attributes = self.answer->attached().c();
    }
    /// The same for one key after the other: what is thrown ends the whole call, as an answer that is none.
    static void visit_each(void *user, const hm_pair *old, hm_change *c) noexcept {
        auto &self = *static_cast<visitor *>(user);
        auto ask = [&] { self.answer.emplace(self.f(pair(*old))); };
        if (!self.wall.run(ask)) {
            c->action = -1;
            return;
        }
        c->action = self.answer->action();
        c->value = {self.answer->value().data(), self.answer->value().size()};
        c->attributes = self.answer->attached().c();
    }
};

/// The elements of a range as C has them.
template <class Keys> std::vector<hm_bytes> array_of(const Keys &keys) {
    std::vector<hm_bytes> array;
    for (const bytes key : keys) array.push_back({key.data(), key.size()});
    return array;
}

/// Reads a value of any length into a string, which starts with what it has room for.
template <class Read> int grow(std::string &value, Read &&read) {
    value.resize(value.capacity());
    for (;;) {
        std::size_t len = 0;
        const int rc = read(value.data(), value.size(), len);
        value.resize(rc == HM_OK || rc == HM_BUFFER_TOO_SMALL ? len : 0);
        if (rc != HM_BUFFER_TOO_SMALL) return rc;
    }
}

/// What a call of C says, as one way of reporting errors has it; `make` turns a result that is no error into the value.
template <class Policy, class T, class Call, class Make> typename Policy::template type<T> answer(Call &&call, Make &&make) {
    hm_error e;
    const int rc = call(&e);
    if (rc > 0) return Policy::template fail<T>(failure(e));
    return Policy::template ok<T>([&]() -> T { return make(rc); });
}
/// A call of C; throws what is an error.
template <class Call> int must(Call &&call) {
    hm_error e;
    const int rc = call(&e);
    if (rc > 0) raise(failure(e));
    return rc;
}
template <class T, void (*Close)(T *)> struct closes {
    void operator()(T *opened) const noexcept { Close(opened); }
};
template <class T, void (*Close)(T *)> using owned = std::unique_ptr<T, closes<T, Close>>;
inline std::uint64_t ms_of(std::chrono::milliseconds time) noexcept {
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

} // namespace detail
} // namespace hashmere

#endif
