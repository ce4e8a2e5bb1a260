// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file log.hpp
/// One ordered log of many threads and processes: the C++ interface to hashmere_log.h. Not a part of hashmere.hpp.
///
/// @code{.cpp}
/// hashmere::log log(store, "log");                                     // any process opens the same one
/// auto drainer = log.drain(hashmere::output::file("/var/tmp/jobs.log")); // one of them drains it
/// log.info("{} workers of {}", 4, name);                               // with a format
/// log.warn() << "slow: " << ms << " ms";                               // or a stream
/// log.line(hashmere::level::warn, "slow request", {{"path", "/index"}, {"ms", 1200}});
/// HASHMERE_LOG(log, debug) << "state: " << describe(all);              // not wanted: describe() is not called
/// HASHMERE_LOGF(log, debug, "state: {}", describe(all));
/// drainer.stop();                                                      // drains the rest
/// @endcode
///
/// Calls throw `error`; those of `log::expected()` return a `result`. They say whether there is a line: false if its level is not wanted, or
/// it was dropped. A line that is not wanted is not put together: that costs a call and a load, and what its arguments cost. The macros do
/// not evaluate these either, and leave out what is above HM_LOG_LEVEL (see hashmere_logf.h) when they are compiled. What hashmere_log.h
/// says about threads, fork and lifetimes holds here as well.
#ifndef HASHMERE_LOG_HPP
#define HASHMERE_LOG_HPP

#include "log_drain.hpp"
#include "log_text.hpp"
#include "store.hpp"

#include <initializer_list>
#include <vector>

/// Logs a line with `<<`, at a level such as `info`, if that is compiled and wanted; else nothing behind it is evaluated. A statement.
#define HASHMERE_LOG(log, of)                                                                                    \
    static_cast<int>(::hashmere::level::of) > HM_LOG_LEVEL || !(log).enabled(::hashmere::level::of)                \
        ? static_cast<void>(0)                                                                                   \
        : ::hashmere::detail::finished() & (log).at(::hashmere::level::of)

/// The same with a format: `HASHMERE_LOGF(log, debug, "{} of {}", i, n)`. An expression: whether there is a line.
#define HASHMERE_LOGF(log, of, ...)                                                                              \
    (static_cast<int>(::hashmere::level::of) <= HM_LOG_LEVEL && (log).enabled(::hashmere::level::of)               \
         ? (log).format(::hashmere::level::of, __VA_ARGS__)                                                      \
         : false)

namespace hashmere {

namespace detail {
/// Makes nothing of a stream, so that a statement with one has no value.
struct finished {
    template <class Stream> void operator&(Stream &&) const noexcept {}
};
} // namespace detail

/// How a log is opened: see ::hm_log_options.
class log_options {
public:
    /// Only opens it.
    log_options &existing() noexcept { return c_.flags |= HM_LOG_EXISTING, *this; }
    log_options &rings(std::uint64_t rings) noexcept { return c_.rings = rings, *this; }
    log_options &ring_bytes(std::uint64_t ring_bytes) noexcept { return c_.ring_bytes = ring_bytes, *this; }
    log_options &history_bytes(std::uint64_t history_bytes) noexcept { return c_.history_bytes = history_bytes, *this; }
    /// Sets the level of the log, for all processes. Not `off`.
    log_options &level(hashmere::level level) noexcept { return c_.level = static_cast<std::uint64_t>(level), *this; }
    /// A full ring is waited for, so long.
    log_options &block(std::chrono::milliseconds timeout) noexcept {
        c_.on_full = HM_LOG_BLOCK;
        c_.full_timeout_ms = timeout.count() < 1 ? 1 : static_cast<std::uint64_t>(timeout.count());
        return *this;
    }
    /// A line for which there is no room is dropped, and counted.
    log_options &drop() noexcept { return c_.on_full = HM_LOG_DROP, *this; }
    /// The oldest lines give way, and are counted.
    log_options &overwrite() noexcept { return c_.on_full = HM_LOG_OVERWRITE, *this; }
    /// Lines stay in the log until a drainer takes them; else, without a drainer, they go to standard output.
    log_options &keep() noexcept { return c_.on_no_drainer = HM_LOG_KEEP, *this; }
    /// Lines that are too long are refused, not split.
    log_options &refuse_long() noexcept { return c_.on_too_long = HM_LOG_REFUSE, *this; }
    const hm_log_options &c() const noexcept { return c_; }

private:
    hm_log_options c_ = [] {
        hm_log_options c = {};
        c.size = sizeof c;
        return c;
    }();
};

/// A key with a value: a number, a truth value, or text. Key and text must live until the record is logged.
class field {
public:
    template <class T> field(bytes key, const T &value) noexcept {
        c_.key = {key.data(), key.size()};
        if constexpr (std::is_same_v<T, bool>) {
            c_.kind = HM_FIELD_TRUTH;
            c_.truth = value;
        } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
            c_.kind = HM_FIELD_INTEGER;
            c_.integer = value;
        } else if constexpr (std::is_integral_v<T>) {
            c_.kind = HM_FIELD_NATURAL;
            c_.natural = value;
        } else if constexpr (std::is_floating_point_v<T>) {
            c_.kind = HM_FIELD_REAL;
            c_.real = static_cast<double>(value);
        } else {
            const bytes text(value);
            c_.kind = HM_FIELD_TEXT;
            c_.text = {text.data(), text.size()};
        }
    }
    const hm_field &c() const noexcept { return c_; }

private:
    hm_field c_ = {};
};
static_assert(sizeof(field) == sizeof(hm_field), "fields are handed over as they are");

