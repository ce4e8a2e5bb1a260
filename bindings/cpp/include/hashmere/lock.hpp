// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file lock.hpp
/// Readers-writer locks and semaphores between processes: a part of queue.hpp.
///
/// @code{.cpp}
/// hashmere::rwlock lock(store, "lock");
/// if (auto held = lock.write(std::chrono::seconds(1))) rebuild(held->was_abandoned());
/// @endcode
#ifndef HASHMERE_LOCK_HPP
#define HASHMERE_LOCK_HPP

#include "store.hpp"

#include <chrono>
#include <hashmere_queue.h>
#include <vector>

namespace hashmere {

namespace detail {
/// All process ids that a call has, which is asked again until there is room for them.
template <class Call> std::vector<std::uint32_t> pids(Call &&call) {
    std::vector<std::uint32_t> all(8);
    for (;;) {
        std::size_t count = 0;
        const int rc = must([&](hm_error *e) { return call(all.data(), all.size(), &count, e); });
        all.resize(count);
        if (rc != HM_BUFFER_TOO_SMALL) return all;
    }
}
} // namespace detail

/// A readers-writer lock that is held, for reading or writing. Unlocks it when it goes.
class rwlock_guard {
public:
    /// Whether a writer died with it, and no other writer had it since: what it protects may be half done.
    bool was_abandoned() const noexcept { return abandoned_; }

private:
    rwlock_guard(hm_rwlock_guard *held, bool abandoned) noexcept : c_(held), abandoned_(abandoned) {}
    detail::owned<hm_rwlock_guard, hm_rwlock_unlock> c_;
    bool abandoned_;
    friend class rwlock;
};

/// The readers-writer lock of a key, between processes. Its store must outlive it.
class rwlock {
public:
    rwlock(store &in, bytes key) : in_(in.c()), key_(static_cast<const char *>(key.data()), key.size()) {}
    /// Locks it for reading, beside other readers; empty: a living process wrote, or had its turn to, all the time.
    std::optional<rwlock_guard> read(std::chrono::milliseconds timeout) { return locked(hm_rwlock_read, timeout); }
    /// Locks it for writing, alone; empty: living processes held it all the time.
    std::optional<rwlock_guard> write(std::chrono::milliseconds timeout) { return locked(hm_rwlock_write, timeout); }
    /// The process that holds it for writing at about this moment; empty: none, or one that is gone, or whose name went with the key.
    std::optional<std::uint32_t> writer() const {
        std::uint32_t pid = 0;
        const int rc =
            detail::must([&](hm_error *e) { return hm_rwlock_writer(in_, key_.data(), key_.size(), &pid, e); });
        return rc == HM_OK ? std::optional<std::uint32_t>(pid) : std::nullopt;
    }
    /// The processes that hold it for reading at about this moment, each as often as it does.
    std::vector<std::uint32_t> readers() const {
        return detail::pids([&](std::uint32_t *to, std::size_t room, std::size_t *count, hm_error *e) {
            return hm_rwlock_readers(in_, key_.data(), key_.size(), to, room, count, e);
        });
    }

private:
    template <class Lock> std::optional<rwlock_guard> locked(Lock lock, std::chrono::milliseconds timeout) {
        hm_rwlock_guard *held = nullptr;
        std::uint32_t abandoned = 0;
        const auto ms = detail::ms_of(timeout);
        const int rc =
            detail::must([&](hm_error *e) { return lock(in_, key_.data(), key_.size(), ms, &held, &abandoned, e); });
        if (rc != HM_OK) return std::nullopt;
        return rwlock_guard(held, abandoned != 0);
    }
    hm_store *in_;
    std::string key_;
};

/// A permit of a semaphore. Gives it back when it goes.
class semaphore_guard {
public:
    /// Whether a holder died with its permit since the last one was taken.
    bool was_abandoned() const noexcept { return abandoned_; }

private:
    semaphore_guard(hm_semaphore_guard *held, bool abandoned) noexcept : c_(held), abandoned_(abandoned) {}
    detail::owned<hm_semaphore_guard, hm_semaphore_release> c_;
    bool abandoned_;
    friend class semaphore;
};

/// The semaphore of a key, between processes, with 1 to 1024 permits: the same number for all. Its store must outlive it.
class semaphore {
public:
    semaphore(store &in, bytes key, std::uint64_t permits)
        : in_(in.c()), key_(static_cast<const char *>(key.data()), key.size()), permits_(permits) {}
    /// Takes a permit; empty: living processes held all of them all the time.
    std::optional<semaphore_guard> acquire(std::chrono::milliseconds timeout) {
        hm_semaphore_guard *held = nullptr;
        std::uint32_t abandoned = 0;
        const auto ms = detail::ms_of(timeout);
        const int rc = detail::must([&](hm_error *e) {
            return hm_semaphore_acquire(in_, key_.data(), key_.size(), permits_, ms, &held, &abandoned, e);
        });
        if (rc != HM_OK) return std::nullopt;
        return semaphore_guard(held, abandoned != 0);
    }
    /// The processes that hold permits at about this moment, each as often as it has one.
    std::vector<std::uint32_t> holders() const {
        return detail::pids([&](std::uint32_t *to, std::size_t room, std::size_t *count, hm_error *e) {
            return hm_semaphore_holders(in_, key_.data(), key_.size(), to, room, count, e);
        });
    }

private:
    hm_store *in_;
    std::string key_;
    std::uint64_t permits_;
};

} // namespace hashmere

#endif
