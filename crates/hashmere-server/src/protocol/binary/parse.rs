//! The binary protocol: a header of 24 bytes, then extras, key and value.
//!
//! ```text
//!  0      1       2..4        4        5     6..8             8..12   12..16  16..24
//!  magic  opcode  key length  extras   type  vbucket/status   body    opaque  version
//! ```

use crate::protocol::{KEY_MAX, LEN_MAX};

/// First byte of a request.
pub const REQUEST: u8 = 0x80;
/// Bytes of a header.
pub const HEADER: usize = 24;

/// Operation codes. The quiet ones are folded into the loud ones by [`Header::quiet`].
#[allow(missing_docs, reason = "the names are the protocol's")]
pub mod opcode {
    pub const GET: u8 = 0x00;
    pub const SET: u8 = 0x01;
    pub const ADD: u8 = 0x02;
    pub const REPLACE: u8 = 0x03;
    pub const DELETE: u8 = 0x04;
    pub const INCREMENT: u8 = 0x05;
    pub const DECREMENT: u8 = 0x06;
    pub const QUIT: u8 = 0x07;
    pub const FLUSH: u8 = 0x08;
    pub const GETQ: u8 = 0x09;
    pub const NOOP: u8 = 0x0a;
    pub const VERSION: u8 = 0x0b;
    pub const GETK: u8 = 0x0c;
    pub const GETKQ: u8 = 0x0d;
    pub const APPEND: u8 = 0x0e;
    pub const PREPEND: u8 = 0x0f;
    pub const STAT: u8 = 0x10;
    pub const SETQ: u8 = 0x11;
    pub const PREPENDQ: u8 = 0x1a;
    pub const VERBOSITY: u8 = 0x1b;
    pub const TOUCH: u8 = 0x1c;
    pub const GAT: u8 = 0x1d;
    pub const GATQ: u8 = 0x1e;
    pub const SASL_LIST: u8 = 0x20;
    pub const SASL_AUTH: u8 = 0x21;
    pub const SASL_STEP: u8 = 0x22;
    pub const GATK: u8 = 0x23;
    pub const GATKQ: u8 = 0x24;
}

/// Statuses of replies, with their texts.
#[allow(missing_docs, reason = "the names are the protocol's")]
pub mod status {
    pub const OK: (u16, &str) = (0x00, "");
    pub const NOT_FOUND: (u16, &str) = (0x01, "Not found");
    pub const EXISTS: (u16, &str) = (0x02, "Data exists for key.");
    pub const TOO_LARGE: (u16, &str) = (0x03, "Too large.");
    pub const INVALID: (u16, &str) = (0x04, "Invalid arguments");
    pub const NOT_STORED: (u16, &str) = (0x05, "Not stored.");
    pub const NOT_A_NUMBER: (u16, &str) = (0x06, "Non-numeric server-side value for incr or decr");
    pub const AUTH_ERROR: (u16, &str) = (0x20, "Auth failure.");
    pub const AUTH_CONTINUE: (u16, &str) = (0x21, "");
    pub const UNKNOWN: (u16, &str) = (0x81, "Unknown command");
    pub const NO_MEMORY: (u16, &str) = (0x82, "Out of memory");
}

/// A request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Operation, as sent.
    pub opcode: u8,
    /// Bytes of the key.
    pub key: usize,
    /// Bytes of the extras.
    pub extras: usize,
    /// Bytes of extras, key and value.
    pub body: usize,
    /// Copied into the reply.
    pub opaque: [u8; 4],
    /// Version.
    pub cas: u64,
}

impl Header {
    /// Reads a header. `None`: it is not one of a request.
    pub fn read(bytes: &[u8; HEADER]) -> Option<Header> {
        let [magic, opcode, k0, k1, extras, _type, _v0, _v1, b0, b1, b2, b3, o0, o1, o2, o3, cas @ ..] = *bytes;
        (magic == REQUEST).then_some(Header {
            opcode,
            key: usize::from(u16::from_be_bytes([k0, k1])),
            extras: usize::from(extras),
            body: u32::from_be_bytes([b0, b1, b2, b3]) as usize,
            opaque: [o0, o1, o2, o3],
            cas: u64::from_be_bytes(cas),
        })
    }

