//! What happens to the keys of a store, in order, for consumers that stop and resume.
//!
//! A store that was opened with a feed keeps the newest changes in its own file: each set, delete,
//! touch, eviction and expiry, by whatever process. A consumer follows them from a [`Token`]. Where its place is gone,
//! it gets every key and then the changes since.
//!
//! Every change comes at least once, and those of a key in the order in which they were committed. Together with the
//! version a consumer can tell a repetition. `docs/internals/feed.md` has the bytes, the protocol and the argument.

#![forbid(unsafe_code)]

mod digits;
mod entry;
mod envelope;
mod error;
mod event;
mod feed;
mod options;
mod place;
mod read_envelope;
mod ready_fd;
mod switch;
mod token;

pub use error::FeedError;
pub use event::{Change, Event, Operation, ResetReason, TransactionPart, Value};
pub use feed::Feed;
pub use hashmere_engine::FeedInfo;
pub use options::{FeedOptions, FeedStart};
pub use place::Place;
pub use read_envelope::BadEnvelope;
pub use ready_fd::ReadyFd;
pub use switch::{disable, enable, info};
pub use token::{BadToken, Token};
