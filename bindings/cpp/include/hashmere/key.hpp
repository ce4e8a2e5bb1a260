// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file key.hpp
/// Bytes, and what names a key.
#ifndef HASHMERE_KEY_HPP
#define HASHMERE_KEY_HPP

#include <hashmere.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hashmere {

/// Bytes that are borrowed: a `std::string_view` that is also made of containers of bytes.
class bytes : public std::string_view {
    template <class C, class V = typename C::value_type>
    static constexpr bool is_bytes = sizeof(V) == 1 && std::is_trivially_copyable_v<V>;

public:
    using std::string_view::string_view;
    constexpr bytes(std::string_view text) noexcept : std::string_view(text) {}
    bytes(const std::string &text) noexcept : std::string_view(text) {}
    bytes(const void *data, std::size_t size) noexcept : std::string_view(static_cast<const char *>(data), size) {}
    /// Of a vector, an array or a span of bytes.
    template <class C, class = std::enable_if_t<is_bytes<C>>, class = decltype(std::declval<const C &>().data())>
    bytes(const C &container) noexcept : bytes(static_cast<const void *>(container.data()), container.size()) {}
    /// The bytes of one plain value, in the order of this machine.
    template <class T> static bytes of(const T &value) noexcept {
        static_assert(std::is_trivially_copyable_v<T>, "only plain values have bytes that mean something elsewhere");
        return bytes(static_cast<const void *>(&value), sizeof value);
    }
};

/// The stable 32-bit number of a present key. Once the key is gone, it may come to mean another key.
enum class uid : std::uint32_t {};
/// A UID that does not find another key once its own is gone.
enum class entry_id : std::uint64_t {};

/// What names a key in a call: its bytes, its bytes with a hash of the caller's, or the number of its entry. Made of any of them; borrows
/// the bytes.
///
/// By the number of an entry that is gone, a call does what it does for an absent key; where that would be to create the key, it is
/// error HM_E_STALE.
class key {
    template <class B> using if_bytes = std::enable_if_t<std::is_convertible_v<const B &, bytes>>;

public:
    /// Of anything that is bytes.
    template <class B, class = if_bytes<B>> key(const B &name) noexcept : key(bytes(name), 0, HM_KEY_BYTES) {}
    key(uid at) noexcept : key({}, static_cast<std::uint32_t>(at), HM_KEY_UID) {}
    key(entry_id at) noexcept : key({}, static_cast<std::uint64_t>(at), HM_KEY_ID) {}
    /// With a hash of the caller's: found with the same hash only. The same bytes without one, or with another, are another key.
    template <class B, class = if_bytes<B>>
    explicit key(const B &name, std::uint64_t hash) noexcept : key(bytes(name), hash, HM_KEY_HASHED) {}

    /// For C, good as long as the bytes are.
    const hm_key &c() const noexcept { return c_; }

private:
    key(bytes name, std::uint64_t number, std::uint32_t kind) noexcept
        : c_{name.data(), name.size(), number, kind, 0} {}
    hm_key c_;
};

} // namespace hashmere

#endif
