// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file log_text.hpp
/// How the text of a line is put together: by a stream, and by a format with `{}`. A part of log.hpp.
///
/// Numbers, truth values, characters, strings and pointers are written without a stream of the standard library and without its locale;
/// of anything else its own `operator<<` is used.
#ifndef HASHMERE_LOG_TEXT_HPP
#define HASHMERE_LOG_TEXT_HPP

#include "detail.hpp"

#include <charconv>
#include <cstring>
#include <hashmere_log.h>
#include <sstream>

#if defined(__cpp_consteval)
#define HASHMERE_CONSTEVAL consteval
#else
#define HASHMERE_CONSTEVAL constexpr
#endif

namespace hashmere {

namespace detail {

/// Text that grows: in its own room as long as it fits there, then in a string.
class growing {
public:
    growing() noexcept {} // the room stays as it is
    growing(const growing &) = delete;
    growing &operator=(const growing &) = delete;

    void append(const char *data, std::size_t size) {
        if (size == 0) return;
        if (longer_.empty()) {
            if (size <= sizeof room_ - size_) {
                std::memcpy(room_ + size_, data, size);
                size_ += size;
                return;
            }
            longer_.assign(room_, size_);
        }
        longer_.append(data, size);
    }
    void append(std::string_view text) { append(text.data(), text.size()); }
    bytes text() const noexcept { return longer_.empty() ? bytes(room_, size_) : bytes(longer_); }

private:
    char room_[512];
    std::size_t size_ = 0;
    std::string longer_;
};

template <class T, class = void> struct is_streamed : std::false_type {};
template <class T>
struct is_streamed<T, std::void_t<decltype(std::declval<std::ostream &>() << std::declval<const T &>())>> : std::true_type {};

template <class N> void put_number(growing &to, N number) {
#if defined(__cpp_lib_to_chars)
    constexpr bool is_shortest = true;
#else
    constexpr bool is_shortest = std::is_integral_v<N>; // libraries that lack it for numbers with a fraction
#endif
    char digits[64];
    if constexpr (is_shortest) {
        to.append(digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits));
    } else {
        to.append(digits, static_cast<std::size_t>(std::snprintf(digits, sizeof digits, "%.17g", static_cast<double>(number))));
    }
}

/// Appends a value.
template <class T> void put(growing &to, const T &value) {
    if constexpr (std::is_same_v<T, bool>) {
        to.append(value ? "true" : "false");
    } else if constexpr (std::is_same_v<T, char>) {
        to.append(&value, 1);
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
        put_number(to, static_cast<long long>(value));
    } else if constexpr (std::is_integral_v<T>) {
        put_number(to, static_cast<unsigned long long>(value));
    } else if constexpr (std::is_same_v<T, float>) {
        put_number(to, value);
    } else if constexpr (std::is_floating_point_v<T>) {
        put_number(to, static_cast<double>(value));
    } else if constexpr (std::is_convertible_v<const T &, const char *>) {
        const char *string = value;
        to.append(string ? string : "(null)");
    } else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
        to.append(std::string_view(value));
    } else if constexpr (std::is_convertible_v<const T &, const void *>) {
        char digits[24];
        const int size = std::snprintf(digits, sizeof digits, "%p", static_cast<const void *>(value));
        to.append(digits, static_cast<std::size_t>(size));
    } else {
        static_assert(is_streamed<T>::value, "there is no operator<< that writes this to a std::ostream");
        std::ostringstream stream;
        stream << value;
        to.append(stream.str());
    }
}

/// How many places for arguments a format has.
constexpr std::size_t places(std::string_view how) noexcept {
    std::size_t n = 0;
    for (std::size_t i = 0; i + 1 < how.size(); i++) {
        if (how[i] == '{' && how[i + 1] == '}') n++;
        if ((how[i] == '{' || how[i] == '}') && (how[i + 1] == how[i] || how[i + 1] == '}')) i++;
    }
    return n;
}

/// Appends a format up to its next place, and takes that much off it. False: there is no place any more.
inline bool put_until_place(growing &to, std::string_view &how) {
    for (std::size_t i = 0; i < how.size(); i++) {
        if ((how[i] != '{' && how[i] != '}') || i + 1 == how.size()) continue;
        const bool is_place = how[i] == '{' && how[i + 1] == '}', is_twice = how[i + 1] == how[i];
        if (!is_place && !is_twice) continue;
        to.append(how.data(), is_place ? i : i + 1);
        how.remove_prefix(i + 2);
        if (is_place) return true;
        i = static_cast<std::size_t>(-1); // on with the first that is left
    }
    to.append(how);
    how = {};
    return false;
}

inline void put_all(growing &to, std::string_view how) {
    // A place without an argument is text.
    while (put_until_place(to, how)) to.append("{}");
}
template <class First, class... Rest>
void put_all(growing &to, std::string_view how, const First &first, const Rest &...rest) {
    // An argument without a place goes to the end.
    if (!put_until_place(to, how)) to.append(" ");
    put(to, first);
    put_all(to, how, rest...);
}

/// Not a constant: a call while compiling is an error of the compiler.
inline void the_format_has_another_number_of_places_than_there_are_arguments() {}

template <class T> struct as_is {
    using type = T;
};

} // namespace detail

/// A format for these arguments: `{}` is a place for the next one, `{{` and `}}` are braces; a place is always empty. From C++20
/// on it must be a constant, with as many places as there are arguments. Before, a place without an argument stays as it is, and an
/// argument without a place is appended.
template <class... Args> class checked_format {
public:
    template <class Text, class = std::enable_if_t<std::is_convertible_v<const Text &, std::string_view>>>
    HASHMERE_CONSTEVAL checked_format(const Text &how) : how_(how) {
#if defined(__cpp_consteval)
        if (detail::places(how_) != sizeof...(Args))
            detail::the_format_has_another_number_of_places_than_there_are_arguments();
#endif
    }
    /// Its text.
    constexpr std::string_view text() const noexcept { return how_; }

private:
    std::string_view how_;
};
/// The format of a call, which does not say itself what the arguments are.
template <class... Args> using format_string = checked_format<typename detail::as_is<Args>::type...>;

/// A line that is put together with `<<`, and logged when it goes, at the end of the statement. Nothing is written if its level is not
/// wanted. A failure is thrown, unless there is an exception on its way; with `expected()` it is not reported.
template <class Policy> class line_stream {
public:
    line_stream(hm_log *log, int level) noexcept : log_(hm_log_enabled(log, level) ? log : nullptr), level_(level) {}
    line_stream(const line_stream &) = delete;
    line_stream &operator=(const line_stream &) = delete;
    ~line_stream() noexcept(!std::is_same_v<Policy, throwing>) {
        if (!log_) return;
        hm_error e;
        const bytes text = text_.text();
        const int rc = hm_log_line(log_, level_, text.data(), text.size(), &e);
        if constexpr (std::is_same_v<Policy, throwing>) {
            if (rc > 0 && std::uncaught_exceptions() == 0) detail::raise(failure(e));
        }
    }
    /// Appends a value.
    template <class T> line_stream &operator<<(const T &value) {
        if (log_) detail::put(text_, value);
        return *this;
    }

private:
    hm_log *log_;
    int level_;
    detail::growing text_;
};

} // namespace hashmere

#endif
