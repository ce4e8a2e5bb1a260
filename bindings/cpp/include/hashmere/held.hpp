// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file held.hpp
/// What holds something in the file: views and reservations.
#ifndef HASHMERE_HELD_HPP
#define HASHMERE_HELD_HPP

#include "types.hpp"

namespace hashmere {

/// A value in place in the file: see ::hm_view. Move-only; releases itself, so give it a name before you iterate over it.
class view {
public:
    view(view &&other) noexcept : c_(other.c_) { other.c_.opaque[0] = 0; }
    view &operator=(view &&other) noexcept {
        if (this != &other) {
            hm_view_release(&c_);
            c_ = other.c_;
            other.c_.opaque[0] = 0;
        }
        return *this;
    }
    view(const view &) = delete;
    view &operator=(const view &) = delete;
    ~view() { hm_view_release(&c_); }

    /// The value; good as long as this is held.
    hashmere::bytes bytes() const noexcept { return {c_.data, c_.len}; }
    /// Everything else, as it was when the view was taken.
    hashmere::metadata metadata() const noexcept { return hashmere::metadata(c_.metadata); }
    /// Whether it looks into the file, rather than being a copy, as one of a value of at most 8 bytes is.
    bool is_zero_copy() const noexcept { return c_.zero_copy != 0; }
    /// Whether the key still has this value: mostly one load, and never a look-up (::hm_view_is_up_to_date). Throws `error`.
    bool is_up_to_date() const {
        return detail::must([&](hm_error *e) { return hm_view_is_up_to_date(&c_, e); }) == HM_OK;
    }
    const char *data() const noexcept { return static_cast<const char *>(c_.data); }
    std::size_t size() const noexcept { return c_.len; }
    const char *begin() const noexcept { return data(); }
    const char *end() const noexcept { return data() + size(); }

    /// Takes over a structure that ::hm_view_acquire filled.
    explicit view(const hm_view &c) noexcept : c_(c) {}

private:
    hm_view c_;
};

/// Room for a value in the file: see ::hm_reservation. Move-only; gives itself up unless it is committed. It stays in its thread.
class reservation {
public:
    reservation(reservation &&other) noexcept : c_(other.c_) { other.c_.opaque[0] = 0; }
    reservation &operator=(reservation &&other) noexcept {
        if (this != &other) {
            hm_reservation_abandon(&c_, nullptr);
            c_ = other.c_;
            other.c_.opaque[0] = 0;
        }
        return *this;
    }
    reservation(const reservation &) = delete;
    reservation &operator=(const reservation &) = delete;
    ~reservation() { hm_reservation_abandon(&c_, nullptr); }

    /// What is to be filled.
    char *data() noexcept { return static_cast<char *>(c_.data); }
    std::size_t size() const noexcept { return c_.len; }
    char *begin() noexcept { return data(); }
    char *end() noexcept { return data() + size(); }
    char &operator[](std::size_t at) noexcept { return data()[at]; }

    /// Makes what was written the key's value. Throws `error`.
    hashmere::stored commit() { return commit_as<throwing>(); }
    /// The same with a result.
    result<hashmere::stored> try_commit() { return commit_as<expecting>(); }

    /// Takes over a structure that ::hm_reserve filled.
    explicit reservation(const hm_reservation &c) noexcept : c_(c) {}

private:
    template <class Policy> typename Policy::template type<hashmere::stored> commit_as() {
        hm_error e;
        hm_stored done = {};
        const int rc = hm_reservation_commit(&c_, &done, &e);
        if (rc > 0) return Policy::template fail<hashmere::stored>(failure(e));
        return Policy::template ok<hashmere::stored>([&] { return hashmere::stored(done); });
    }
    hm_reservation c_;
};

} // namespace hashmere

#endif
