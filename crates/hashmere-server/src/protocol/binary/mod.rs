//! The binary protocol: packets with a header of 24 bytes.

pub mod parse;
mod reply;
mod run;
mod sasl;
mod write;

pub use parse::{HEADER, REQUEST};
pub use run::feed;
