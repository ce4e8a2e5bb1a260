// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file result.hpp
/// Errors: as exceptions, and as results.
#ifndef HASHMERE_RESULT_HPP
#define HASHMERE_RESULT_HPP

#include <hashmere.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#if defined(__cpp_exceptions)
#define HASHMERE_EXCEPTIONS 1
#else
#define HASHMERE_EXCEPTIONS 0
#endif

namespace hashmere {

/// What went wrong.
struct failure {
    int code = 0;          ///< One of ::hm_result, positive.
    int os_error = 0;      ///< `errno` of the system call that failed, or 0.
    std::uint32_t pid = 0; ///< HM_E_BUSY: the process that holds the lock.
    std::string text;      ///< What happened and what to do.

    failure() = default;
    explicit failure(const hm_error &e) : code(e.code), os_error(e.os_error), pid(e.pid), text(e.text, e.text_len) {}
};

/// The exception of every failed call.
class error : public std::runtime_error {
public:
    explicit error(failure f) : std::runtime_error(f.text), failure_(std::move(f)) {}
    /// One of ::hm_result, positive.
    int code() const noexcept { return failure_.code; }
    /// Its name, such as "Full".
    const char *name() const noexcept { return hm_result_name(failure_.code); }
    /// All that is known.
    const failure &why() const noexcept { return failure_; }

private:
    failure failure_;
};

namespace detail {
[[noreturn]] inline void raise(const failure &f) {
#if HASHMERE_EXCEPTIONS
    throw error(f);
#else
    std::fprintf(stderr, "hashmere: error E%d: %s\n", f.code, f.text.c_str());
    std::abort();
#endif
}
struct nothing {};
} // namespace detail

/// A value or what went wrong, of a call through `expected()`.
template <class T> class [[nodiscard]] result {
    using held = std::conditional_t<std::is_void_v<T>, detail::nothing, T>;

public:
    result(held value) : state_(std::in_place_index<0>, std::move(value)) {}
    result(failure f) : state_(std::in_place_index<1>, std::move(f)) {}

    /// Whether there is a value.
    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    /// The code of the failure; HM_OK if there is none.
    int code() const noexcept { return has_value() ? HM_OK : std::get_if<1>(&state_)->code; }
    /// What went wrong; only if there is no value.
    const failure &why() const { return std::get<1>(state_); }

    /// The value; throws `error` if there is none.
    held &value() & {
        check();
        return *std::get_if<0>(&state_);
    }
    const held &value() const & {
        check();
        return *std::get_if<0>(&state_);
    }
    held &&value() && {
        check();
        return std::move(*std::get_if<0>(&state_));
    }
    held &operator*() & { return value(); }
    const held &operator*() const & { return value(); }
    held &&operator*() && { return std::move(*this).value(); }
    held *operator->() { return &value(); }
    const held *operator->() const { return &value(); }

private:
    void check() const {
        if (!has_value()) detail::raise(*std::get_if<1>(&state_));
    }
    std::variant<held, failure> state_;
};

/// How calls report errors: by exceptions. Their type is the value's.
struct throwing {
    template <class T> using type = T;
    template <class T, class Make> static T ok(Make &&make) { return make(); }
    template <class T> [[noreturn]] static T fail(failure f) { detail::raise(f); }
};

/// How calls report errors: by results.
struct expecting {
    template <class T> using type = result<T>;
    template <class T, class Make> static result<T> ok(Make &&make) {
        if constexpr (std::is_void_v<T>) {
            make();
            return result<T>(detail::nothing());
        } else {
            return result<T>(make());
        }
    }
    template <class T> static result<T> fail(failure f) { return result<T>(std::move(f)); }
};

} // namespace hashmere

#endif
