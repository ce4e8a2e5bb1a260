// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file transaction.hpp
/// Several keys at one moment: batches, batches with conditions, transactions, snapshot reads.
#ifndef HASHMERE_TRANSACTION_HPP
#define HASHMERE_TRANSACTION_HPP

#include "by_key.hpp"

#include <hashmere_transaction.h>

#include <initializer_list>

namespace hashmere {

/// Operations on up to 1,024 keys that are done at one moment, in order: a later one sees what an earlier one does. Move-only; it belongs to
/// no store, and may be written any number of times.
class write_batch {
public:
    write_batch() {
        hm_write_batch *made = nullptr;
        detail::must([&](hm_error *e) { return hm_write_batch_open(&made, e); });
        c_.reset(made);
    }
    /// Stores a value. An expiry is reckoned from the commit.
    write_batch &set(bytes key, bytes value, const attributes &with = {}) {
        return add([&](hm_write_batch *b, hm_error *e) {
            return hm_write_batch_set(b, key.data(), key.size(), value.data(), value.size(), &with.c(), e);
        });
    }
    /// Removes a key, if it is there.
    write_batch &erase(bytes key) {
        return add([&](hm_write_batch *b, hm_error *e) { return hm_write_batch_delete(b, key.data(), key.size(), e); });
    }
    /// Adds a signed number to a counter.
    write_batch &incr_by(bytes key, std::int64_t by, std::optional<counter> create = {}) {
        return add([&](hm_write_batch *b, hm_error *e) {
            return hm_write_batch_incr_by(b, key.data(), key.size(), by, create ? &create->c : nullptr, e);
        });
    }
    /// Adds to a counter that may be below zero.
    write_batch &incr_signed(bytes key, std::int64_t by, std::optional<signed_counter> create = {}) {
        return add([&](hm_write_batch *b, hm_error *e) {
            return hm_write_batch_incr_signed(b, key.data(), key.size(), by, create ? &create->c : nullptr, e);
        });
    }
    /// Adds to a decimal fraction, exactly. What is not finite is refused when the batch is written.
    write_batch &incr_float(bytes key, double by, std::optional<float_counter> create = {}) {
        return add([&](hm_write_batch *b, hm_error *e) {
            return hm_write_batch_incr_float(b, key.data(), key.size(), by, create ? &create->c : nullptr, e);
        });
    }
    /// Puts bytes behind a value, if the key is there.
    write_batch &append(bytes key, bytes tail) {
        return add([&](hm_write_batch *b, hm_error *e) {
            return hm_write_batch_append(b, key.data(), key.size(), tail.data(), tail.size(), e);
        });
    }
    /// Puts bytes in front of a value, if the key is there.
    write_batch &prepend(bytes key, bytes head) {
        return add([&](hm_write_batch *b, hm_error *e) {
            return hm_write_batch_prepend(b, key.data(), key.size(), head.data(), head.size(), e);
        });
    }
    /// Gives a key another expiry, if it is there.
    write_batch &touch(bytes key, expiry when) {
        return add([&](hm_write_batch *b, hm_error *e) {
            return hm_write_batch_touch(b, key.data(), key.size(), when.kind(), when.ms(), e);
        });
    }
    /// Reads a key.
    write_batch &get(bytes key) {
        return add([&](hm_write_batch *b, hm_error *e) { return hm_write_batch_get(b, key.data(), key.size(), e); });
    }
    /// How many operations there are.
    std::size_t size() const {
        std::size_t count = 0;
        detail::must([&](hm_error *e) { return hm_write_batch_len(c(), &count, e); });
        return count;
    }
    bool empty() const { return size() == 0; }
    /// Takes all operations out.
    void clear() {
        detail::must([&](hm_error *e) { return hm_write_batch_clear(c(), e); });
    }
    /// For C.
    hm_write_batch *c() const noexcept { return c_.get(); }

private:
    template <class Call> write_batch &add(Call &&call) {
        detail::must([&](hm_error *e) { return call(c(), e); });
        return *this;
    }
    detail::owned<hm_write_batch, hm_write_batch_close> c_;
};

/// What one operation of a batch did: see ::hm_batch_result.
struct batch_result {
    bool was_there;                     ///< erase, append, prepend, touch, get: the key was there; of a count: it is now. Otherwise true.
    std::uint64_t number;               ///< `incr_by`: the number now.
    std::int64_t signed_number;         ///< `incr_signed`: the number now.
    double float_number;                ///< `incr_float`: the number next to its text.
    hashmere::stored stored;            ///< A set: what was stored.
    std::optional<hashmere::item> item; ///< A get.

