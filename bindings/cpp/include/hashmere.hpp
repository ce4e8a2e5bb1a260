// SPDX-License-Identifier: MIT OR Apache-2.0
/// @file hashmere.hpp
/// The C++17 interface of Hashmere, on hashmere.h alone.
///
/// @code{.cpp}
/// #include <hashmere.hpp>
/// #include <iostream>
///
/// int main() {
///     hashmere::store store("sessions");
///     store.set("user:7", "Ada");
///     if (auto name = store.get("user:7")) std::cout << *name << '\n';
///
///     for (const hashmere::pair &pair : store.scan(hashmere::filter().prefix("user:")))
///         std::cout << pair.key << " = " << pair.value << '\n';
///
///     store.set("page", "<html>", hashmere::attributes().after(std::chrono::seconds(30)));
///     store.incr("hits", 1, hashmere::counter(1));
///     if (auto view = store.view("page")) std::cout << view->bytes().size() << " bytes, not copied\n";
///
///     store.transaction([](hashmere::transaction &t) {      // both or none, for every reader
///         t.incr_by("alice", -30);
///         t.incr_by("bob", 30);
///     });
///
///     auto tried = store.expected().add("user:7", "Eve");   // the same calls, with results in place of exceptions
///     if (!tried) std::cerr << tried.why().text << '\n';
///     else if (!*tried) std::cout << "there is one already\n";
/// }
/// @endcode
///
/// - Handles (`store`, `view`, `reservation`, `scan`) are move-only and give back what they hold when they go.
/// - Keys and values are `hashmere::bytes`, a `std::string_view` that is also made of any container of bytes.
/// - Wherever a call takes a key, it takes a `hashmere::key`: bytes, bytes with a hash of yours, a `uid` or an `entry_id`.
/// - A key that is absent is an empty `std::optional`; errors are `hashmere::error`, or a `hashmere::result` from
///   `expected()`. Compiled without exceptions, a call outside `expected()` that fails ends the program with the text.
/// - What hashmere.h says about threads, fork and lifetimes holds here as well. A moved-from handle may only be assigned to or
///   destroyed; other calls on it report HM_E_ARGUMENT.
#ifndef HASHMERE_HPP
#define HASHMERE_HPP

#include "hashmere/by_key.hpp"
#include "hashmere/calling.hpp"
#include "hashmere/calls.hpp"
#include "hashmere/held.hpp"
#include "hashmere/key.hpp"
#include "hashmere/result.hpp"
#include "hashmere/scan.hpp"
#include "hashmere/store.hpp"
#include "hashmere/transaction.hpp"
#include "hashmere/types.hpp"

#endif
