//! Entries: what they say of each change, word by word.

use crate::feed::Operation;
use crate::record::{VERSION_MAX, VERSION_SHIFT};

/// Bits of a change.
pub mod bit {
    /// It has an expiry.
    pub const EXPIRES: u64 = 1;
    /// It has flags.
    pub const FLAGS: u64 = 2;
    /// Its value is there.
    pub const VALUE: u64 = 4;
    /// The value would be there, but is too long.
    pub const OMITTED: u64 = 8;
    /// The key was given with a hash, which is there.
    pub const HASHED: u64 = 16;
}

const OPERATION_BITS: u32 = 6;
const BITS: u64 = (1 << (VERSION_SHIFT - OPERATION_BITS)) - 1;

/// Bytes of the head of an entry.
pub const ENTRY_HEAD: u64 = 24;

/// The head of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// Words of the whole entry.
    pub words: u64,
    /// How many changes it has.
    pub changes: u64,
    /// Wall clock, milliseconds.
    pub ts_ms: u64,
    /// Low half of the root's generation.
    pub generation: u32,
    /// What the process that wrote it called itself; 0: nothing.
    pub origin: u32,
}

impl EntryHead {
    /// The three words.
    #[inline(always)]
    pub fn pack(self) -> [u64; 3] {
        [
            self.words | self.changes << 32,
            self.ts_ms & ((1 << 48) - 1),
            u64::from(self.generation) | u64::from(self.origin) << 32,
        ]
    }
    /// From the three words.
    pub fn unpack(words: [u64; 3]) -> EntryHead {
        EntryHead {
            words: words[0] & 0xffff_ffff,
            changes: words[0] >> 32 & 0xffff,
            ts_ms: words[1] & ((1 << 48) - 1),
            generation: words[2] as u32,
            origin: (words[2] >> 32) as u32,
        }
    }
}

/// The head of a change: what is known without key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeHead {
    /// The operation.
    pub operation: Operation,
    /// The version that the change gave the key.
    pub version: u64,
    /// Bytes of the key.
    pub key_len: u32,
    /// Bytes of the value that the key has afterwards, whether it is there or not.
    pub value_len: u32,
    /// Wall clock of the expiry.
    pub expires: Option<u64>,
    /// Flags and marks.
    pub flags: u64,
    /// The hash that the key was given with, spread.
    pub hash: Option<u64>,
    /// [`bit`]s that are not implied by the other fields.
    pub bits: u64,
}

impl ChangeHead {
    fn all_bits(&self) -> u64 {
        let expires = if self.expires.is_some() { bit::EXPIRES } else { 0 };
        let flags = if self.flags != 0 { bit::FLAGS } else { 0 };
        let hash = if self.hash.is_some() { bit::HASHED } else { 0 };
        self.bits & !(bit::EXPIRES | bit::FLAGS | bit::HASHED) | expires | flags | hash
    }

    /// Words of the head.
    #[inline(always)]
    pub fn words(&self) -> u64 {
        2 + u64::from(self.expires.is_some()) + u64::from(self.flags != 0) + u64::from(self.hash.is_some())
    }

    /// Bytes of key and value as they are stored, without padding.
    #[inline(always)]
    pub fn payload(&self) -> u64 {
        let value = if self.bits & bit::VALUE != 0 { u64::from(self.value_len) } else { 0 };
        u64::from(self.key_len) + value
    }

    /// Bytes of the whole change.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        8 * self.words() + self.payload().next_multiple_of(8)
    }

    /// Stores the head word by word: `store(index, word)`.
    #[inline(always)]
    pub fn write(&self, mut store: impl FnMut(u64, u64)) {
        store(
            0,
            (self.version & VERSION_MAX) << VERSION_SHIFT | self.all_bits() << OPERATION_BITS | self.operation as u64,
        );
        store(1, u64::from(self.key_len) | u64::from(self.value_len) << 32);
        let mut next = 2;
        if let Some(expires) = self.expires {
            store(next, expires);
            next += 1;
        }
        if self.flags != 0 {
            store(next, self.flags);
            next += 1;
        }
        if let Some(hash) = self.hash {
            store(next, hash);
        }
    }

    /// Reads a head: `load(index)` is `None` behind the end. `None`: there is none.
    pub fn read(mut load: impl FnMut(u64) -> Option<u64>) -> Option<ChangeHead> {
        let first = load(0)?;
        let lengths = load(1)?;
        let bits = first >> OPERATION_BITS & BITS;
        let mut next = 2;
        let mut optional = |has: bool| -> Option<Option<u64>> {
            if !has {
                return Some(None);
            }
            next += 1;
            load(next - 1).map(Some)
        };
        let expires = optional(bits & bit::EXPIRES != 0)?;
        let flags = optional(bits & bit::FLAGS != 0)?.unwrap_or(0);
        let hash = optional(bits & bit::HASHED != 0)?;
        Some(ChangeHead {
            operation: Operation::from_number(first & ((1 << OPERATION_BITS) - 1))?,
            version: first >> VERSION_SHIFT,
            key_len: lengths as u32,
            value_len: (lengths >> 32) as u32,
            expires,
            // A head with the bit and without flags would be shorter when it is written again.
            flags,
            hash,
            bits: bits & !(bit::EXPIRES | bit::FLAGS | bit::HASHED),
        })
    }
}