/// The calls on an open log. `Policy` is `throwing` (as `log` has them) or `expecting` (as `log::expected()` has them); `returns<T>` is `T` or
/// `result<T>`. Any number of threads may use it.
template <class Policy> class log_calls {
public:
    template <class T> using returns = typename Policy::template type<T>;
    explicit log_calls(hm_log *c) noexcept : c_(c) {}

    /// Whether lines of this level are wanted. One load.
    bool enabled(hashmere::level of) const noexcept { return hm_log_enabled(c_, static_cast<int>(of)) != 0; }
    /// The least important level that is wanted.
    returns<hashmere::level> level() const {
        int n = 0;
        return detail::answer<Policy, hashmere::level>([&](hm_error *e) { return hm_log_get_level(c_, &n, e); },
                                                       [&](int) { return static_cast<hashmere::level>(n); });
    }
    /// Sets it, for all processes, at once.
    returns<void> level(hashmere::level least) {
        return detail::answer<Policy, void>([&](hm_error *e) { return hm_log_set_level(c_, static_cast<int>(least), e); },
                                            [](int) {});
    }

    /// Logs a line of text: any bytes.
    returns<bool> line(hashmere::level of, bytes text) {
        return logged([&](hm_error *e) { return hm_log_line(c_, static_cast<int>(of), text.data(), text.size(), e); });
    }
    /// Logs a text with fields.
    returns<bool> line(hashmere::level of, bytes text, const field *fields, std::size_t count) {
        // A `field` is an ::hm_field and nothing else.
        const auto *all = reinterpret_cast<const hm_field *>(fields);
        return logged([&](hm_error *e) {
            return hm_log_line_fields(c_, static_cast<int>(of), text.data(), text.size(), all, count, e);
        });
    }
    returns<bool> line(hashmere::level of, bytes text, std::initializer_list<field> fields) {
        return line(of, text, fields.begin(), fields.size());
    }
    /// Logs a line that is put together of a format and arguments, if it is wanted.
    template <class... Args> returns<bool> format(hashmere::level of, format_string<Args...> how, const Args &...args) {
        detail::growing text;
        const bool is_wanted = enabled(of);
        if (is_wanted) detail::put_all(text, how.text(), args...);
        const auto put = [&](hm_error *e) {
            return hm_log_line(c_, static_cast<int>(of), text.text().data(), text.text().size(), e);
        };
        return logged([&](hm_error *e) { return is_wanted ? put(e) : static_cast<int>(HM_SKIPPED); });
    }
    /// A line to write to with `<<`.
    line_stream<Policy> at(hashmere::level of) { return line_stream<Policy>(c_, static_cast<int>(of)); }

    /// @name One for each level
    /// @{
    line_stream<Policy> error() { return at(hashmere::level::error); }
    line_stream<Policy> warn() { return at(hashmere::level::warn); }
    line_stream<Policy> info() { return at(hashmere::level::info); }
    line_stream<Policy> debug() { return at(hashmere::level::debug); }
    line_stream<Policy> trace() { return at(hashmere::level::trace); }
    template <class... Args> returns<bool> error(format_string<Args...> how, const Args &...args) {
        return format<Args...>(hashmere::level::error, how, args...);
    }
    template <class... Args> returns<bool> warn(format_string<Args...> how, const Args &...args) {
        return format<Args...>(hashmere::level::warn, how, args...);
    }
    template <class... Args> returns<bool> info(format_string<Args...> how, const Args &...args) {
        return format<Args...>(hashmere::level::info, how, args...);
    }
    template <class... Args> returns<bool> debug(format_string<Args...> how, const Args &...args) {
        return format<Args...>(hashmere::level::debug, how, args...);
    }
    template <class... Args> returns<bool> trace(format_string<Args...> how, const Args &...args) {
        return format<Args...>(hashmere::level::trace, how, args...);
    }
    /// @}

    /// Waits until all lines that were logged before were delivered. False: they were not in time.
    returns<bool> flush(std::chrono::milliseconds timeout) {
        return logged([&](hm_error *e) { return hm_log_flush(c_, detail::ms_of(timeout), e); });
    }
    /// Becomes the drainer, in a thread of this process.
    returns<drainer> drain(output to = output::standard()) {
        drainer made;
        return detail::answer<Policy, drainer>([&](hm_error *e) { return made.start(c_, std::move(to), e); },
                                               [&](int) { return std::move(made); });
    }
    /// Becomes the drainer, without a thread: the caller polls.
    returns<manual_drainer> drain_manual(output to = output::standard()) {
        manual_drainer made;
        return detail::answer<Policy, manual_drainer>([&](hm_error *e) { return made.start(c_, std::move(to), e); },
                                                      [&](int) { return std::move(made); });
    }
    /// The rings that threads have, or had, at about this moment.
    returns<std::vector<ring>> rings() const {
        std::vector<ring> all;
        auto keep = [](void *user, const hm_ring *c) noexcept {
            std::string process(static_cast<const char *>(c->process.data), c->process.len);
            static_cast<std::vector<ring> *>(user)->push_back(
                {c->ring, c->is_owned != 0, c->thread, c->pid, std::move(process), c->bytes_waiting, c->unreported_drops});
            return 0;
        };
        return detail::answer<Policy, std::vector<ring>>([&](hm_error *e) { return hm_each_ring(c_, keep, &all, e); },
                                                         [&](int) { return std::move(all); });
    }
    /// Reads lines that are drained from now on, and `last` lines before.
    returns<follower> follow(std::uint64_t last = 0) const {
        hm_follower *made = nullptr;
        return detail::answer<Policy, follower>([&](hm_error *e) { return hm_log_follow(c_, last, &made, e); },
                                                [&](int) { return follower(made); });
    }
    /// Figures of about now.
    returns<hm_log_stats> stats() const {
        hm_log_stats s = {};
        s.size = sizeof s;
        return detail::answer<Policy, hm_log_stats>([&](hm_error *e) { return hm_log_get_stats(c_, &s, e); },
                                                    [&](int) { return s; });
    }
    /// The log of C, for the macros of hashmere_logf.h.
    hm_log *c() const noexcept { return c_; }

protected:
    template <class Call> static returns<bool> logged(Call &&call) {
        return detail::answer<Policy, bool>(call, [](int rc) { return rc == HM_OK; });
    }
    hm_log *c_;
};

