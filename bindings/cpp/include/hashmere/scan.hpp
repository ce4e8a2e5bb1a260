// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file scan.hpp
/// All keys.
#ifndef HASHMERE_SCAN_HPP
#define HASHMERE_SCAN_HPP

#include "types.hpp"

#include <iterator>

namespace hashmere {

/// Which keys a scan returns.
class filter {
public:
    filter() = default;
    /// Only keys that start with this.
    filter &prefix(bytes prefix) { return prefix_ = prefix, *this; }
    /// Only keys that match this pattern: `*`, `?`, `[a-z]`, `[!a-z]`, `\x`.
    filter &glob(bytes pattern) { return glob_ = std::string(pattern), *this; }
    /// Only keys in which this regular expression is found: see hm_filter::regex.
    filter &regex(bytes pattern) { return regex_ = std::string(pattern), *this; }
    /// Only keys of one of `count` parts, numbered from 0, into which the hashes are divided evenly: several processes share a scan.
    filter &part(std::uint32_t index, std::uint32_t count) { return part_ = index, parts_ = count, has_part_ = true, *this; }
    /// Leave the values out.
    filter &keys_only() { return keys_only_ = true, *this; }
    /// For C, good as long as this is.
    hm_filter c() const noexcept {
        hm_filter c = {};
        c.size = sizeof c;
        c.flags = keys_only_ ? HM_KEYS_ONLY : 0;
        c.prefix = {prefix_.data(), prefix_.size()};
        if (glob_) c.glob = {glob_->data(), glob_->size()};
        if (regex_) c.regex = {regex_->data(), regex_->size()};
        c.part = part_;
        // No parts at all are none of C's, which takes 0 of 0 for every key.
        c.parts = has_part_ && parts_ == 0 ? ~std::uint32_t(0) : parts_;
        return c;
    }

private:
    std::string prefix_;
    std::optional<std::string> glob_, regex_;
    std::uint32_t part_ = 0, parts_ = 0;
    bool has_part_ = false;
    bool keys_only_ = false;
};

/// A running scan, and a range to iterate over once: see ::hm_scan_open. Move-only.
class scan {
public:
    scan(scan &&other) noexcept : c_(std::exchange(other.c_, nullptr)) {}
    scan &operator=(scan &&other) noexcept {
        std::swap(c_, other.c_);
        return *this;
    }
    scan(const scan &) = delete;
    scan &operator=(const scan &) = delete;
    ~scan() { hm_scan_close(c_); }

    /// The next pair, good until the next call; empty at the end. Throws `error`.
    std::optional<pair> next() { return next_as<throwing>(); }
    /// The same with a result.
    result<std::optional<pair>> try_next() { return next_as<expecting>(); }

    /// Where to go on behind the pairs returned so far; empty if the scan is finished. Throws `error`.
    std::optional<cursor> position() const {
        hm_error e;
        std::uint64_t at = 0;
        const int rc = hm_scan_cursor(c_, &at, &e);
        if (rc > 0) detail::raise(failure(e));
        return rc == HM_OK ? std::optional<cursor>(cursor(at)) : std::nullopt;
    }

    /// Goes through what is left of the scan. `++` throws `error`, and ends the life of the pair before it.
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = pair;
        using difference_type = std::ptrdiff_t;
        using pointer = const pair *;
        using reference = const pair &;

        iterator() = default;
        explicit iterator(scan &from) : from_(&from) { ++*this; }
        reference operator*() const { return *now_; }
        pointer operator->() const { return &*now_; }
        iterator &operator++() {
            now_ = from_->next();
            if (!now_) from_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &a, const iterator &b) { return a.from_ == b.from_; }
        friend bool operator!=(const iterator &a, const iterator &b) { return !(a == b); }

    private:
        scan *from_ = nullptr;
        std::optional<pair> now_;
    };
    iterator begin() { return iterator(*this); }
    iterator end() { return iterator(); }

    /// Takes over a scan that ::hm_scan_open started.
    explicit scan(hm_scan *c) noexcept : c_(c) {}

private:
    template <class Policy> typename Policy::template type<std::optional<pair>> next_as() {
        using found = std::optional<pair>;
        hm_error e;
        hm_pair c;
        const int rc = hm_scan_next(c_, &c, &e);
        if (rc > 0) return Policy::template fail<found>(failure(e));
        return Policy::template ok<found>([&] { return rc == HM_OK ? found(pair(c)) : found(); });
    }
    hm_scan *c_;
};

} // namespace hashmere

#endif
