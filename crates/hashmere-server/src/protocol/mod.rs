//! The three languages of memcached: parsers and reply writers over byte slices. Nothing here reads a socket, a clock or a
//! store, and nothing allocates.

#[path = "peek_key.rs"]
pub mod ahead;
#[path = "binary/parse.rs"]
pub mod binary;
#[path = "text/parse.rs"]
pub mod classic;
#[path = "meta/parse.rs"]
pub mod meta;
pub mod number;
#[path = "percent.rs"]
pub mod uri;
#[path = "tokens.rs"]
pub mod words;

/// Longest key.
pub const KEY_MAX: usize = 250;
