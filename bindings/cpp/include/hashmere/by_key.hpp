// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file by_key.hpp
/// The calls that take keys.
#ifndef HASHMERE_BY_KEY_HPP
#define HASHMERE_BY_KEY_HPP

#include "calling.hpp"
#include "held.hpp"

namespace hashmere {

/// The calls that take keys: see `key`. hashmere.h says at each function what it does, guarantees and can fail with.
template <class Policy> class by_key : public calling<Policy> {
public:
    template <class T> using returns = typename calling<Policy>::template returns<T>;

    /// @name Reading
    /// @{

    /// The value of a key.
    returns<std::optional<std::string>> get(const key &k) const {
        return text([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return read(k, to, room, len, e);
        });
    }
    /// Copies the value of a key to `to` and returns its length, which may be more than `room`: then nothing useful was copied.
    returns<std::optional<std::size_t>> get_into(const key &k, void *to, std::size_t room) const {
        std::size_t len = 0;
        return base::template maybe<std::size_t>(
            [&](hm_error *e) { return found(read(k, to, room, len, e)); }, [&] { return len; });
    }
    /// The value of a key with everything else about it.
    returns<std::optional<item>> get_item(const key &k) const {
        return whole_item([&](void *to, std::size_t room, hm_metadata &m, hm_error *e) {
            return hm_get_item_at(c_, &k.c(), to, room, &m, e);
        });
    }
    /// Everything about a key except its value.
    returns<std::optional<hashmere::metadata>> metadata(const key &k) const {
        hm_metadata m = {};
        return base::template maybe<hashmere::metadata>(
            [&](hm_error *e) { return hm_get_metadata_at(c_, &k.c(), &m, e); },
            [&] { return hashmere::metadata(m); });
    }
    returns<bool> contains(const key &k) const {
        return yes([&](hm_error *e) { return hm_contains_at(c_, &k.c(), e); });
    }
    /// Whether a key is still there with the version that it was seen with.
    returns<bool> is_up_to_date(const key &k, std::uint64_t version) const {
        return yes([&](hm_error *e) { return hm_is_up_to_date_at(c_, &k.c(), version, e); });
    }
    returns<std::optional<std::size_t>> value_len(const key &k) const {
        std::size_t len = 0;
        return base::template maybe<std::size_t>([&](hm_error *e) { return hm_value_len_at(c_, &k.c(), &len, e); },
                                  [&] { return len; });
    }
    /// How long a key still lives; -1 is forever.
    returns<std::optional<std::chrono::milliseconds>> ttl(const key &k) const {
        std::int64_t ms = 0;
        return base::template maybe<std::chrono::milliseconds>(
            [&](hm_error *e) { return hm_ttl_at(c_, &k.c(), &ms, e); },
            [&] { return std::chrono::milliseconds(ms); });
    }
    /// A view of a value in place.
    returns<std::optional<hashmere::view>> view(const key &k) const {
        hm_view v;
        return base::template maybe<hashmere::view>([&](hm_error *e) { return hm_view_acquire_at(c_, &k.c(), &v, e); },
                                     [&] { return hashmere::view(v); });
    }
    /// @}

    /// @name Writing
    /// @{

    returns<void> set(const key &k, bytes value) {
        return done([&](hm_error *e) {
            return is_plain(k) ? hm_set(c_, k.c().data, k.c().len, value.data(), value.size(), e)
                               : hm_set_at(c_, &k.c(), value.data(), value.size(), e);
        });
    }
    returns<stored> set(const key &k, bytes value, const attributes &with) {
        hm_stored s = {};
        return base::template answer<stored>(
            [&](hm_error *e) {
                return hm_set_with_at(c_, &k.c(), value.data(), value.size(), &with.c(), &s, e);
            },
            [&](int) { return stored(s); });
    }
    /// Empty: the key is there already.
    returns<std::optional<stored>> add(const key &k, bytes value, const attributes &with = {}) {
        return write([&](hm_stored *s, hm_error *e) {
            return hm_add_at(c_, &k.c(), value.data(), value.size(), &with.c(), s, e);
        });
    }
    /// Empty: the key is absent.
    returns<std::optional<stored>> replace(const key &k, bytes value, const attributes &with = {}) {
        return write([&](hm_stored *s, hm_error *e) {
            return hm_replace_at(c_, &k.c(), value.data(), value.size(), &with.c(), s, e);
        });
    }
    returns<std::optional<stored>> append(const key &k, bytes tail) {
        return write([&](hm_stored *s, hm_error *e) {
            return hm_append_at(c_, &k.c(), tail.data(), tail.size(), s, e);
        });
    }
    returns<std::optional<stored>> prepend(const key &k, bytes head) {
        return write([&](hm_stored *s, hm_error *e) {
            return hm_prepend_at(c_, &k.c(), head.data(), head.size(), s, e);
        });
    }
    /// Removes a key; false if it was not there.
    returns<bool> erase(const key &k) {
        return yes([&](hm_error *e) { return hm_delete_at(c_, &k.c(), e); });
    }
    /// Removes a key and returns its value; exactly one of several callers gets it.
    returns<std::optional<std::string>> take(const key &k) {
        return text([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return hm_take_at(c_, &k.c(), to, room, &len, nullptr, e);
        });
    }
    /// Room for a value, to be filled in place.
    returns<reservation> reserve(const key &k, std::size_t value_len, const attributes &with = {}) {
        hm_reservation r;
        return base::template answer<reservation>(
            [&](hm_error *e) { return hm_reserve_at(c_, &k.c(), value_len, &with.c(), &r, e); },
            [&](int) { return reservation(r); });
    }
    /// @}

    /// @name Conditions
    /// @{

    /// Stores a value if the key has this version; 0 is absent.
    returns<cas_outcome> cas(const key &k, std::uint64_t version, bytes value, const attributes &with = {}) {
        return compare([&](hm_stored *s, hm_error *e) {
            return hm_cas_version_at(c_, &k.c(), version, value.data(), value.size(), &with.c(), s, e);
        });
    }
    /// Stores a value if the key has the value `old`.
    returns<cas_outcome> cas(const key &k, bytes old, bytes value, const attributes &with = {}) {
        return compare([&](hm_stored *s, hm_error *e) {
            return hm_cas_value_at(c_, &k.c(), old.data(), old.size(), value.data(), value.size(), &with.c(), s, e);
        });
    }
    returns<outcome> erase_version(const key &k, std::uint64_t version) {
        return base::template answer<outcome>([&](hm_error *e) { return hm_delete_version_at(c_, &k.c(), version, e); },
                               outcome_of);
    }
    returns<outcome> erase_value(const key &k, bytes old) {
        return base::template answer<outcome>(
            [&](hm_error *e) { return hm_delete_value_at(c_, &k.c(), old.data(), old.size(), e); },
            outcome_of);
    }
    /// Shows a key to `f`, a function of `std::optional<pair>` that returns a `change`, and does what it says, atomically for
    /// that key. What `f` throws leaves the key as it is. By the number of an entry, the pair has no key: see `key_of`.
    template <class F> returns<updated> update_with(const key &k, F &&f) {
        return visit(f, [&](hm_visitor visitor, void *user, hm_error *e) {
            return hm_update_with_at(c_, &k.c(), visitor, user, nullptr, e);
        });
    }
    /// @}

    /// @name Counters and references
    /// @{

    /// Adds to a counter; empty: it is missing and was not to be created.
    returns<std::optional<std::uint64_t>> incr(const key &k, std::uint64_t by = 1, std::optional<counter> create = {}) {
        return count([&](std::uint64_t *now, hm_error *e) {
            return hm_incr_at(c_, &k.c(), by, create ? &create->c : nullptr, now, e);
        });
    }
    /// Subtracts from a counter, stopping at zero.
    returns<std::optional<std::uint64_t>> decr(const key &k, std::uint64_t by = 1, std::optional<counter> create = {}) {
        return count([&](std::uint64_t *now, hm_error *e) {
            return hm_decr_at(c_, &k.c(), by, create ? &create->c : nullptr, now, e);
        });
    }
    /// Adds a signed number.
    returns<std::optional<std::uint64_t>> incr_by(const key &k, std::int64_t by, std::optional<counter> create = {}) {
        return count([&](std::uint64_t *now, hm_error *e) {
            return hm_incr_by_at(c_, &k.c(), by, create ? &create->c : nullptr, now, e);
        });
    }
    /// Adds to a signed counter, which may be below zero; beyond 64 bits it is `HM_E_OVERFLOW`, and stays as it is.
    returns<std::optional<std::int64_t>> incr_signed(const key &k, std::int64_t by,
                                                     std::optional<signed_counter> create = {}) {
        return base::template count<std::int64_t>([&](std::int64_t *now, hm_error *e) {
            return hm_incr_signed_at(c_, &k.c(), by, create ? &create->c : nullptr, now, e);
        });
    }
    /// Adds to a decimal fraction, exactly; returns the number next to the sum.
    returns<std::optional<double>> incr_float(const key &k, double by, std::optional<float_counter> create = {}) {
        return base::template count<double>([&](double *now, hm_error *e) {
            return hm_incr_float_at(c_, &k.c(), by, create ? &create->c : nullptr, now, e);
        });
    }
    /// Counts references; the key is created with them if it is absent.
    returns<std::uint64_t> inc_ref(const key &k, std::uint64_t by = 1) {
        std::uint64_t now = 0;
        return base::template answer<std::uint64_t>([&](hm_error *e) { return hm_inc_ref_at(c_, &k.c(), by, &now, e); },
                                     [&](int) { return now; });
    }
    /// Gives references back, and removes the key with the last one.
    returns<std::optional<std::uint64_t>> dec_ref(const key &k, std::uint64_t by = 1) {
        return count([&](std::uint64_t *now, hm_error *e) { return hm_dec_ref_at(c_, &k.c(), by, now, e); });
    }
    /// @}

    /// @name Expiry
    /// @{

    returns<bool> touch(const key &k, expiry when) {
        return yes([&](hm_error *e) { return hm_touch_at(c_, &k.c(), when.kind(), when.ms(), e); });
    }
    returns<std::optional<item>> get_and_touch(const key &k, expiry when) {
        return whole_item([&](void *to, std::size_t room, hm_metadata &m, hm_error *e) {
            return hm_get_and_touch_at(c_, &k.c(), when.kind(), when.ms(), to, room, &m, e);
        });
    }
    /// @}

    /// @name UIDs and entry ids
    /// @{

    returns<std::optional<uid>> uid_of(const key &k) const {
        std::uint32_t n = 0;
        return base::template maybe<uid>([&](hm_error *e) { return hm_uid_of_at(c_, &k.c(), &n, e); }, [&] { return uid(n); });
    }
    returns<std::optional<entry_id>> id_of(const key &k) const {
        std::uint64_t n = 0;
        return base::template maybe<entry_id>([&](hm_error *e) { return hm_id_of_at(c_, &k.c(), &n, e); },
                                              [&] { return entry_id(n); });
    }
    /// The bytes of a key that is there.
    returns<std::optional<std::string>> key_of(const key &k) const {
        return text([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return hm_key_of_at(c_, &k.c(), to, room, &len, e);
        });
    }
    /// @}

    /// @name Several keys at once
    /// @{

    /// Calls `f(std::size_t index, std::optional<bytes> value)` for each key of a range. If it returns a `bool`, false ends the
    /// call.
    template <class Keys, class F> returns<void> get_many(const Keys &keys, F &&f) const {
        const auto array = detail::array_of(keys);
        detail::shown<std::remove_reference_t<F>> to{f, {}};
        return done([&](hm_error *e) {
            const int rc = hm_get_many(c_, array.data(), array.size(), &decltype(to)::value, &to, e);
            return to.wall.lift(), rc;
        });
    }
    /// Stores the pairs of a range, each with `first` and `second`.
    template <class Pairs> returns<void> set_many(const Pairs &pairs, const attributes &with = {}) {
        std::vector<hm_bytes> keys, values;
        for (const auto &each : pairs) {
            const bytes key(each.first), value(each.second);
            keys.push_back({key.data(), key.size()});
            values.push_back({value.data(), value.size()});
        }
        return done([&](hm_error *e) {
            return hm_set_many(c_, keys.data(), values.data(), keys.size(), &with.c(), e);
        });
    }
    /// Removes the keys of a range; returns how many were there.
    template <class Keys> returns<std::size_t> erase_many(const Keys &keys) {
        const auto array = detail::array_of(keys);
        std::size_t removed = 0;
        return base::template answer<std::size_t>(
            [&](hm_error *e) { return hm_delete_many(c_, array.data(), array.size(), &removed, e); },
            [&](int) { return removed; });
    }
    /// @}

protected:
    using base = calling<Policy>;
    using calling<Policy>::calling;
    using base::c_;
    using base::compare;
    using base::count;
    using base::done;
    using base::found;
    using base::outcome_of;
    using base::text;
    using base::visit;
    using base::whole_item;
    using base::write;
    using base::yes;

private:
    // The hottest calls ask here what kind of key it is, where the compiler sees it: that costs a get by bytes 9 instructions of 430,
    // and `hm_get_at` costs it 45.
    static bool is_plain(const key &k) noexcept { return k.c().kind == HM_KEY_BYTES; }
    int read(const key &k, void *to, std::size_t room, std::size_t &len, hm_error *e) const noexcept {
        return is_plain(k) ? hm_get(c_, k.c().data, k.c().len, to, room, &len, e) : hm_get_at(c_, &k.c(), to, room, &len, e);
    }
};

} // namespace hashmere

#endif
