//! Members of a transaction in a durable store: what a rebuild after a power cut finds out from whether all of them
//! arrived. `docs/internals/durability.md` says why.

use crate::cell::KEYS_MAX;

/// The period of a member whose transaction was not complete: after every sync.
pub const NO_PERIOD: u64 = u64::MAX;

/// The second word of a member.
///
/// ```text
///  63          54 53                                   12  11  10         0
/// +--------------+---------------------------------------+----+------------+
/// | client       | number of the transaction             | T  | members    |
/// +--------------+---------------------------------------+----+------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Client slot.
    pub client: u32,
    /// The number that the client gave the transaction.
    pub number: u64,
    /// The record says that its key was deleted.
    pub is_tombstone: bool,
    /// How many members the transaction has.
    pub members: u64,
}

const NUMBER_MASK: u64 = (1 << 42) - 1;
const TOMBSTONE: u64 = 1 << 11;
const _: () = assert!(KEYS_MAX < TOMBSTONE);

impl Member {
    /// Packs the word.
    pub fn pack(self) -> u64 {
        let tombstone = if self.is_tombstone { TOMBSTONE } else { 0 };
        u64::from(self.client) << 54 | (self.number & NUMBER_MASK) << 12 | tombstone | self.members
    }
    /// Unpacks it.
    pub fn unpack(word: u64) -> Member {
        Member {
            client: (word >> 54) as u32,
            number: word >> 12 & NUMBER_MASK,
            is_tombstone: word & TOMBSTONE != 0,
            members: word & (TOMBSTONE - 1),
        }
    }
    /// What all members of one transaction have in common.
    pub fn transaction(self) -> u64 {
        Member { is_tombstone: false, ..self }.pack()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_round_trip() {
        for is_tombstone in [false, true] {
            let member = Member { client: 1023, number: NUMBER_MASK, is_tombstone, members: KEYS_MAX };
            assert_eq!(Member::unpack(member.pack()), member);
            assert_eq!(Member::unpack(member.transaction()), Member { is_tombstone: false, ..member });
        }
    }
}
