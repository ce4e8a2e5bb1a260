//! The three protocols of memcached, that of Redis, and HTTP. Each folder parses requests (`parse.rs`: byte slices
//! only, no socket, clock or store), performs them on the store, and writes the replies (`reply.rs`). This file has
//! what they share.

pub mod binary;
pub mod exptime;
pub(crate) mod first_byte;
pub(crate) mod http;
pub(crate) mod memcached;
pub mod meta;
pub mod number;
pub mod peek_key;
pub mod percent;
pub mod resp;
pub mod text;
pub mod tokens;

/// Longest key.
pub const KEY_MAX: usize = 250;
/// A declared length above this is invalid: no value is read for it.
pub const LEN_MAX: u64 = (1 << 31) - 4;
/// Longest line of a retrieval.
pub const LINE_MAX: usize = 1 << 20;
/// A connection with more output than this is not served until its client has taken some.
pub const OUTPUT_MAX: usize = 256 << 10;

/// The reply to an unknown command.
pub const ERROR: &str = "ERROR";
/// The reply to missing arguments, arguments that are not numbers, negative lengths, keys that are too long.
pub const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
/// The reply to a value that is not followed by a line ending.
pub const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk";
/// The reply to an expiry that is not a number.
pub const BAD_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";
/// The reply to counting what is not a number.
pub const NOT_A_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";
/// The reply to a value above the item limit.
pub const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";

/// What a storing command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Stores unconditionally.
    Set,
    /// Stores if the key is absent.
    Add,
    /// Stores if the key is present.
    Replace,
    /// Extends the value at its end.
    Append,
    /// Extends the value at its beginning.
    Prepend,
    /// Stores if the key has this version.
    Cas(u64),
    /// Stores if the lease of the key has this token; as stale with another.
    Lease(u64),
}

/// What a session needs to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More input. The current request has this length in all, as far as is known; 0 if that is not known.
    Input(usize),
    /// Its output sent first.
    Output,
    /// Nothing: the connection is to be closed when the output was sent.
    Close,
}

/// What text and binary protocol both keep of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// The client has not authenticated yet: requests are refused.
    pub locked: bool,
    /// Bytes of a refused value that are still to be skipped.
    pub skip: u64,
}

impl Gate {
    /// Skips the beginning of this input, as far as it belongs to a refused value; returns how many bytes.
    pub fn skip_from(&mut self, input: &[u8]) -> usize {
        let now = self.skip.min(input.len() as u64);
        self.skip -= now;
        now as usize
    }
}
