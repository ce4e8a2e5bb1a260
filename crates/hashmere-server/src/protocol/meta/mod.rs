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
