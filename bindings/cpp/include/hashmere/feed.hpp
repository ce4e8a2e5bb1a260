// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file feed.hpp
/// What happens to the keys of a store, in order: the C++ interface to hashmere_feed.h. Not a part of hashmere.hpp.
///
/// @code{.cpp}
/// hashmere::store store("sessions", hashmere::options().feed(64 << 20).feed_values());
/// hashmere::feed feed(store, token_of_before, hashmere::feed_options().values()); // or "start": every key first, or "now"
/// for (const hashmere::feed_event &event : feed) {                                // waits without end
///     apply(event);
///     keep(event.token());
/// }
/// @endcode
///
/// What hashmere_feed.h says about promises, threads, fork and lifetimes holds here as well.
#ifndef HASHMERE_FEED_HPP
#define HASHMERE_FEED_HPP

#include "detail.hpp"
#include "store.hpp"

#include <chrono>
#include <hashmere_feed.h>
#include <iterator>

namespace hashmere {

/// What an event of a feed is: see ::hm_feed_kind.
enum class feed_kind {
    reset = HM_FEED_RESET,
    read = HM_FEED_READ,
    synced = HM_FEED_SYNCED,
    change = HM_FEED_CHANGE,
    clear = HM_FEED_CLEAR
};

/// What happened to a key: see ::hm_feed_operation.
enum class operation {
    read = HM_FEED_OP_READ,
    set = HM_FEED_OP_SET,
    erase = HM_FEED_OP_DELETE,
    touch = HM_FEED_OP_TOUCH,
    evict = HM_FEED_OP_EVICT,
    expire = HM_FEED_OP_EXPIRE
};

/// Why a consumer begins with a copy of every key: see ::hm_feed_reason.
enum class reset_reason { asked = HM_FEED_ASKED, gone = HM_FEED_GONE, other_feed = HM_FEED_OTHER_FEED, gap = HM_FEED_GAP };

/// Where the value of a change is: see ::hm_feed_value.
enum class value_state {
    absent = HM_FEED_VALUE_ABSENT,
    bytes = HM_FEED_VALUE_BYTES,
    not_kept = HM_FEED_VALUE_NOT_KEPT,
    superseded = HM_FEED_VALUE_SUPERSEDED
};

/// A transaction that a change is part of. Its changes follow each other.
struct transaction_part {
    std::uint64_t id;    ///< The same for all of them.
    std::uint32_t index; ///< Which of them this is, from 0.
    std::uint32_t len;   ///< How many there are.
};

/// One step of a feed. It is lent: what it points to is valid until the next call with the feed that returned it.
class feed_event {
public:
    explicit feed_event(const hm_feed_event &c) noexcept : c_(&c) {}
    feed_kind kind() const noexcept { return static_cast<feed_kind>(c_->kind); }
    hashmere::operation operation() const noexcept { return static_cast<hashmere::operation>(c_->operation); }
    /// Of a reset.
    reset_reason reason() const noexcept { return static_cast<reset_reason>(c_->reason); }
    bytes key() const noexcept { return bytes(c_->key.data, c_->key.len); }
    /// The value that the key has now, if it is here.
    std::optional<bytes> value() const noexcept {
        if (value_state() != hashmere::value_state::bytes) return std::nullopt;
        return bytes(c_->value.data, c_->value.len);
    }
    hashmere::value_state value_state() const noexcept { return static_cast<hashmere::value_state>(c_->value_state); }
    /// Length of the value, whether it is here or not.
    std::uint32_t value_len() const noexcept { return c_->value_len; }
    std::uint64_t version() const noexcept { return c_->version; }
    std::uint32_t flags() const noexcept { return c_->flags; }
    /// Wall clock in milliseconds since 1970; 0: never.
    std::uint64_t expires_at_ms() const noexcept { return c_->expires_at_ms; }
    /// `options::origin` of the handle that made the change.
    std::uint32_t origin() const noexcept { return c_->origin; }
    /// When it happened, in milliseconds since 1970.
    std::uint64_t ts_ms() const noexcept { return c_->ts_ms; }
    /// The transaction that it is part of.
    std::optional<transaction_part> transaction() const noexcept {
        if (c_->transaction_len == 0) return std::nullopt;
        return transaction_part{c_->transaction_id, c_->transaction_index, c_->transaction_len};
    }
    /// The hash that was given with the key.
    std::optional<std::uint64_t> supplied_hash() const noexcept {
        return c_->has_supplied_hash ? std::optional<std::uint64_t>(c_->supplied_hash) : std::nullopt;
    }
    /// Where a consumer resumes that has dealt with this event; of a reset empty: behind the event before.
    std::string token() const { return std::string(static_cast<const char *>(c_->token.data), c_->token.len); }
    /// All of it.
    const hm_feed_event &c() const noexcept { return *c_; }

private:
    const hm_feed_event *c_;
};

/// What a consumer gets: see ::hm_feed_options.
class feed_options {
public:
    /// Values come along; those that the feed does not keep are read from the store.
    feed_options &values(bool on = true) noexcept { return values_ = on, *this; }
    /// Only keys that begin with these bytes.
    feed_options &prefix(bytes with) { return prefix_ = std::string(with), *this; }
    hm_feed_options c() const noexcept {
        hm_feed_options c = {};
        c.size = sizeof c;
        c.flags = values_ ? HM_FEED_WITH_VALUES : 0;
        c.prefix = {prefix_.data(), prefix_.size()};
        return c;
    }

private:
    bool values_ = false;
    std::string prefix_;
};

/// The feed of a store: see ::hm_feed_info.
struct feed_info {
    std::uint64_t number, position, oldest, bytes;
    bool values;
};

/// A consumer of a store's changes. Move-only; one thread at a time may use it. As a range it waits without end.
class feed {
public:
    /// Follows the changes: "now", "start" (with every key first), or behind what was dealt with before, by its token.
    explicit feed(const store &in, const std::string &start = "now", const feed_options &how = {}) : event_(new hm_feed_event()) {
        const auto options = how.c();
        hm_feed *opened = nullptr;
        detail::must([&](hm_error *e) { return hm_feed_open(in.c(), start.c_str(), &options, &opened, e); });
        c_.reset(opened);
    }
    /// Makes the store keep about this many bytes of changes, for all processes that have it open. A feed that is there stays as it is.
    static void enable(store &in, std::uint64_t bytes, bool values = false) {
        detail::must([&](hm_error *e) { return hm_feed_enable(in.c(), bytes, values, e); });
    }
    /// Makes the store keep no changes; false: it kept none.
    static bool disable(store &in) {
        return detail::must([&](hm_error *e) { return hm_feed_disable(in.c(), e); }) == HM_OK;
    }
    /// The feed of a store; empty: it keeps no changes.
    static std::optional<feed_info> info(const store &in) {
        hm_feed_info c = {};
        c.size = sizeof c;
        const int rc = detail::must([&](hm_error *e) { return hm_feed_get_info(in.c(), &c, e); });
        if (rc != HM_OK) return std::nullopt;
        return feed_info{c.number, c.position, c.oldest, c.bytes, c.values != 0};
    }
    /// The next event, for which it waits so long; good until the next call. Empty: there is none.
    std::optional<feed_event> next(std::chrono::milliseconds timeout = {}) { return try_next(timeout).value(); }
    /// The same with a result.
    result<std::optional<feed_event>> try_next(std::chrono::milliseconds timeout = {}) {
        const auto ms = detail::ms_of(timeout);
        return detail::answer<expecting, std::optional<feed_event>>(
            [&](hm_error *e) { return hm_feed_next(c_.get(), ms, event_.get(), e); },
            [&](int rc) { return rc == HM_OK ? std::optional<feed_event>(*event_) : std::nullopt; });
    }
    /// Where it is: a consumer that is opened with this goes on behind the event that was returned last.
    std::string token() const {
        std::string text(192, 0);
        std::size_t len = 0;
        detail::must([&](hm_error *e) { return hm_feed_token(c_.get(), &text[0], text.size(), &len, e); });
        text.resize(len);
        return text;
    }
    /// A descriptor that is readable while there is an event; `next` takes that back when it finds none. It belongs to this object.
    int ready_fd() const {
        int fd = -1;
        detail::must([&](hm_error *e) { return hm_feed_ready_fd(c_.get(), &fd, e); });
        return fd;
    }
    /// How far behind the newest change it is, in positions.
    std::uint64_t lag() const {
        std::uint64_t n = 0;
        detail::must([&](hm_error *e) { return hm_feed_lag(c_.get(), &n, e); });
        return n;
    }

    /// Waits for each event, without end.
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = feed_event;
        using difference_type = std::ptrdiff_t;
        using pointer = const feed_event *;
        using reference = const feed_event &;
        reference operator*() const noexcept { return *at_; }
        pointer operator->() const noexcept { return &*at_; }
        iterator &operator++() {
            at_.reset();
            while (!at_) at_ = of_->next(std::chrono::hours(1));
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &a, const iterator &b) noexcept { return a.of_ == b.of_; }
        friend bool operator!=(const iterator &a, const iterator &b) noexcept { return !(a == b); }

    private:
        explicit iterator(feed *of) noexcept : of_(of) {}
        feed *of_;
        std::optional<feed_event> at_;
        friend class feed;
    };
    iterator begin() { return ++iterator(this); }
    iterator end() noexcept { return iterator(nullptr); }
    hm_feed *c() const noexcept { return c_.get(); }

private:
    detail::owned<hm_feed, hm_feed_close> c_;
    std::unique_ptr<hm_feed_event> event_;
};

} // namespace hashmere

#endif
