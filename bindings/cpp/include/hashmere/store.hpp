// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file store.hpp
/// The handle.
#ifndef HASHMERE_STORE_HPP
#define HASHMERE_STORE_HPP

#include "calls.hpp"

namespace hashmere {

/// An open store. Move-only; closes itself. Its calls, inherited from `calls`, throw `error`.
///
/// May be used by any number of threads; put it into a `std::shared_ptr` if it is not clear which of them goes last.
class store : public calls<throwing> {
public:
    /// Opens a store by name or path, creating it if it is missing. Throws `error`.
    explicit store(const std::string &name, const options &how = {}) : store(open(name, how).value()) {}

    /// The same with a result.
    static result<store> open(const std::string &name, const options &how = {}) {
        hm_store *opened = nullptr;
        hm_error e;
        const int rc = has_nul(name, e) ? e.code : hm_open(name.c_str(), &how.c(), &opened, &e);
        if (rc > 0) return failure(e);
        return store(opened);
    }

    /// Removes a store's file; false if there was none. Throws `error`.
    static bool remove(const std::string &name) {
        hm_error e;
        const int rc = has_nul(name, e) ? e.code : hm_remove(name.c_str(), &e);
        if (rc > 0) detail::raise(failure(e));
        return rc == HM_OK;
    }

    store(store &&other) noexcept : calls(std::exchange(other.c_, nullptr)) {}
    store &operator=(store &&other) noexcept {
        if (this != &other) {
            close();
            c_ = std::exchange(other.c_, nullptr);
        }
        return *this;
    }
    store(const store &) = delete;
    store &operator=(const store &) = delete;
    ~store() { close(); }

    /// Closes the store before its time. Views, reservations and scans of it stay good.
    void close() noexcept { hm_close(std::exchange(c_, nullptr), nullptr); }

    /// The same calls, which return `result` and do not throw (but for what callbacks throw, and std::bad_alloc). Good as long as
    /// this store is.
    calls<expecting> expected() const noexcept { return calls<expecting>(c_); }

private:
    explicit store(hm_store *opened) noexcept : calls(opened) {}

    /// A name with a NUL in it would mean another one to C.
    static bool has_nul(const std::string &name, hm_error &e) {
        if (name.find('\0') == std::string::npos) return false;
        e = {};
        e.code = HM_E_BAD_NAME;
        e.text_len = static_cast<std::uint32_t>(
            std::snprintf(e.text, sizeof e.text, "the name of a store cannot contain NUL bytes"));
        return true;
    }
};

} // namespace hashmere

#endif
