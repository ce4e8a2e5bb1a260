//! What a transaction notes: of each key what was read and what is to be written.

use crate::engine::{Change, Guard, KeyHash, Part, Room, Span};
use crate::error::WriteError;
use crate::transaction::snapshot::Seen;
use hashmere_format::cell::KEYS_MAX;
use std::collections::HashMap;

/// Keys up to which a transaction finds them one by one.
pub(super) const FEW: usize = 16;
/// Keys up to which they are compared with one that is looked for before it is hashed: most likely it is one of them.
const FEWEST: usize = 4;
/// Bytes of values that were written again before the rest is copied together.
const GARBAGE: usize = 1 << 20;

/// Bytes that notes may keep for the next transaction.
const KEPT: usize = 16 << 10;
/// The root of notes that none was put into yet; no store has it.
pub(super) const NO_ROOT: u64 = u64::MAX;

/// The notes of a transaction. They know no store: a [`Transaction`](super::Transaction) reads and writes with them.
pub struct Notes {
    /// The root when it began: what was read under another one does not count.
    pub(super) root: u64,
    /// One for each key, as the commit takes them: what was read, and what is to be written.
    pub(super) parts: Vec<Part>,
    /// Of each of them an earlier one with the same hash, when there are many.
    before: Vec<Option<usize>>,
    /// Keys and values.
    pub(super) bytes: Vec<u8>,
    /// Bytes in it that no part means any more.
    garbage: usize,
    /// The last part with a hash, when there are many.
    index: HashMap<u64, usize>,
    /// Keys that were read and found, and are not counted yet.
    pub(super) hits: u64,
    /// The key that turned out to have changed since it was read.
    pub(super) conflict: Option<usize>,
    /// Of each operation of a batch the part of its key, and whether no operation before it wrote that.
    pub(super) operations: Vec<(usize, bool)>,
    /// What a commit allocates.
    pub(super) room: Room,
}

impl Default for Notes {
    fn default() -> Notes {
        Notes {
            root: NO_ROOT,
            parts: Vec::new(),
            before: Vec::new(),
            bytes: Vec::new(),
            garbage: 0,
            index: HashMap::new(),
            hits: 0,
            conflict: None,
            operations: Vec::new(),
            room: Room::default(),
        }
    }
}

impl Notes {
    /// Forgets all; what was allocated stays.
    pub(crate) fn clear(&mut self) {
        (self.root, self.garbage, self.conflict) = (NO_ROOT, 0, None);
        self.parts.clear();
        self.bytes.clear();
        if !self.before.is_empty() {
            self.before.clear();
            self.index.clear();
        }
        self.operations.clear();
    }

    /// Whether it has allocated little: then it is worth keeping for the next transaction.
    pub(super) fn is_small(&self) -> bool {
        self.parts.capacity() <= FEW && self.bytes.capacity() <= KEPT
    }

    /// Makes room for this number of keys, and for this number of bytes of keys and values.
    #[inline(always)]
    pub(super) fn reserve(&mut self, keys: usize, bytes: usize) {
        self.parts.reserve(keys.min(KEYS_MAX as usize));
        self.bytes.reserve(bytes);
    }

    pub(super) fn key(&self, part: usize) -> &[u8] {
        self.parts[part].key.of(&self.bytes)
    }

    /// What was seen of a key; `None`: it was not read.
    pub(super) fn seen(&self, part: usize) -> Option<Seen> {
        match self.parts[part].guard {
            Guard::Any => None,
            Guard::Absent(version) => Some(Seen { version, metadata: None }),
            // The version of the bucket says something of a key that is absent.
            ref guard => Some(Seen { version: 0, metadata: guard.seen() }),
        }
    }

    /// The error of a key that was changed by others.
    pub(super) fn conflict_at(&self, part: usize) -> WriteError {
        WriteError::Conflict { key: String::from_utf8_lossy(self.key(part)).into() }
    }

    /// The part of a key, if there are so few that this is known without its hash.
    #[inline(always)]
    pub(super) fn find_among_few(&self, key: &[u8]) -> Option<usize> {
        if self.parts.len() > FEWEST {
            return None;
        }
        self.parts.iter().position(|part| part.key.of(&self.bytes) == key)
    }

    /// The part of a key, if there are more.
    #[inline(always)]
    pub(super) fn find(&self, key: &[u8], kh: KeyHash) -> Option<usize> {
        let number = self.parts.len();
        if number <= FEWEST {
            return None;
        }
        if number <= FEW {
            return self.parts.iter().position(|part| part.kh == kh && part.key.of(&self.bytes) == key);
        }
        self.find_indexed(key, kh)
    }

    #[inline(never)]
    fn find_indexed(&self, key: &[u8], kh: KeyHash) -> Option<usize> {
        let is_it = |at: &usize| self.parts[*at].kh == kh && self.key(*at) == key;
        let mut at = self.index.get(&kh.hash).copied();
        while let Some(part) = at.filter(|at| !is_it(at)) {
            at = self.before[part];
        }
        at
    }

    /// Makes the part of a key that has none.
    #[inline(always)]
    pub(super) fn add(&mut self, key: &[u8], kh: KeyHash) -> usize {
        let number = self.parts.len();
        if number >= FEW {
            self.index_one(kh);
        }
        let key = self.keep(key);
        self.parts.push(Part::new(key, kh));
        number
    }

    /// Puts the next part into the index, and with the first one those before it.
    #[inline(never)]
    fn index_one(&mut self, kh: KeyHash) {
        let number = self.parts.len();
        if number == FEW {
            for (at, part) in self.parts.iter().enumerate() {
                self.before.push(self.index.insert(part.kh.hash, at));
            }
        }
        self.before.push(self.index.insert(kh.hash, number));
    }

    /// Forgets the value that was to be written of a key, so that one that is written often does not fill the memory.
    #[inline(always)]
    pub(super) fn forget(&mut self, part: usize) {
        if matches!(self.parts[part].change, Change::Put(_)) {
            self.forget_value(part);
        }
    }

    #[inline(never)]
    fn forget_value(&mut self, part: usize) {
        let Change::Put(value) = std::mem::replace(&mut self.parts[part].change, Change::Same) else { return };
        if value.bytes.end == self.bytes.len() {
            self.bytes.truncate(value.bytes.start);
            return;
        }
        self.garbage += value.bytes.len();
        if self.garbage < GARBAGE.max(self.bytes.len() / 2) {
            return;
        }
        let all = std::mem::take(&mut self.bytes);
        for part in &mut self.parts {
            let value = if let Change::Put(value) = &mut part.change { Some(&mut value.bytes) } else { None };
            for span in [&mut part.key].into_iter().chain(value) {
                *span = append(&mut self.bytes, span.of(&all));
            }
        }
        self.garbage = 0;
    }

    #[inline(always)]
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Span {
        append(&mut self.bytes, bytes)
    }
}

/// Puts bytes behind others, and says where they are.
#[inline(always)]
fn append(to: &mut Vec<u8>, bytes: &[u8]) -> Span {
    // Behind what is forgotten no empty span may be left: the bytes end before it then.
    if bytes.is_empty() {
        return Span::default();
    }
    let start = to.len();
    to.extend_from_slice(bytes);
    Span { start, end: to.len() }
}
