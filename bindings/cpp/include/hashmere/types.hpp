// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file types.hpp
/// The small values that calls take and return.
#ifndef HASHMERE_TYPES_HPP
#define HASHMERE_TYPES_HPP

#include "key.hpp"
#include "result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hashmere {

/// Everything about a present key except its bytes: see ::hm_metadata.
struct metadata {
    std::uint64_t value_len, version;
    std::uint64_t expires_at_ms; ///< 0 is never.
    hashmere::uid uid;
    std::uint32_t flags;

    metadata() noexcept : metadata(hm_metadata()) {}
    explicit metadata(const hm_metadata &c) noexcept
        : value_len(c.value_len), version(c.version), expires_at_ms(c.expires_at_ms), uid(hashmere::uid(c.uid)),
          flags(c.flags) {}
};

/// A write that took place: see ::hm_stored.
struct stored {
    std::uint64_t version;
    hashmere::uid uid;
    bool created; ///< The key was absent before.

    explicit stored(const hm_stored &c) noexcept : version(c.version), uid(hashmere::uid(c.uid)), created(c.created != 0) {}
};

/// Statistics: see ::hm_stats.
using stats = hm_stats;
/// What a backup did: see ::hm_backup_report.
using backup_report = hm_backup_report;
/// What happens to a store that has the name of a backup.
enum class if_there { refuse, replace };

/// Where a scan goes on.
enum class cursor : std::uint64_t { start = 0 };

/// When a record expires.
class expiry {
public:
    /// Never.
    constexpr expiry() noexcept = default;
    /// So long from now. Negative is refused by the call that it is given to.
    static expiry after(std::chrono::milliseconds time) noexcept { return expiry(HM_AFTER, time.count()); }
    /// At this time of the wall clock.
    static expiry at(std::chrono::system_clock::time_point time) noexcept {
        using std::chrono::milliseconds;
        return expiry(HM_AT, std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count());
    }
    int kind() const noexcept { return kind_; }
    std::int64_t ms() const noexcept { return ms_; }

private:
    constexpr expiry(int kind, std::int64_t ms) noexcept : kind_(kind), ms_(ms) {}
    int kind_ = HM_NEVER;
    std::int64_t ms_ = 0;
};

/// What a write attaches to its value.
class attributes {
public:
    attributes() noexcept = default;
    attributes(expiry when) noexcept { expires(when); }
    attributes &flags(std::uint32_t flags) noexcept { return c_.flags = flags, *this; }
    attributes &expires(expiry when) noexcept {
        c_.expiry = when.kind();
        c_.expiry_ms = when.ms();
        return *this;
    }
    attributes &after(std::chrono::milliseconds time) noexcept { return expires(expiry::after(time)); }
    attributes &at(std::chrono::system_clock::time_point time) noexcept { return expires(expiry::at(time)); }
    /// The version that the write gives the key is this or a larger one; at most 2^41.
    attributes &min_version(std::uint64_t version) noexcept { return c_.min_version = version, *this; }
    const hm_attributes &c() const noexcept { return c_; }

private:
    hm_attributes c_ = {};
};

/// What a missing counter is created with.
struct counter {
    explicit counter(std::uint64_t initial, const attributes &attached = {}) noexcept : c{initial, attached.c()} {}
    hm_counter c;
};

/// What a missing counter of `incr_signed` is created with.
struct signed_counter {
    explicit signed_counter(std::int64_t initial, const attributes &attached = {}) noexcept : c{initial, attached.c()} {}
    hm_signed_counter c;
};

/// What a missing counter of `incr_float` is created with.
struct float_counter {
    explicit float_counter(double initial, const attributes &attached = {}) noexcept : c{initial, attached.c()} {}
    hm_float_counter c;
};

/// A value with what is attached to it.
struct item {
    std::string value;
    hashmere::metadata metadata;
};

/// A key with its value. From a scan and in callbacks they are good until the next step.
struct pair {
    bytes key;
    bytes value;
    hashmere::metadata metadata;

    explicit pair(const hm_pair &c)
        : key(c.key.data, c.key.len), value(c.value.data, c.value.len), metadata(c.metadata) {}
};

/// A key with its value that owns its bytes.
struct owned_pair {
    std::string key;
    std::string value;
    hashmere::metadata metadata;

    explicit owned_pair(const pair &p) : key(p.key), value(p.value), metadata(p.metadata) {}
};

/// What a conditional change found.
enum class outcome {
    stored,   ///< The key was as expected, and was changed.
    mismatch, ///< It is there, but not as expected; `stored::version` is its version now.
    absent    ///< It is not there.
};

