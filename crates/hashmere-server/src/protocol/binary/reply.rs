//! Replies: a header like that of a request, with a status.

use super::parse::{status, Packet};
use crate::turn::Turn;
use hashmere::WriteError;

/// First byte of a reply.
pub const REPLY: u8 = 0x81;
/// A reply's header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reply {
    /// Operation.
    pub opcode: u8,
    /// Status.
    pub status: u16,
    /// Bytes of the extras.
    pub extras: usize,
    /// Bytes of the key.
    pub key: usize,
    /// Bytes of the value.
    pub value: usize,
    /// From the request.
    pub opaque: [u8; 4],
    /// Version.
    pub cas: u64,
}

impl Reply {
    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let key = (self.key as u16).to_be_bytes();
        let body = ((self.extras + self.key + self.value) as u32).to_be_bytes();
        out.extend_from_slice(&[REPLY, self.opcode, key[0], key[1], self.extras as u8, 0]);
        out.extend_from_slice(&self.status.to_be_bytes());
        out.extend_from_slice(&body);
        out.extend_from_slice(&self.opaque);
        out.extend_from_slice(&self.cas.to_be_bytes());
    }
}

/// Answers a packet.
pub fn reply(turn: &mut Turn<'_>, packet: &Packet<'_>, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) {
    let opcode = packet.header.opcode;
    let (extras_len, key_len) = (extras.len(), key.len());
    let reply = Reply { opcode, extras: extras_len, key: key_len, value: value.len(), cas, ..Reply::default() };
    Reply { opaque: packet.header.opaque, ..reply }.write(&mut turn.out.bytes);
    for part in [extras, key, value] {
        turn.out.bytes.extend_from_slice(part);
    }
}

/// Answers a packet with an error.
pub fn fail(turn: &mut Turn<'_>, packet: &Packet<'_>, (status, text): (u16, &str)) {
    let (opcode, opaque) = (packet.header.opcode, packet.header.opaque);
    let value = text.len();
    Reply { opcode, status, value, opaque, ..Reply::default() }.write(&mut turn.out.bytes);
    turn.out.text(text);
}

/// A miss. With the key in the reply there is no room for a text.
pub fn miss(turn: &mut Turn<'_>, packet: &Packet<'_>, key: &[u8]) {
    if packet.quiet {
        return;
    }
    if key.is_empty() {
        return fail(turn, packet, status::NOT_FOUND);
    }
    let (opcode, opaque) = (packet.header.opcode, packet.header.opaque);
    let status = status::NOT_FOUND.0;
    Reply { opcode, status, key: key.len(), opaque, ..Reply::default() }.write(&mut turn.out.bytes);
    turn.out.bytes.extend_from_slice(key);
}

/// Replies that the store refused.
pub fn fail_write(turn: &mut Turn<'_>, packet: &Packet<'_>, error: &WriteError) {
    let status = match error {
        error if error.is_no_room() => status::NO_MEMORY,
        WriteError::TooLarge { .. } => status::TOO_LARGE,
        WriteError::NotANumber => status::NOT_A_NUMBER,
        other => {
            turn.server.log(0, || format!("cannot write: {other}"));
            (0x84, "Internal error")
        }
    };
    fail(turn, packet, status);
}

#[cfg(test)]
mod tests {
    use super::super::parse::{wide, word, HEADER};
    use super::*;

    #[test]
    fn replies() {
        let mut out = Vec::new();
        Reply { opcode: 1, status: 2, extras: 4, key: 1, value: 3, opaque: *b"abcd", cas: 5 }.write(&mut out);
        assert_eq!(out.len(), HEADER);
        assert_eq!((out[0], out[1], out[3], out[4], out[7], out[11], out[23]), (REPLY, 1, 1, 4, 2, 8, 5));
        assert_eq!((word(&out, 12), wide(&out, 16), word(&out, 22)), (0x6162_6364, 5, 0));
    }
}
