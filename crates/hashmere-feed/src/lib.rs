//! What happens to the keys of a store, in order, for consumers that stop and resume.
//!
//! A store that was opened with a feed keeps the last so many bytes of changes in its own file: each set, delete,
//! touch, eviction and expiry, by whatever process. A consumer follows them from a [`Token`]. Where its place is gone,
//! it gets every key and then the changes since.
//!
//! Every change comes at least once, and those of a key in the order in which they were committed. Together with the
//! version a consumer can tell a repetition. `docs/internals/feed.md` has the bytes, the protocol and the argument.

#![forbid(unsafe_code)]

mod event;
mod token;

pub use event::{Change, Event, Operation, ResetReason, TransactionPart, Value};
pub use token::{BadToken, Token};