/// An open log. Move-only; closes itself. Its calls, inherited from `log_calls`, throw.
class log : public log_calls<throwing> {
public:
    /// Opens the log of this name in a store, creating it if it is missing.
    explicit log(const store &in, const std::string &name, const log_options &how = {}) : log(open(in, name, how).value()) {}
    /// The same with a result.
    static result<log> open(const store &in, const std::string &name, const log_options &how = {}) {
        hm_log *opened = nullptr;
        return detail::answer<expecting, log>(
            [&](hm_error *e) { return hm_log_open(in.c(), name.c_str(), &how.c(), &opened, e); },
            [&](int) { return log(opened); });
    }
    /// The names of the logs of a store.
    static std::vector<std::string> list(const store &in) {
        std::vector<std::string> all;
        auto keep = [](void *user, hm_bytes name) noexcept {
            static_cast<std::vector<std::string> *>(user)->emplace_back(static_cast<const char *>(name.data), name.len);
            return 0;
        };
        detail::must([&](hm_error *e) { return hm_each_log(in.c(), keep, &all, e); });
        return all;
    }
    /// Takes a log's name off it; false: there is none.
    static bool remove(store &in, const std::string &name) {
        return detail::must([&](hm_error *e) { return hm_log_remove(in.c(), name.c_str(), e); }) == HM_OK;
    }
    log(log &&other) noexcept : log_calls(std::exchange(other.c_, nullptr)) {}
    log &operator=(log &&other) noexcept {
        if (this != &other) {
            hm_log_close(c_);
            c_ = std::exchange(other.c_, nullptr);
        }
        return *this;
    }
    log(const log &) = delete;
    log &operator=(const log &) = delete;
    ~log() { hm_log_close(c_); }

    /// The same calls, which return `result` and do not throw. Good as long as this log is.
    log_calls<expecting> expected() const noexcept { return log_calls<expecting>(c_); }

private:
    explicit log(hm_log *opened) noexcept : log_calls(opened) {}
};

} // namespace hashmere

#endif
