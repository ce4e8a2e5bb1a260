//! The meta protocol: lines of two letters, a key and flags. Besides reading and writing it shares the work of computing a value again
//! between clients, by two marks on the item.

mod count;
mod delete;
mod get;
pub mod parse;
mod reply;
mod run;
mod set;

pub(super) use run::run;

/// Mark: the value is to be computed again, and may be used meanwhile.
pub const STALE: u32 = 1;
/// Mark: somebody was told to compute it.
pub const WON: u32 = 2;
