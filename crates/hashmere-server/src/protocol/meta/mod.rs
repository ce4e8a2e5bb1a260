//! The meta protocol: lines of two letters, a key and flags. Besides reading and writing, two marks on an item make
//! one of several clients compute its value again.

mod count;
mod delete;
mod get;
pub mod parse;
mod reply;
mod run;
mod set;

pub(super) use run::run;

/// Mark: the value is to be computed again, and may be used until then.
pub const STALE: u32 = 1;
/// Mark: a client has won the right to compute it.
pub const WON: u32 = 2;