    /// The loud operation, and whether this is its quiet form.
    pub fn quiet(&self) -> (u8, bool) {
        use opcode::*;
        match self.opcode {
            GETQ => (GET, true),
            GETKQ => (GETK, true),
            GATQ => (GAT, true),
            GATKQ => (GATK, true),
            SETQ..=0x18 => (self.opcode - SETQ + SET, true),
            0x19 | PREPENDQ => (self.opcode - 0x19 + APPEND, true),
            loud => (loud, false),
        }
    }

    /// Splits a body into extras, key and value. `None`: the lengths contradict each other.
    pub fn split<'a>(&self, body: &'a [u8]) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
        let (extras, rest) = body.split_at_checked(self.extras)?;
        let (key, value) = rest.split_at_checked(self.key)?;
        Some((extras, key, value))
    }
}

/// One request, whole.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its header.
    pub header: Header,
    /// Its operation, loud.
    pub opcode: u8,
    /// Whether replies that say nothing new are left out.
    pub quiet: bool,
    /// Its extras.
    pub extras: &'a [u8],
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

/// Whether a packet has the parts that its operation needs and no others, as far as its header says.
pub fn is_well_formed(opcode: u8, header: &Header) -> bool {
    use opcode::*;
    let (extras, key) = (header.extras, header.key > 0);
    let Some(value) = header.body.checked_sub(header.key + extras) else { return false };
    if header.key > KEY_MAX || header.body as u64 > LEN_MAX {
        return false;
    }
    match opcode {
        GET | GETK | DELETE => extras == 0 && key && value == 0,
        SET | ADD | REPLACE => extras == 8 && key,
        APPEND | PREPEND => extras == 0 && key,
        INCREMENT | DECREMENT => extras == 20 && key && value == 0,
        TOUCH | GAT | GATK => extras == 4 && key && value == 0,
        FLUSH => (extras == 0 || extras == 4) && !key && value == 0,
        VERBOSITY => extras == 4 && !key && value == 0,
        NOOP | VERSION | QUIT => extras == 0 && !key && value == 0,
        STAT => extras == 0 && value == 0,
        _ => true,
    }
}

/// Four bytes of extras as a number; zero if they are not there.
pub fn word(extras: &[u8], at: usize) -> u32 {
    match extras.get(at..at + 4) {
        Some(&[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// Eight bytes of extras as a number.
pub fn wide(extras: &[u8], at: usize) -> u64 {
    u64::from(word(extras, at)) << 32 | u64::from(word(extras, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_bodies() {
        let mut bytes = [0u8; HEADER];
        bytes[0] = REQUEST;
        bytes[1] = opcode::SETQ;
        bytes[3] = 2;
        bytes[4] = 8;
        bytes[11] = 15;
        bytes[23] = 9;
        let header = Header::read(&bytes).unwrap();
        assert_eq!((header.key, header.extras, header.body, header.cas), (2, 8, 15, 9));
        assert_eq!(header.quiet(), (opcode::SET, true));
        assert_eq!(header.split(b"eeeeeeeekkvalue"), Some((&b"eeeeeeee"[..], &b"kk"[..], &b"value"[..])));
        assert_eq!(header.split(b"eeeeeeee"), None);
        bytes[0] = 0x79;
        assert_eq!(Header::read(&bytes), None);
    }

    #[test]
    fn every_quiet_operation_has_its_loud_one() {
        use opcode::*;
        let loud = |opcode| Header { opcode, key: 0, extras: 0, body: 0, opaque: [0; 4], cas: 0 }.quiet();
        for (quiet, expected) in [
            (GETQ, GET),
            (GETKQ, GETK),
            (0x11, SET),
            (0x12, ADD),
            (0x13, REPLACE),
            (0x14, DELETE),
            (0x15, INCREMENT),
            (0x16, DECREMENT),
            (0x17, QUIT),
            (0x18, FLUSH),
            (0x19, APPEND),
            (PREPENDQ, PREPEND),
            (GATQ, GAT),
            (GATKQ, GATK),
        ] {
            assert_eq!(loud(quiet), (expected, true));
        }
        assert_eq!(loud(NOOP), (NOOP, false));
    }
}
