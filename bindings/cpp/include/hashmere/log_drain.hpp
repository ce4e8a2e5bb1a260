// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file log_drain.hpp
/// Lines that come out of the log: where they are written, and how they are read. A part of log.hpp.
#ifndef HASHMERE_LOG_DRAIN_HPP
#define HASHMERE_LOG_DRAIN_HPP

#include "detail.hpp"

#include <chrono>
#include <functional>
#include <hashmere_log.h>
#include <variant>

namespace hashmere {

/// How important a line is.
enum class level {
    off = HM_LEVEL_OFF, ///< No lines at all; a line cannot have it.
    error = HM_LEVEL_ERROR,
    warn = HM_LEVEL_WARN,
    info = HM_LEVEL_INFO,
    debug = HM_LEVEL_DEBUG,
    trace = HM_LEVEL_TRACE
};

/// A line as a reader of the log sees it. It is lent: what it points to is valid until the call that showed it returns.
class log_line {
public:
    explicit log_line(const hm_line &c) noexcept : c_(&c) {}
    bytes text() const noexcept { return bytes(c_->text.data, c_->text.len); }
    hashmere::level level() const noexcept { return static_cast<hashmere::level>(c_->level); }
    /// What the process calls itself.
    bytes process() const noexcept { return bytes(c_->process.data, c_->process.len); }
    std::uint32_t pid() const noexcept { return c_->pid; }
    /// A small number that no other thread has.
    std::uint32_t thread() const noexcept { return c_->thread; }
    std::chrono::system_clock::time_point time() const noexcept {
        using namespace std::chrono;
        return system_clock::time_point(duration_cast<system_clock::duration>(nanoseconds(c_->time_ns)));
    }
    /// How many lines of the thread were lost before this one.
    std::uint32_t lost() const noexcept { return c_->lost; }
    /// Whether it was not logged, but only says how many lines were lost.
    bool is_note() const noexcept { return (c_->flags & HM_LINE_NOTE) != 0; }
    std::size_t fields() const noexcept { return c_->field_count; }
    /// The key of a field.
    bytes key(std::size_t index) const noexcept { return bytes(c_->fields[index].key.data, c_->fields[index].key.len); }
    /// The value of a field.
    std::variant<bytes, std::int64_t, std::uint64_t, double, bool> value(std::size_t index) const noexcept {
        const hm_field &field = c_->fields[index];
        switch (field.kind) {
        case HM_FIELD_INTEGER: return field.integer;
        case HM_FIELD_NATURAL: return field.natural;
        case HM_FIELD_REAL: return field.real;
        case HM_FIELD_TRUTH: return field.truth != 0;
        default: return bytes(field.text.data, field.text.len);
        }
    }
    /// All of it.
    const hm_line &c() const noexcept { return *c_; }

private:
    const hm_line *c_;
};

namespace detail {
/// A function that lines are shown to, and what it throws.
struct shown_lines {
    std::function<void(const log_line &)> act;
    barrier wall;
    static void show(void *user, const hm_line *line) noexcept {
        auto &self = *static_cast<shown_lines *>(user);
        self.wall.run([&] { self.act(log_line(*line)); });
    }
};
} // namespace detail

/// A ring that a thread has, or had last: see ::hm_ring.
struct ring {
    std::uint64_t number;
    bool is_owned;
    std::uint32_t thread;
    std::uint32_t pid;
    std::string process;
    std::uint64_t bytes_waiting;
    std::uint64_t unreported_drops; ///< Lines that were dropped last, of which nothing has told yet.
};

/// Where a drainer writes lines, and how: see ::hm_drain_options.
class output {
public:
    /// Standard output, as it is now.
    static output standard() { return output(HM_TO_STDOUT); }
    /// A descriptor, which is copied.
    static output descriptor(int fd) {
        output made(HM_TO_FD);
        made.c_.fd = fd;
        return made;
    }
    /// A file, appended to.
    static output file(std::string path) {
        output made(HM_TO_FILE);
        made.path_ = std::move(path);
        return made;
    }
    /// A function, called from the drainer's thread. What it throws ends nothing; `drainer::stop` throws the last of it.
    static output callback(std::function<void(const log_line &)> act) {
        output made(HM_TO_CALLBACK);
        made.act_ = std::move(act);
        return made;
    }
    output json() && { return c_.format = HM_LOG_JSON, std::move(*this); }
    output colour() && { return c_.format = HM_LOG_COLOUR, std::move(*this); }
    /// Before the file has more bytes it becomes `path.1`, and so on up to `path.keep`.
    output rotate(std::uint64_t max_bytes, std::uint64_t keep) && {
        c_.max_bytes = max_bytes;
        c_.keep = keep;
        return std::move(*this);
    }
    /// Lines that are less important are taken and not written.
    output only(hashmere::level least) && { return c_.level = static_cast<std::uint64_t>(least), std::move(*this); }
    /// if another process drains, waits until that one stops or dies.
    output standby() && { return c_.flags |= HM_DRAIN_STANDBY, std::move(*this); }

private:
    explicit output(std::uint64_t to) noexcept {
        c_.size = sizeof c_;
        c_.to = to;
    }
    /// Does something with the options of C; the function, if there is one, moves to where it outlives who calls it.
    template <class Act> int with(std::unique_ptr<detail::shown_lines> &shown, Act &&act) {
        if (act_) {
            shown.reset(new detail::shown_lines{std::move(act_), {}});
            c_.show = &detail::shown_lines::show;
            c_.user = shown.get();
        }
        if (c_.to == HM_TO_FILE) c_.path = path_.c_str();
        return act(c_);
    }
    hm_drain_options c_ = {};
    std::string path_;
    std::function<void(const log_line &)> act_;
    friend class drainer;
    friend class manual_drainer;
};

/// A thread that drains a log. Move-only; drains the rest when it is destroyed; a failure of that is not reported.
class drainer {
public:
    drainer(drainer &&other) noexcept = default;
    drainer &operator=(drainer &&other) noexcept {
        c_ = std::move(other.c_); // ends ours, before its function goes
        shown_ = std::move(other.shown_);
        return *this;
    }
    /// Whether it drains: not yet, if it waits for another one, and not any more if it failed.
    bool is_active() const {
        return detail::must([&](hm_error *e) { return hm_drainer_is_active(c_.get(), e); }) == HM_OK;
    }
    /// Drains the rest and ends. Returns how many lines it has taken in all.
    std::uint64_t stop() {
        auto lines = try_stop();
        if (shown_) shown_->wall.lift();
        return lines.value();
    }
    /// The same with a result, and without what the function of an output threw.
    result<std::uint64_t> try_stop() {
        std::uint64_t lines = 0;
        return detail::answer<expecting, std::uint64_t>(
            [&](hm_error *e) { return hm_drainer_stop(c_.release(), &lines, e); }, [&](int) { return lines; });
    }

private:
    static void end(hm_drainer *opened) noexcept { hm_drainer_stop(opened, nullptr, nullptr); }

