//! The three languages of memcached: parsers and reply writers over byte slices. Nothing here reads a socket, a clock or a
//! store, and nothing allocates.

pub mod ahead;
pub mod binary;
pub mod classic;
pub mod meta;
pub mod number;
pub mod uri;
pub mod words;

/// Longest key.
pub const KEY_MAX: usize = 250;
