//! The result of each request, and the number by which the kernel says to which one it belongs.

use crate::buffers::Buffer;
use std::io;

const KIND: u32 = 62;
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const READY: u64 = 2;
const CANCEL: u64 = 3;

/// By what its user knows a socket: a place, and which of those that had the place one after the other. Completions
/// may come when a socket is closed, and its place is another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The place.
    pub place: u32,
    /// Which one it is at that place; counted modulo 2^30.
    pub generation: u32,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To receive.
    Receive(Tag),
    /// To send what is in this slot.
    Send(usize),
    /// To tell when a descriptor is ready.
    Ready,
    /// To cancel something.
    Cancel,
}

/// Something that was asked for has happened.
#[derive(Debug)]
pub enum Completion {
    /// The descriptor of [`Ring::watch`](crate::Ring::watch) is readable. It is not watched any more.
    Ready,
    /// Something came.
    Received {
        /// The socket.
        tag: Tag,
        /// What.
        input: Input,
        /// More will be received without being asked for again.
        more: bool,
    },
    /// What was given to [`Ring::send`](crate::Ring::send) was sent, all of it, or the socket failed.
    Sent {
        /// The socket.
        tag: Tag,
        /// Why not.
        result: io::Result<()>,
    },
}

/// What was received.
#[derive(Debug)]
pub enum Input {
    /// Bytes, at least one.
    Bytes(Buffer),
    /// The end: the peer sends no more.
    End,
    /// Nothing: all buffers were taken, or it was cancelled.
    Nothing,
    /// The socket failed.
    Failed(io::Error),
}

impl Tag {
    pub(crate) const GENERATIONS: u32 = 1 << 30;

    /// The socket at this place.
    pub fn new(place: u32, generation: u32) -> Tag {
        Tag { place, generation: generation % Tag::GENERATIONS }
    }
}

impl Asked {
    pub(crate) fn number(self) -> u64 {
        match self {
            Asked::Receive(tag) => RECEIVE << KIND | u64::from(tag.generation) << 32 | u64::from(tag.place),
            Asked::Send(slot) => SEND << KIND | slot as u64,
            Asked::Ready => READY << KIND,
            Asked::Cancel => CANCEL << KIND,
        }
    }

    pub(crate) fn of(number: u64) -> Asked {
        let rest = number & ((1 << KIND) - 1);
        match number >> KIND {
            RECEIVE => Asked::Receive(Tag { place: rest as u32, generation: (rest >> 32) as u32 }),
            SEND => Asked::Send(rest as usize),
            READY => Asked::Ready,
            _ => Asked::Cancel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_what_was_asked() {
        let last = Tag::new(u32::MAX, Tag::GENERATIONS - 1);
        let asked = [Asked::Receive(Tag::new(7, 9)), Asked::Receive(last), Asked::Send(0), Asked::Send(1 << 40)];
        for asked in asked.into_iter().chain([Asked::Ready, Asked::Cancel]) {
            assert_eq!(Asked::of(asked.number()), asked);
        }
        assert_eq!(Tag::new(1, Tag::GENERATIONS + 3), Tag::new(1, 3));
    }
}