    drainer() noexcept = default;
    int start(hm_log *log, output to, hm_error *e) {
        hm_drainer *started = nullptr;
        const int rc = to.with(shown_, [&](const hm_drain_options &c) { return hm_log_drain(log, &c, &started, e); });
        c_.reset(started);
        return rc;
    }
    std::unique_ptr<detail::shown_lines> shown_; // outlives the thread
    detail::owned<hm_drainer, end> c_;
    template <class> friend class log_calls;
};

/// The role of the drainer, for a loop of your own; one thread at a time may use it. Move-only; drains the rest when it goes.
class manual_drainer {
public:
    manual_drainer(manual_drainer &&other) noexcept = default;
    manual_drainer &operator=(manual_drainer &&other) noexcept {
        c_ = std::move(other.c_); // ends ours, before its function goes
        shown_ = std::move(other.shown_);
        return *this;
    }
    /// A descriptor that is readable while there is something to drain. It belongs to this object: do not close or read it.
    int ready_fd() const {
        int fd = -1;
        detail::must([&](hm_error *e) { return hm_manual_drainer_ready_fd(c_.get(), &fd, e); });
        return fd;
    }
    /// Takes the lines that are in the rings and writes them out; returns how many. Throws what a function of an output threw.
    std::uint64_t poll() {
        auto lines = try_poll();
        if (shown_) shown_->wall.lift();
        return lines.value();
    }
    /// The same with a result, and without what the function threw.
    result<std::uint64_t> try_poll() {
        std::uint64_t lines = 0;
        return detail::answer<expecting, std::uint64_t>([&](hm_error *e) { return hm_manual_drainer_poll(c_.get(), &lines, e); },
                                                        [&](int) { return lines; });
    }
    /// Without an event loop: waits for something to drain; may return early.
    void wait(std::chrono::milliseconds timeout) {
        detail::must([&](hm_error *e) { return hm_manual_drainer_wait(c_.get(), detail::ms_of(timeout), e); });
    }
    /// Drains the rest and gives the role back. Returns how many lines that were.
    std::uint64_t finish() {
        std::uint64_t lines = 0;
        auto done = detail::answer<expecting, std::uint64_t>(
            [&](hm_error *e) { return hm_manual_drainer_finish(c_.release(), &lines, e); }, [&](int) { return lines; });
        if (shown_) shown_->wall.lift();
        return done.value();
    }

private:
    static void end(hm_manual_drainer *opened) noexcept { hm_manual_drainer_finish(opened, nullptr, nullptr); }

