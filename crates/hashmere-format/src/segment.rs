//! The segment table: one line for every segment of the file.

/// Bytes of an entry: one cache line.
pub const BYTES: u64 = 64;
/// Entries of a chunk of the table.
pub const CHUNK_ENTRIES: u64 = 4096;
/// Bytes of a chunk.
pub const CHUNK_BYTES: u64 = BYTES * CHUNK_ENTRIES;

/// Words of an entry, as byte offsets in it.
pub mod at {
    /// [`State`](super::State), owner and length, packed by [`Word`](super::Word). The word that decides.
    pub const STATE: u64 = 0;
    /// How often the segment was recycled. Never goes back.
    pub const GENERATION: u64 = 8;
    /// Bytes of records that were superseded or deleted (a lower bound).
    pub const DEAD: u64 = 16;
    /// Bytes appended, once it is no longer open.
    pub const USED: u64 = 24;
    /// [`Born`](super::Born): when the last generation is older than the root's, nothing in it lives.
    pub const BORN: u64 = 32;
    /// Earliest expiry of its records (`u64::MAX`: none expires).
    pub const EXPIRE_MIN: u64 = 40;
    /// Latest expiry of those of its records that expire.
    pub const EXPIRE_MAX: u64 = 48;
    /// Bytes of its records that expire.
    pub const EXPIRING: u64 = 56;
    /// Pending free in a durable store, the same word: number of the sync that must be completed before it is free.
    pub const AWAITS: u64 = EXPIRING;
}

/// What a segment is used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Nothing, with memory behind all of it; any client may claim it.
    Free = 0,
    /// Its owner appends to it.
    Open = 1,
    /// Partly filled, without an owner: the next writer that needs room appends behind what is there.
    Partial = 2,
    /// Full; may be cleaned.
    Sealed = 3,
    /// Its owner moves what lives out of it.
    Cleaning = 4,
    /// Empty, waiting for pins to go.
    PendingFree = 5,
    /// Holds index leaves, a directory chunk or the root.
    Index = 6,
    /// First segment of one large record; the length says how many follow.
    Large = 7,
    /// A later segment of something that needs several.
    Tail = 8,
    /// Like `Large`, but its record is not committed yet; its owner fills it.
    LargeNew = 9,
    /// Holds a chunk of the segment table.
    Table = 10,
    /// Being taken from free to something else by its owner, who has not yet written anything.
    Claimed = 11,
    /// First segment of a region: a named object's own, for as long as it exists. Never cleaned, evicted or cleared.
    Region = 12,
    /// Taken out of use, because the store has a lower maximum than before: not to be claimed, and no memory behind it.
    Offline = 13,
    /// Nothing, and no memory behind it: a hole in the file. Any client may claim it and ask for memory, as for growth.
    Hole = 14,
}

impl State {
    fn from_byte(byte: u8) -> Option<State> {
        use State::*;
        [
            Free,
            Open,
            Partial,
            Sealed,
            Cleaning,
            PendingFree,
            Index,
            Large,
            Tail,
            LargeNew,
            Table,
            Claimed,
            Region,
            Offline,
            Hole,
        ]
        .get(byte as usize)
        .copied()
    }
}

/// The state word: state, owner (client slot plus one, 0 none), length in segments (1 unless large).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// What it is used for.
    pub state: State,
    /// Client slot of the owner plus one; zero for none.
    pub owner: u32,
    /// How many segments this one leads, itself included.
    pub length: u32,
    /// Of a cache: it holds what was read since it was stored, and survived an eviction.
    pub protected: bool,
}

const PROTECTED: u64 = 1 << 63;

impl Word {
    /// Without an owner, an extent of one segment.
    pub const fn new(state: State) -> Word {
        Word { state, owner: 0, length: 1, protected: false }
    }
    /// The same with an owner.
    pub const fn owned(state: State, slot: u32) -> Word {
        Word { state, owner: slot + 1, length: 1, protected: false }
    }
    /// The same leading `length` segments.
    pub const fn long(mut self, length: u32) -> Word {
        self.length = length;
        self
    }
    /// The same, protected or not.
    pub const fn protected(mut self, protected: bool) -> Word {
        self.protected = protected;
        self
    }
    /// Packs the word. A free segment of length one packs to zero, which is what a fresh table holds.
    pub fn pack(self) -> u64 {
        let protected = if self.protected { PROTECTED } else { 0 };
        self.state as u64 | u64::from(self.owner) << 8 | u64::from(self.length - 1) << 24 | protected
    }
    /// Unpacks the word; `None` if it is damaged.
    #[inline]
    pub fn unpack(word: u64) -> Option<Word> {
        let state = State::from_byte(word as u8)?;
        Some(Word {
            state,
            owner: (word >> 8 & 0xffff) as u32,
            length: ((word >> 24) as u32).checked_add(1)?,
            protected: word & PROTECTED != 0,
        })
    }
}

/// Between which root generations a segment was appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Born {
    /// When it was opened, or earlier: no operation under an older root knows of anything in it.
    pub first: u64,
    /// At the last append.
    pub last: u64,
}

impl Born {
    const BITS: u32 = 40;
    const FAR: u64 = (1 << (64 - Self::BITS)) - 1;

    /// Packs both. What lies too far back counts as the beginning of all time.
    pub fn pack(self) -> u64 {
        self.last | self.last.saturating_sub(self.first).min(Self::FAR) << Self::BITS
    }
    /// Unpacks both.
    #[inline]
    pub fn unpack(word: u64) -> Born {
        let (last, back) = (word & ((1 << Self::BITS) - 1), word >> Self::BITS);
        Born { first: if back == Self::FAR { 0 } else { last.saturating_sub(back) }, last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for s in 0..15 {
            for protected in [false, true] {
                let word = Word { state: State::from_byte(s).unwrap(), owner: 1024, length: 8192, protected };
                assert_eq!(Word::unpack(word.pack()), Some(word));
            }
        }
        assert_eq!(Word::new(State::Free).pack(), 0);
        for (first, last) in [(1, 1), (3, 7), (0, Born::FAR - 1), (1 << 39, (1 << 40) - 1 - (1 << 39) + (1 << 38))] {
            let born = Born { first: first.min(last), last };
            let back = Born::unpack(born.pack());
            assert!(back.last == last && back.first <= born.first, "{born:?} {back:?}");
            assert!(last - first.min(last) >= Born::FAR || back == born, "{born:?} {back:?}");
        }
        assert_eq!(Born { first: 9, last: 9 }.pack(), 9, "one generation is the plain number");
        assert_eq!(Word::unpack(99), None);
    }
}
