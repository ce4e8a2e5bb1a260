// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file dump.hpp
/// Stores as text, and what is done with a store that is not open, in one call: the C++ interface to hashmere_dump.h. Not a part of
/// hashmere.hpp.
///
/// @code
/// hashmere::dump(store, "sessions.tsv");
/// hashmere::load(copy, "sessions.tsv");
/// if (!hashmere::named::check("sessions").is_clean()) std::cerr << "damaged\n";
/// @endcode
///
/// What fails throws `error`.
#ifndef HASHMERE_DUMP_HPP
#define HASHMERE_DUMP_HPP

#include "store.hpp"

#include <hashmere_dump.h>

namespace hashmere {

/// The form of a record: see ::hm_format.
enum class format { of_name = HM_FORMAT_OF_NAME, tsv = HM_TSV, jsonl = HM_JSONL };

namespace detail {
/// A call that takes a path and returns a number of records.
template <class Call> std::uint64_t records(Call &&call) {
    std::uint64_t n = 0;
    must([&](hm_error *e) { return call(&n, e); });
    return n;
}
struct checking : answers<throwing> {
    using answers::answer_check;
};
} // namespace detail

/// Writes all records that pass the filter to a file, which appears when it is complete; returns how many there are: see ::hm_dump.
inline std::uint64_t dump(const store &from, const std::string &path, format how = format::of_name, const filter &which = {}) {
    const hm_filter c = which.c();
    return detail::records([&](std::uint64_t *n, hm_error *e) {
        return hm_dump(from.c(), path.c_str(), static_cast<int>(how), &c, n, e);
    });
}

/// Stores all records of a file, in order; returns how many there are: see ::hm_load.
inline std::uint64_t load(store &to, const std::string &path, format how = format::of_name) {
    return detail::records(
        [&](std::uint64_t *n, hm_error *e) { return hm_load(to.c(), path.c_str(), static_cast<int>(how), n, e); });
}

/// Calls on a store by its name or path, which is opened for the call; only `load` creates one.
namespace named {

/// As of `store`, read-only.
inline report check(const std::string &name) {
    return detail::checking::answer_check([&](hm_report *r, hm_show_problem keep, void *user, hm_error *e) {
        return hm_check_named(name.c_str(), r, keep, user, e);
    });
}

/// As of `store`, read-only.
inline hashmere::stats stats(const std::string &name) {
    hashmere::stats s = {};
    s.size = sizeof s;
    detail::must([&](hm_error *e) { return hm_get_stats_named(name.c_str(), &s, e); });
    return s;
}

/// As of `store`.
inline backup_report backup(const std::string &name, const std::string &path, if_there there = if_there::refuse) {
    backup_report r = {};
    r.size = sizeof r;
    const std::uint64_t flags = there == if_there::replace ? HM_REPLACE : 0;
    detail::must([&](hm_error *e) { return hm_backup_named(name.c_str(), path.c_str(), flags, &r, e); });
    return r;
}

/// As hashmere::dump, read-only.
inline std::uint64_t dump(const std::string &name, const std::string &path, format how = format::of_name,
                          const filter &which = {}) {
    const hm_filter c = which.c();
    return detail::records([&](std::uint64_t *n, hm_error *e) {
        return hm_dump_named(name.c_str(), path.c_str(), static_cast<int>(how), &c, n, e);
    });
}

/// As hashmere::load; `options` say how the store is opened, or created if it is missing.
inline std::uint64_t load(const std::string &name, const std::string &path, format how = format::of_name,
                          const options &opening = {}) {
    return detail::records([&](std::uint64_t *n, hm_error *e) {
        return hm_load_named(name.c_str(), &opening.c(), path.c_str(), static_cast<int>(how), n, e);
    });
}

} // namespace named
} // namespace hashmere

#endif