/// A change with its key, as an entry has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// All but key and value.
    pub head: ChangeHead,
    /// The key.
    pub key: Vec<u8>,
    /// The value, if it is there.
    pub value: Option<Vec<u8>>,
}

/// An entry from its words; `None` if they are none.
pub fn decode(words: &[u64]) -> Option<(EntryHead, Vec<Decoded>)> {
    let entry = EntryHead::unpack(words.get(..3)?.try_into().ok()?);
    let mut rest = words.get(..usize::try_from(entry.words).ok()?)?.get(3..)?;
    let mut changes = Vec::new();
    for _ in 0..entry.changes {
        let head = ChangeHead::read(|index| rest.get(index as usize).copied())?;
        let end = usize::try_from(head.bytes() / 8).ok()?;
        let payload = rest.get(head.words() as usize..end)?;
        let mut key: Vec<u8> = payload.iter().flat_map(|word| word.to_le_bytes()).collect();
        key.truncate(usize::try_from(head.payload()).ok()?);
        let value = key.split_off(head.key_len as usize);
        let value = (head.bits & bit::VALUE != 0).then_some(value);
        changes.push(Decoded { head, key, value });
        rest = &rest[end..];
    }
    Some((entry, changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip() {
        let entry = EntryHead { words: 7, changes: 1024, ts_ms: 1 << 47, generation: 9, origin: u32::MAX };
        assert_eq!(EntryHead::unpack(entry.pack()), entry);
        for expires in [None, Some(5)] {
            for flags in [0, 7 | 9 << 32] {
                for (bits, hash) in [(0, None), (bit::VALUE, Some(3)), (bit::OMITTED, Some(0))] {
                    let head = ChangeHead {
                        operation: Operation::Touch,
                        version: VERSION_MAX,
                        key_len: 3,
                        value_len: 6,
                        expires,
                        flags,
                        hash,
                        bits,
                    };
                    let mut words = vec![0; head.words() as usize];
                    head.write(|index, word| words[index as usize] = word);
                    assert_eq!(ChangeHead::read(|index| words.get(index as usize).copied()), Some(head));
                    for short in 0..words.len() {
                        assert_eq!(ChangeHead::read(|index| words[..short].get(index as usize).copied()), None);
                    }
                    assert_eq!(head.bytes(), 8 * head.words() + if bits & bit::VALUE != 0 { 16 } else { 8 });
                }
            }
        }
    }

    #[test]
    fn entries_are_decoded_whole_or_not_at_all() {
        let head = |operation, key_len, value_len, bits| ChangeHead {
            operation,
            version: 9,
            key_len,
            value_len,
            expires: None,
            flags: 0,
            hash: None,
            bits,
        };
        let changes = [
            (head(Operation::Set, 3, 7, bit::VALUE), b"keyvalue of".as_slice()),
            (head(Operation::Delete, 0, 0, 0), b""),
            (head(Operation::Touch, 8, 5, bit::OMITTED), b"long key"),
        ];
        let mut words = EntryHead { words: 0, changes: 3, ts_ms: 5, generation: 6, origin: 7 }.pack().to_vec();
        for (head, payload) in &changes {
            let start = words.len();
            words.resize(start + (head.bytes() / 8) as usize, 0);
            head.write(|index, word| words[start + index as usize] = word);
            for (n, bytes) in payload[..head.payload() as usize].chunks(8).enumerate() {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                words[start + head.words() as usize + n] = u64::from_le_bytes(word);
            }
        }
        words[0] |= words.len() as u64;
        let (entry, decoded) = decode(&words).unwrap();
        assert_eq!((entry.changes, entry.ts_ms, entry.generation, entry.origin), (3, 5, 6, 7));
        let [set, delete, touch] = &decoded[..] else { panic!("{decoded:?}") };
        assert_eq!((set.key.as_slice(), set.value.as_deref()), (b"key".as_slice(), Some(b"value o".as_slice())));
        assert_eq!((delete.key.len(), &delete.value), (0, &None));
        assert_eq!((touch.key.as_slice(), &touch.value, touch.head.value_len), (b"long key".as_slice(), &None, 5));
        (0..words.len()).for_each(|len| assert_eq!(decode(&words[..len]), None));
        words[3] &= !63;
        assert_eq!(decode(&words), None);
    }
}