/// The outcome of a conditional change, with what was stored.
struct cas_outcome {
    hashmere::outcome outcome;
    hashmere::stored stored;
    explicit operator bool() const noexcept { return outcome == hashmere::outcome::stored; }
};

/// What a visitor wants done.
class change {
public:
    /// Leave the key as it is.
    static change keep() { return change(HM_KEEP); }
    /// Store a value, keeping the flags and the expiry that the key has.
    static change set(std::string value) { return change(HM_SET, std::move(value)); }
    /// Store a value with attributes.
    static change set(std::string value, const attributes &attached) {
        return change(HM_SET_WITH, std::move(value), attached);
    }
    /// Remove the key.
    static change remove() { return change(HM_REMOVE); }

    int action() const noexcept { return action_; }
    const std::string &value() const noexcept { return value_; }
    const attributes &attached() const noexcept { return attached_; }

private:
    explicit change(int action, std::string value = {}, const attributes &attached = {})
        : action_(action), value_(std::move(value)), attached_(attached) {}
    int action_;
    std::string value_;
    attributes attached_;
};

/// What a visitor did.
enum class updated { stored, unchanged, removed };

/// How a store is opened: see ::hm_options.
class options {
public:
    options() noexcept { c_.size = sizeof c_; }
    /// Whether a store that does not exist is created; it is, if nothing is said.
    options &create(bool on) noexcept { return flag(HM_NO_CREATE, !on); }
    /// Whether the store must not exist.
    options &create_new(bool on = true) noexcept { return flag(HM_CREATE_NEW, on); }
    options &read_only() noexcept { return flag(HM_READ_ONLY); }
    options &strict() noexcept { return flag(HM_STRICT); }
    options &cache() noexcept { return flag(HM_CACHE); }
    options &durable() noexcept { return flag(HM_DURABLE); }
    options &remove_on_last_close(bool on = true) noexcept { return flag(HM_REMOVE_ON_LAST_CLOSE, on); }
    options &allow_foreign_owner() noexcept { return flag(HM_ALLOW_FOREIGN_OWNER); }
    options &no_values() noexcept { return flag(HM_NO_VALUES); }
    /// The memory that the file may take; a store that exists gets this maximum, see `hm_options`.
    options &max_bytes(std::uint64_t bytes) noexcept { return c_.max_bytes = bytes, *this; }
    options &expected_items(std::uint64_t items) noexcept { return c_.expected_items = items, *this; }
    /// Negative times count as none.
    options &busy_timeout(std::chrono::milliseconds time) noexcept { return c_.busy_timeout_ms = ms(time), *this; }
    options &sync_every(std::chrono::milliseconds time) noexcept { return c_.sync_every_ms = ms(time), *this; }
    options &segment_bytes(std::uint32_t bytes) noexcept { return c_.segment_bytes = bytes, *this; }
    options &leaf_bytes(std::uint32_t bytes) noexcept { return c_.leaf_bytes = bytes, *this; }
    options &fixed_key_len(std::uint32_t bytes) noexcept { return c_.fixed_key_len = bytes, *this; }
    options &fixed_value_len(std::uint32_t bytes) noexcept { return c_.fixed_value_len = bytes, *this; }
    options &permissions(std::uint32_t mode) noexcept { return c_.permissions = mode, *this; }
    /// Keep about this many bytes of changes, for consumers that follow them: feed.hpp.
    options &feed(std::uint64_t bytes) noexcept { return c_.feed = bytes, *this; }
    /// Changes are kept with their values.
    options &feed_values(bool on = true) noexcept { return flag(HM_FEED_VALUES, on); }
    /// Marks all changes that are made through this handle in the feed.
    options &origin(std::uint32_t number) noexcept { return c_.origin = number, *this; }
    const hm_options &c() const noexcept { return c_; }

private:
    options &flag(std::uint64_t flag, bool on = true) noexcept {
        return c_.flags = on ? c_.flags | flag : c_.flags & ~flag, *this;
    }
    static std::uint64_t ms(std::chrono::milliseconds time) noexcept {
        return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
    }
    hm_options c_ = {};
};

/// One client of a store: see ::hm_client.
struct client {
    std::uint32_t slot, pid;
    std::uint64_t since_ms, hits, misses, sets, deletes, pins;
    std::string name;
};

/// A contradiction that `check` found.
struct problem {
    std::string code;
    std::uint64_t offset;
    std::string text;
};

/// What `check` found.
struct report {
    std::vector<problem> problems;
    std::uint64_t items, segments, leaves, dead_locks;
    bool is_clean() const noexcept { return problems.empty(); }
};

} // namespace hashmere

#endif
