// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file queue.hpp
/// Queues between processes, and waiting for each other: the C++ interface to hashmere_queue.h. Not a part of hashmere.hpp.
///
/// @code{.cpp}
/// hashmere::pool pool(store, "jobs", hashmere::pool_options(1000, 4096)); // any process opens the same one
/// auto todo = pool.queue("todo");
/// auto endpoint = pool.endpoint();                                                 // one for each thread
/// if (auto job = endpoint.pop(pool.free())) {
///     std::strcpy(job->data(), "hello");
///     job->push(todo);
/// }
/// if (auto job = endpoint.pop(todo, std::chrono::seconds(1))) job->push(pool.free());
/// @endcode
///
/// Everything throws `error`. What hashmere_queue.h says about threads, fork and lifetimes holds here as well.
#ifndef HASHMERE_QUEUE_HPP
#define HASHMERE_QUEUE_HPP

#include "atomic.hpp"
#include "lock.hpp"
#include "store.hpp"

#include <chrono>
#include <hashmere_queue.h>
#include <vector>

namespace hashmere {

/// Sizes of a pool: see ::hm_pool_options.
class pool_options {
public:
    pool_options(std::uint64_t elements, std::uint64_t bytes) noexcept {
        c_.size = sizeof c_;
        c_.elements = elements;
        c_.bytes = bytes;
    }
    pool_options &max_queues(std::uint64_t queues) noexcept { return c_.max_queues = queues, *this; }
    pool_options &max_endpoints(std::uint64_t endpoints) noexcept { return c_.max_endpoints = endpoints, *this; }
    pool_options &batch(std::uint64_t batch) noexcept { return c_.batch = batch, *this; }
    /// The queue for elements of crashed processes; its name must outlive this.
    pool_options &on_death(const char *queue) noexcept { return c_.on_death = queue, *this; }
    const hm_pool_options &c() const noexcept { return c_; }

private:
    hm_pool_options c_ = {};
};

/// How many push to a queue and pop from it.
enum class queue_kind { any = HM_QUEUE_ANY, mpmc = HM_QUEUE_MPMC, mpsc = HM_QUEUE_MPSC, spsc = HM_QUEUE_SPSC };

/// A queue of a pool. Any number of threads may use it.
class queue {
public:
    /// About how many elements are in it.
    std::uint64_t size() const {
        std::uint64_t n = 0;
        detail::must([&](hm_error *e) { return hm_queue_len(c(), &n, e); });
        return n;
    }
    bool empty() const { return size() == 0; }
    /// A copy of the first element, which stays where it is; empty: there is none.
    std::optional<std::string> peek() const {
        std::string bytes;
        const int rc = detail::must([&](hm_error *e) {
            return detail::grow(bytes, [&](char *to, std::size_t room, std::size_t &len) {
                return hm_queue_peek(c(), to, room, &len, e);
            });
        });
        return rc == HM_OK ? std::optional<std::string>(std::move(bytes)) : std::nullopt;
    }
    hm_queue *c() const noexcept { return c_.get(); }

private:
    explicit queue(hm_queue *opened) noexcept : c_(opened) {}
    detail::owned<hm_queue, hm_queue_close> c_;
    friend class pool;
};

/// An element that an endpoint holds. Move-only; goes back where it came from unless it is pushed. Good as long as its endpoint is.
class element {
public:
    element(element &&other) noexcept : endpoint_(other.endpoint_), c_(std::exchange(other.c_, hm_element{})) {}
    element &operator=(element &&other) noexcept {
        if (this != &other) {
            give_back();
            endpoint_ = other.endpoint_;
            c_ = std::exchange(other.c_, hm_element{});
        }
        return *this;
    }
    element(const element &) = delete;
    element &operator=(const element &) = delete;
    ~element() { give_back(); }