    manual_drainer() noexcept = default;
    int start(hm_log *log, output to, hm_error *e) {
        hm_manual_drainer *started = nullptr;
        const int rc = to.with(shown_, [&](const hm_drain_options &c) { return hm_manual_drainer_open(log, &c, &started, e); });
        c_.reset(started);
        return rc;
    }
    std::unique_ptr<detail::shown_lines> shown_; // outlives what calls it
    detail::owned<hm_manual_drainer, end> c_;
    template <class> friend class log_calls;
};

/// Reads the lines of a log that were drained, without consuming them. One thread at a time may use it.
class follower {
public:
    /// A descriptor that is readable while there is a line; `next` takes that back when it finds none. It belongs to this object.
    int ready_fd() const {
        int fd = -1;
        detail::must([&](hm_error *e) { return hm_follower_ready_fd(c_.get(), &fd, e); });
        return fd;
    }
    /// The next line, for which it waits so long; good until the next call. Empty: there is none.
    std::optional<log_line> next(std::chrono::milliseconds timeout = {}) { return try_next(timeout).value(); }
    /// The same with a result.
    result<std::optional<log_line>> try_next(std::chrono::milliseconds timeout = {}) {
        const auto ms = detail::ms_of(timeout);
        return detail::answer<expecting, std::optional<log_line>>(
            [&](hm_error *e) { return hm_follower_next(c_.get(), ms, line_.get(), e); },
            [&](int rc) { return rc == HM_OK ? std::optional<log_line>(*line_) : std::nullopt; });
    }
    /// Bytes of lines that were written over before this came to read them.
    std::uint64_t missed_bytes() const {
        std::uint64_t n = 0;
        detail::must([&](hm_error *e) { return hm_follower_missed_bytes(c_.get(), &n, e); });
        return n;
    }

private:
    explicit follower(hm_follower *opened) : c_(opened), line_(new hm_line()) {}
    detail::owned<hm_follower, hm_follower_close> c_;
    std::unique_ptr<hm_line> line_;
    template <class> friend class log_calls;
};

} // namespace hashmere

#endif