    explicit batch_result(const hm_batch_result &c)
        : was_there(c.result == HM_OK), number(c.number), signed_number(c.signed_number), float_number(c.float_number),
          stored(c.stored) {
        if (was_there && c.value.data) item = {std::string(bytes(c.value.data, c.value.len)), metadata(c.metadata)};
    }
};

/// Which batch was done, and what its operations did.
struct branch {
    bool succeeded; ///< All conditions held: it was the first.
    std::vector<batch_result> results;
};

/// What a key must be for the first batch of `write_batch_if` to be done. Borrows its bytes.
class condition {
public:
    /// This key is absent.
    static condition absent(bytes key) noexcept { return condition(key, HM_IF_ABSENT); }
    /// This key is there.
    static condition present(bytes key) noexcept { return condition(key, HM_IF_PRESENT); }
    /// This key is at this version; 0: it is absent.
    static condition version(bytes key, std::uint64_t version) noexcept {
        condition made(key, HM_IF_VERSION);
        made.c_.version = version;
        return made;
    }
    /// This key has exactly this value.
    static condition value(bytes key, bytes value) noexcept {
        condition made(key, HM_IF_VALUE);
        made.c_.value = {value.data(), value.size()};
        return made;
    }
    /// For C, good as long as the bytes are.
    const hm_condition &c() const noexcept { return c_; }

private:
    condition(bytes key, std::uint32_t kind) noexcept { c_.key = {key.data(), key.size()}, c_.kind = kind; }
    hm_condition c_ = {};
};

/// What a function given to `transaction` reads and writes with. Reads see what the transaction wrote, and else the store; writes are seen by
/// nothing else before it commits. `Policy` as of `calls`.
template <class Policy> class basic_transaction : private answers<Policy> {
public:
    template <class T> using returns = typename answers<Policy>::template returns<T>;

    /// The value of a key. HM_E_CONFLICT: it has changed since the transaction read it first; let it pass, and the function is called again.
    returns<std::optional<std::string>> get(bytes key) {
        return base::text([&](void *to, std::size_t room, std::size_t &len, hm_error *e) {
            return hm_transaction_get(c_, key.data(), key.size(), to, room, &len, e);
        });
    }
    returns<bool> contains(bytes key) {
        return base::yes([&](hm_error *e) { return hm_transaction_contains(c_, key.data(), key.size(), e); });
    }
    returns<void> set(bytes key, bytes value, const attributes &with = {}) {
        return base::done([&](hm_error *e) {
            return hm_transaction_set(c_, key.data(), key.size(), value.data(), value.size(), &with.c(), e);
        });
    }
    /// Removes a key, if it is there.
    returns<void> erase(bytes key) {
        return base::done([&](hm_error *e) { return hm_transaction_delete(c_, key.data(), key.size(), e); });
    }
    /// Adds a signed number to a counter; empty: it is missing and was not to be created.
    returns<std::optional<std::uint64_t>> incr_by(bytes key, std::int64_t by, std::optional<counter> create = {}) {
        return base::count([&](std::uint64_t *now, hm_error *e) {
            return hm_transaction_incr_by(c_, key.data(), key.size(), by, create ? &create->c : nullptr, now, e);
        });
    }
    /// Adds to a counter that may be below zero; beyond 64 bits it is `HM_E_OVERFLOW`. Else as `incr_by`.
    returns<std::optional<std::int64_t>> incr_signed(bytes key, std::int64_t by,
                                                     std::optional<signed_counter> create = {}) {
        return base::template count<std::int64_t>([&](std::int64_t *now, hm_error *e) {
            return hm_transaction_incr_signed(c_, key.data(), key.size(), by, create ? &create->c : nullptr, now, e);
        });
    }
    /// Adds to a decimal fraction, exactly; returns the number next to the sum. Else as `incr_by`.
    returns<std::optional<double>> incr_float(bytes key, double by, std::optional<float_counter> create = {}) {
        return base::template count<double>([&](double *now, hm_error *e) {
            return hm_transaction_incr_float(c_, key.data(), key.size(), by, create ? &create->c : nullptr, now, e);
        });
    }
    /// False: the key is absent.
    returns<bool> append(bytes key, bytes tail) {
        return base::yes([&](hm_error *e) {
            return hm_transaction_append(c_, key.data(), key.size(), tail.data(), tail.size(), e);
        });
    }
    /// False: the key is absent.
    returns<bool> prepend(bytes key, bytes head) {
        return base::yes([&](hm_error *e) {
            return hm_transaction_prepend(c_, key.data(), key.size(), head.data(), head.size(), e);
        });
    }
    /// False: the key is absent.
    returns<bool> touch(bytes key, expiry when) {
        return base::yes([&](hm_error *e) {
            return hm_transaction_touch(c_, key.data(), key.size(), when.kind(), when.ms(), e);
        });
    }
    basic_transaction(const basic_transaction &) = delete;
    basic_transaction &operator=(const basic_transaction &) = delete;

private:
    using base = answers<Policy>;
    template <class> friend class transactions;
    explicit basic_transaction(hm_transaction *c) noexcept : c_(c) {}
    hm_transaction *c_;
};

/// The one that `store::transaction` gives to its function: its calls throw `error`.
using transaction = basic_transaction<throwing>;
/// The one that `store::expected().transaction` gives to its function: its calls return `result`.
using expected_transaction = basic_transaction<expecting>;

namespace detail {

template <class Policy> constexpr bool throws = std::is_same_v<Policy, throwing>;
template <class T> constexpr bool is_result = false;
template <class T> constexpr bool is_result<result<T>> = true;

/// What a callback of C collects.
template <class T> struct collected {
    std::vector<T> &all;
    barrier wall;
};

} // namespace detail

/// The calls that do several keys at one moment: hashmere_transaction.h says what each does, guarantees and can fail with.
template <class Policy> class transactions : public by_key<Policy> {
public:
    template <class T> using returns = typename by_key<Policy>::template returns<T>;

    /// @name Several keys at one moment
    /// @{

    /// Runs `f` with a `transaction` and then does all that it wrote at one moment, provided that everything that it read is unchanged then.
    /// Returns what `f` returned (of `expected()`, `f` gets an `expected_transaction` and returns a `result`).
    ///
    /// **`f` may run several times**: when others changed what it read, nothing has happened, and it is called again. So it must have no
    /// effects but through the transaction. No lock is held while it runs. If it throws (or returns a failure) nothing has happened, and that
    /// is passed on; unless what it had read was changed by others: then it may come from that, and `f` is called again.
    template <class F> auto transaction(F &&f) -> std::invoke_result_t<F &, basic_transaction<Policy> &> {
        using answer = std::invoke_result_t<F &, basic_transaction<Policy> &>;
        static_assert(detail::throws<Policy> || detail::is_result<answer>, "through expected() the function returns a hashmere::result");
        hm_transaction *made = nullptr;
        hm_error e;
        if (hm_transaction_open(c_, &made, &e) > 0) return failed<answer>(e);
        const detail::owned<hm_transaction, hm_transaction_close> open(made);
        basic_transaction<Policy> with(made);
        for (;;) {
            std::optional<std::conditional_t<std::is_void_v<answer>, detail::nothing, answer>> got;
            detail::barrier wall;
            wall.run([&] {
                if constexpr (std::is_void_v<answer>) {
                    f(with);
                    got.emplace();
                } else {
                    got.emplace(f(with));
                }
            });
            const int rc = succeeded(got) ? hm_transaction_commit(made, &e) : hm_transaction_rollback(made, &e);
            if (rc == HM_MISMATCH) continue;
            if (rc > 0) return failed<answer>(e);
            wall.lift();
            if constexpr (std::is_void_v<answer>) {
                return;
            } else {
                return std::move(*got);
            }
        }
    }
    /// Does all operations of a batch at one moment; returns what each did.
    returns<std::vector<batch_result>> write_batch(const hashmere::write_batch &batch) {
        std::vector<batch_result> all;
        detail::collected<batch_result> to{all, {}};
        return base::template answer<std::vector<batch_result>>(
            [&](hm_error *e) {
                const int rc = hm_write_batch_commit(c_, batch.c(), keep_result, &to, e);
                return to.wall.lift(), rc;
            },
            [&](int) { return std::move(all); });
    }
    /// Does the one batch if all conditions hold, else the other one; conditions and batch at one moment.
    returns<branch> write_batch_if(std::initializer_list<condition> conditions, const hashmere::write_batch &then,
                                   const hashmere::write_batch &otherwise) {
        return write_batch_if(std::vector<condition>(conditions), then, otherwise);
    }
    /// The same with a range of conditions.
    template <class Conditions>
    returns<branch> write_batch_if(const Conditions &conditions, const hashmere::write_batch &then,
                                   const hashmere::write_batch &otherwise) {
        std::vector<hm_condition> array;
        for (const condition &one : conditions) array.push_back(one.c());
        branch done{};
        detail::collected<batch_result> to{done.results, {}};
        return base::template answer<branch>(
            [&](hm_error *e) {
                const int rc = hm_write_batch_commit_if(c_, array.data(), array.size(), then.c(), otherwise.c(),
                                                        keep_result, &to, e);
                return to.wall.lift(), rc;
            },
            [&](int rc) {
                done.succeeded = rc == HM_OK;
                return std::move(done);
            });
    }
    /// The items of the keys of a range as they were at one moment of this call; no lock, and no writer waits.
    template <class Keys> returns<std::vector<std::optional<item>>> get_many_snapshot(const Keys &keys) const {
        const auto array = detail::array_of(keys);
        std::vector<std::optional<item>> all;
        detail::collected<std::optional<item>> to{all, {}};
        auto keep = [](void *user, std::size_t, const hm_pair *c) noexcept {
            auto &into = *static_cast<detail::collected<std::optional<item>> *>(user);
            const bool kept = into.wall.run([&] {
                into.all.emplace_back();
                if (c) into.all.back() = item{std::string(pair(*c).value), metadata(c->metadata)};
            });
            return kept ? 0 : 1;
        };
        return base::template answer<std::vector<std::optional<item>>>(
            [&](hm_error *e) {
                const int rc = hm_get_many_snapshot(c_, array.data(), array.size(), keep, &to, e);
                return to.wall.lift(), rc;
            },
            [&](int) { return std::move(all); });
    }
    /// @}

protected:
    using typename by_key<Policy>::base;
    using by_key<Policy>::by_key;
    using base::c_;

private:
    static int keep_result(void *user, std::size_t, const hm_batch_result *c) noexcept {
        auto &into = *static_cast<detail::collected<batch_result> *>(user);
        return into.wall.run([&] { into.all.emplace_back(*c); }) ? 0 : 1;
    }
    template <class T> static T failed(const hm_error &e) {
        if constexpr (detail::throws<Policy>) {
            detail::raise(failure(e));
        } else {
            return T(failure(e));
        }
    }
    /// Whether a function returned, and something that is no failure.
    template <class T> static bool succeeded(const std::optional<T> &got) noexcept {
        if constexpr (detail::throws<Policy>) {
            return got.has_value();
        } else {
            return got && got->has_value();
        }
    }
};

} // namespace hashmere

#endif