    char *data() noexcept { return static_cast<char *>(c_.data); }
    std::size_t size() const noexcept { return c_.len; }
    /// Its index in the pool, from 0.
    std::uint32_t index() const noexcept { return c_.index; }
    /// The element as a plain value at its start. It must have room and alignment for one.
    template <class T> T &as() {
        static_assert(std::is_trivially_copyable_v<T>, "only plain values mean something to other processes");
        return *static_cast<T *>(c_.data);
    }
    /// Puts it at the end of a queue. False: that has reached its bound, and this is still held.
    bool push(const queue &to) {
        return detail::must([&](hm_error *e) { return hm_queue_push(endpoint_, &c_, to.c(), e); }) == HM_OK;
    }

private:
    element(hm_endpoint *endpoint, const hm_element &c) noexcept : endpoint_(endpoint), c_(c) {}
    void give_back() noexcept {
        if (c_.slot != 0) hm_queue_give_back(endpoint_, &c_, nullptr);
    }
    hm_endpoint *endpoint_;
    hm_element c_;
    friend class endpoint;
};

/// What one thread takes part with.
class endpoint {
public:
    /// Takes the first element of a queue; empty: there is none.
    std::optional<element> pop(const queue &from) {
        return popped([&](hm_element *to, hm_error *e) { return hm_queue_pop(c_.get(), from.c(), to, e); });
    }
    /// The same, waiting for one.
    std::optional<element> pop(const queue &from, std::chrono::milliseconds timeout) {
        const auto ms = detail::ms_of(timeout);
        return popped([&](hm_element *to, hm_error *e) { return hm_queue_pop_wait(c_.get(), from.c(), ms, to, e); });
    }
    /// Takes up to `max` elements behind those of the batch, in one operation; returns how many.
    std::uint64_t pop_many(const queue &from, std::uint64_t max) {
        std::uint64_t n = 0;
        detail::must([&](hm_error *e) { return hm_queue_pop_many(c_.get(), from.c(), max, &n, e); });
        return n;
    }
    /// Pushes the first `max` elements of the batch in one operation; returns how many.
    std::uint64_t push_many(const queue &to, std::uint64_t max = UINT64_MAX) {
        std::uint64_t n = 0;
        detail::must([&](hm_error *e) { return hm_queue_push_many(c_.get(), to.c(), max, &n, e); });
        return n;
    }
    /// Pushes an element and takes the first of another queue, which `passed` becomes; false: there was none, and `passed` is
    /// empty, or `to` has reached its bound, and `passed` is as it was.
    bool push_pop(std::optional<element> &passed, const queue &to, const queue &from) {
        hm_element none = {};
        hm_element &held = passed ? passed->c_ : none;
        const int rc = detail::must([&](hm_error *e) { return hm_queue_push_pop(c_.get(), &held, to.c(), from.c(), e); });
        if (rc == HM_ABSENT) passed.reset();
        return rc == HM_OK;
    }
    /// How many elements were moved to a queue, and from another.
    struct moved {
        std::uint64_t pushed;
        std::uint64_t popped;
    };
    /// Pushes the whole batch, as far as the queue takes it, then takes up to `max` from another.
    moved push_pop_many(const queue &to, const queue &from, std::uint64_t max) {
        moved n = {};
        detail::must([&](hm_error *e) { return hm_queue_push_pop_many(c_.get(), to.c(), from.c(), max, &n.pushed, &n.popped, e); });
        return n;
    }
    /// Moves to another queue what is in one now; returns how much.
    std::uint64_t drain(const queue &from, const queue &to) {
        std::uint64_t n = 0;
        detail::must([&](hm_error *e) { return hm_queue_drain(c_.get(), from.c(), to.c(), &n, e); });
        return n;
    }
    /// Waits until there is something to take; false: nothing came.
    bool wait(const queue &from, std::chrono::milliseconds timeout) {
        const auto ms = detail::ms_of(timeout);
        return detail::must([&](hm_error *e) { return hm_queue_wait(c_.get(), from.c(), ms, e); }) == HM_OK;
    }
    /// How many elements the batch has.
    std::uint64_t batch_size() {
        std::uint64_t n = 0;
        detail::must([&](hm_error *e) { return hm_batch_len(c_.get(), &n, e); });
        return n;
    }
    /// Bytes and length of an element of the batch, good until the next call with this endpoint; NULL: there is none.
    std::pair<char *, std::size_t> batch(std::uint64_t index) {
        void *data = nullptr;
        std::size_t len = 0;
        detail::must([&](hm_error *e) { return hm_batch_at(c_.get(), index, &data, &len, e); });
        return {static_cast<char *>(data), len};
    }
    hm_endpoint *c() const noexcept { return c_.get(); }

private:
    explicit endpoint(hm_endpoint *opened) noexcept : c_(opened) {}
    template <class Call> std::optional<element> popped(Call &&call) {
        hm_element got = {};
        if (detail::must([&](hm_error *e) { return call(&got, e); }) != HM_OK) return std::nullopt;
        return element(c_.get(), got);
    }
    detail::owned<hm_endpoint, hm_endpoint_close> c_;
    friend class pool;
};

/// For event loops: a file descriptor that is readable when there is something to pop.
class ready_fd {
public:
    explicit ready_fd(const queue &which) {
        hm_ready_fd *made = nullptr;
        detail::must([&](hm_error *e) { return hm_ready_fd_open(which.c(), &made, &fd_, e); });
        c_.reset(made);
    }
    int fd() const noexcept { return fd_; }
    /// Takes the event back. Call it before popping.
    void acknowledge() {
        detail::must([&](hm_error *e) { return hm_ready_fd_acknowledge(c_.get(), e); });
    }

private:
    detail::owned<hm_ready_fd, hm_ready_fd_close> c_;
    int fd_ = -1;
};

/// A pool of elements with its queues.
class pool {
public:
    /// Opens a pool; creates it if it is missing.
    pool(const store &in, const std::string &name, const pool_options &how) : pool(in, name, &how.c()) {}
    /// Only opens it.
    pool(const store &in, const std::string &name) : pool(in, name, static_cast<const hm_pool_options *>(nullptr)) {}

