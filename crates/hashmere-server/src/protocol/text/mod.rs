//! The text protocol: requests of one line, some followed by a value. The lines of the meta commands go to
//! [`meta`](super::meta).

mod admin;
pub(super) mod dump;
pub(super) mod get;
mod lease;
pub mod parse;
pub(super) mod reply;
mod run;
pub(super) mod step;
mod write;

pub use run::Text;
