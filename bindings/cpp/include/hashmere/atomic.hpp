// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file atomic.hpp
/// Shared atomics: words that processes change in place. A part of queue.hpp.
///
/// @code{.cpp}
/// auto hits = hashmere::atomics(store, "counters").atomic("hits");
/// hits.fetch_add(1);
/// @endcode
#ifndef HASHMERE_ATOMIC_HPP
#define HASHMERE_ATOMIC_HPP

#include "store.hpp"

#include <chrono>
#include <hashmere_queue.h>

namespace hashmere {

/// A shared atomic: a word of 64 bits that processes read and change in place. Sequentially consistent; each operation that changes
/// it wakes those who wait. No part of a transaction or of the change feed.
class atomic {
public:
    /// The word itself, for atomic operations of the compiler: good as long as this is. After a change call `notify`.
    std::uint64_t *word() const {
        std::uint64_t *at = nullptr;
        detail::must([&](hm_error *e) { return hm_atomic_word(c_.get(), &at, e); });
        return at;
    }
    std::uint64_t load() const {
        std::uint64_t value = 0;
        detail::must([&](hm_error *e) { return hm_atomic_load(c_.get(), &value, e); });
        return value;
    }
    void store(std::uint64_t value) {
        detail::must([&](hm_error *e) { return hm_atomic_store(c_.get(), value, e); });
    }
    /// These return the value before.
    std::uint64_t swap(std::uint64_t value) { return changed(hm_atomic_swap, value); }
    /// Adds, modulo 2^64.
    std::uint64_t fetch_add(std::uint64_t value) { return changed(hm_atomic_fetch_add, value); }
    std::uint64_t fetch_and(std::uint64_t value) { return changed(hm_atomic_fetch_and, value); }
    std::uint64_t fetch_or(std::uint64_t value) { return changed(hm_atomic_fetch_or, value); }
    std::uint64_t fetch_xor(std::uint64_t value) { return changed(hm_atomic_fetch_xor, value); }
    /// Stores `value` if it is `current`; returns the value before, which says whether it was.
    std::uint64_t compare_exchange(std::uint64_t current, std::uint64_t value) {
        std::uint64_t before = 0;
        detail::must([&](hm_error *e) { return hm_atomic_compare_exchange(c_.get(), current, value, &before, e); });
        return before;
    }
    /// Waits until the value is another than `seen`, and returns it; empty: it was not.
    std::optional<std::uint64_t> wait(std::uint64_t seen, std::chrono::milliseconds timeout) const {
        std::uint64_t value = 0;
        const auto ms = detail::ms_of(timeout);
        const int rc = detail::must([&](hm_error *e) { return hm_atomic_wait(c_.get(), seen, ms, &value, e); });
        return rc == HM_OK ? std::optional<std::uint64_t>(value) : std::nullopt;
    }
    /// Wakes those who wait, after a change through `word`.
    void notify() {
        detail::must([&](hm_error *e) { return hm_atomic_notify(c_.get(), e); });
    }

private:
    explicit atomic(hm_atomic *opened) noexcept : c_(opened) {}
    template <class Call> std::uint64_t changed(Call call, std::uint64_t value) {
        std::uint64_t before = 0;
        detail::must([&](hm_error *e) { return call(c_.get(), value, &before, e); });
        return before;
    }
    detail::owned<hm_atomic, hm_atomic_close> c_;
    friend class atomics;
};

/// A set of up to 1024 shared atomics, a region of the store's file: `clear` leaves it, a backup does not copy it.
class atomics {
public:
    /// Opens a set; creates it if it is missing.
    atomics(store &in, const std::string &name) {
        hm_atomics *opened = nullptr;
        detail::must([&](hm_error *e) { return hm_atomics_open(in.c(), name.c_str(), &opened, e); });
        c_.reset(opened);
    }
    /// Takes a set's name off it; false: there is none.
    static bool remove(store &in, const std::string &name) {
        return detail::must([&](hm_error *e) { return hm_atomics_remove(in.c(), name.c_str(), e); }) == HM_OK;
    }
    /// The atomic of a name; made if it is missing.
    hashmere::atomic atomic(const std::string &name) {
        hm_atomic *opened = nullptr;
        detail::must([&](hm_error *e) { return hm_atomic_open(c_.get(), name.c_str(), &opened, e); });
        return hashmere::atomic(opened);
    }

private:
    detail::owned<hm_atomics, hm_atomics_close> c_;
};

} // namespace hashmere

#endif