    /// Takes a pool's name off it; false: there is none.
    static bool remove(store &in, const std::string &name) {
        return detail::must([&](hm_error *e) { return hm_pool_remove(in.c(), name.c_str(), e); }) == HM_OK;
    }
    /// The queue in which all elements are at first.
    const hashmere::queue &free() const noexcept { return *free_; }
    /// A queue; made if it is missing.
    hashmere::queue queue(const std::string &name, queue_kind kind = queue_kind::any, std::uint64_t bound = 0) {
        const hm_queue_options how = {sizeof how, static_cast<std::uint64_t>(kind), bound};
        hm_queue *opened = nullptr;
        detail::must([&](hm_error *e) { return hm_queue_open(c_.get(), name.c_str(), &how, &opened, e); });
        return hashmere::queue(opened);
    }
    /// Takes part.
    hashmere::endpoint endpoint() {
        hm_endpoint *opened = nullptr;
        detail::must([&](hm_error *e) { return hm_endpoint_open(c_.get(), &opened, e); });
        return hashmere::endpoint(opened);
    }
    /// Gives back what crashed processes held; returns how much.
    std::uint64_t recover() {
        std::uint64_t n = 0;
        detail::must([&](hm_error *e) { return hm_pool_recover(c_.get(), &n, e); });
        return n;
    }
    hm_pool_stats stats() const {
        hm_pool_stats s = {};
        s.size = sizeof s;
        detail::must([&](hm_error *e) { return hm_pool_get_stats(c_.get(), &s, e); });
        return s;
    }

private:
    pool(const store &in, const std::string &name, const hm_pool_options *how) {
        hm_pool *opened = nullptr;
        detail::must([&](hm_error *e) { return hm_pool_open(in.c(), name.c_str(), how, &opened, e); });
        c_.reset(opened);
        free_.emplace(queue("free"));
    }
    detail::owned<hm_pool, hm_pool_close> c_;
    std::optional<hashmere::queue> free_;
};

/// How a wait for a key ended.
struct wait_outcome {
    enum class kind {
        changed,  ///< The key has the version `version`.
        removed,  ///< The key is absent.
        timed_out ///< No key changed within the time.
    };
    kind what;
    std::uint64_t version; ///< 0 unless it was changed.
    std::size_t index;     ///< Of `wait_any`: which key. Else 0.
    /// Whether a key was changed or removed.
    explicit operator bool() const noexcept { return what != kind::timed_out; }
};

namespace detail {
inline wait_outcome::kind waited(int rc) noexcept {
    return rc == HM_OK ? wait_outcome::kind::changed
                       : rc == HM_REMOVED ? wait_outcome::kind::removed : wait_outcome::kind::timed_out;
}
} // namespace detail

/// Waits until a key has another version than `seen` (0: absent).
inline wait_outcome wait(const store &in, bytes key, std::uint64_t seen, std::chrono::milliseconds timeout) {
    wait_outcome o = {};
    const auto ms = detail::ms_of(timeout);
    o.what = detail::waited(
        detail::must([&](hm_error *e) { return hm_wait(in.c(), key.data(), key.size(), seen, ms, &o.version, e); }));
    return o;
}

/// A key that is waited for, and the version that was seen of it (0: absent).
struct watched {
    bytes key;
    std::uint64_t seen;
};
/// Waits until one of several keys has another version than was seen: the first in order.
inline wait_outcome wait_any(const store &in, const std::vector<watched> &all, std::chrono::milliseconds timeout) {
    std::vector<hm_bytes> keys;
    std::vector<std::uint64_t> seen;
    for (const auto &one : all) {
        keys.push_back({one.key.data(), one.key.size()});
        seen.push_back(one.seen);
    }
    wait_outcome o = {};
    const auto ms = detail::ms_of(timeout);
    o.what = detail::waited(detail::must([&](hm_error *e) {
        return hm_wait_any(in.c(), keys.data(), seen.data(), keys.size(), ms, &o.index, &o.version, e);
    }));
    return o;
}

/// A mutex that is locked. Unlocks it when it goes.
class mutex_guard {
public:
    /// Whether the holder before died with it: what it protects may be half done.
    bool was_abandoned() const noexcept { return abandoned_; }

private:
    mutex_guard(hm_mutex_guard *held, bool abandoned) noexcept : c_(held), abandoned_(abandoned) {}
    detail::owned<hm_mutex_guard, hm_mutex_unlock> c_;
    bool abandoned_;
    friend class mutex;
};

/// The mutex of a key, between processes. Its store must outlive it.
class mutex {
public:
    mutex(store &in, bytes key) : in_(in.c()), key_(static_cast<const char *>(key.data()), key.size()) {}
    /// Locks it; empty: a living process held it all the time.
    std::optional<mutex_guard> lock(std::chrono::milliseconds timeout) {
        hm_mutex_guard *held = nullptr;
        std::uint32_t abandoned = 0;
        const auto ms = detail::ms_of(timeout);
        const int rc = detail::must(
            [&](hm_error *e) { return hm_mutex_lock(in_, key_.data(), key_.size(), ms, &held, &abandoned, e); });
        if (rc != HM_OK) return std::nullopt;
        return mutex_guard(held, abandoned != 0);
    }
    /// The process that holds it at about this moment; empty: none, or one that is gone; 0: one whose name went when the
    /// store was cleared or the key deleted (no process to send a signal to).
    std::optional<std::uint32_t> holder() const {
        std::uint32_t pid = 0;
        const int rc =
            detail::must([&](hm_error *e) { return hm_mutex_holder(in_, key_.data(), key_.size(), &pid, e); });
        return rc == HM_OK ? std::optional<std::uint32_t>(pid) : std::nullopt;
    }

private:
    hm_store *in_;
    std::string key_;
};

/// The process that computes the value of a key by `once` at about this moment; empty: none, or one that is gone; 0: one whose
/// name went when the store was cleared or the key deleted (no process to send a signal to).
inline std::optional<std::uint32_t> once_holder(store &in, bytes key) {
    std::uint32_t pid = 0;
    const int rc = detail::must([&](hm_error *e) { return hm_once_holder(in.c(), key.data(), key.size(), &pid, e); });
    return rc == HM_OK ? std::optional<std::uint32_t>(pid) : std::nullopt;
}

/// The value of a key; if there is none, `compute()` makes it, a string, in one process at a time. Empty: a living process was computing all
/// the time. If it asks for the value of its own key, that throws #HM_E_QUEUE_REENTERED.
template <class F>
std::optional<std::string> once(store &in, bytes key, std::chrono::milliseconds timeout, F &&compute) {
    struct made {
        F &compute;
        std::string value;
        detail::barrier wall;
        static int make(void *user, hm_bytes *value) noexcept {
            auto &self = *static_cast<made *>(user);
            if (!self.wall.run([&] { self.value = self.compute(); })) return 1;
            *value = {self.value.data(), self.value.size()};
            return 0;
        }
    } user{compute, {}, {}};
    const auto ms = detail::ms_of(timeout);
    std::string value;
    const int rc = detail::must([&](hm_error *e) {
        return detail::grow(value, [&](char *to, std::size_t room, std::size_t &len) {
            return hm_once(in.c(), key.data(), key.size(), ms, &made::make, &user, to, room, &len, e);
        });
    });
    user.wall.lift();
    return rc == HM_OK ? std::optional<std::string>(std::move(value)) : std::nullopt;
}

/// A participant of a barrier between processes; leaves it when it goes.
class barrier {
public:
    /// All participants have arrived.
    struct wait_result {
        std::uint64_t round; ///< Number of the round, from 1.
        std::uint64_t lost;  ///< How many had died or left by then.
    };
    barrier(store &in, bytes key, std::uint64_t size) {
        hm_barrier *joined = nullptr;
        detail::must([&](hm_error *e) { return hm_barrier_join(in.c(), key.data(), key.size(), size, &joined, e); });
        c_.reset(joined);
    }
    /// Arrives, and waits for all others; empty: a living process has not arrived yet.
    std::optional<wait_result> wait(std::chrono::milliseconds timeout) {
        wait_result s = {};
        const auto ms = detail::ms_of(timeout);
        const int rc = detail::must([&](hm_error *e) { return hm_barrier_wait(c_.get(), ms, &s.round, &s.lost, e); });
        return rc == HM_OK ? std::optional<wait_result>(s) : std::nullopt;
    }

private:
    detail::owned<hm_barrier, hm_barrier_leave> c_;
};

} // namespace hashmere

#endif
