//! What a transaction notes: of each key what was read and what is to be written.

use crate::engine::{Change, Guard, KeyHash, Lookup, Part, Room, Value};
use crate::error::WriteError;
use crate::transaction::snapshot::Seen;
use crate::types::Stored;
use hashmere_format::cell::KEYS_MAX;
use std::collections::HashMap;
use std::ops::Range;

/// Keys up to which a transaction finds them one by one.
pub(super) const FEW: usize = 16;
/// Bytes of values that were written again before the rest is copied together.
const GARBAGE: usize = 1 << 20;

/// Bytes that notes may keep for the next transaction.
const KEPT: usize = 16 << 10;
/// The root of notes that none was put into yet; no store has it.
pub(super) const NO_ROOT: u64 = u64::MAX;

/// What is to be written of a key.
#[derive(Clone, Debug)]
pub(super) enum Write {
    /// Nothing.
    None,
    Put {
        value: Range<usize>,
        expires: Option<u64>,
        /// Flags, and marks above them.
        flags: u64,
        least: u64,
        keeps_version: bool,
    },
    Gone,
}

pub(super) struct Entry {
    pub(super) key: Range<usize>,
    pub(super) kh: KeyHash,
    /// An earlier entry with the same hash.
    before: Option<usize>,
    pub(super) seen: Option<Seen>,
    /// Where it was found then.
    pub(super) lookup: Option<Lookup>,
    pub(super) write: Write,
}

/// What became of a key that was written.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    pub(super) stored: Stored,
    pub(super) was_there: bool,
}

/// The notes of a transaction. They know no store: a [`Transaction`](super::Transaction) reads and writes with them.
pub struct Notes {
    /// The root when it began: what was read under another one does not count.
    pub(super) root: u64,
    pub(super) entries: Vec<Entry>,
    /// Keys and values.
    pub(super) bytes: Vec<u8>,
    /// Bytes in it that no entry means any more.
    garbage: usize,
    /// The last entry with a hash, when there are many.
    index: HashMap<u64, usize>,
    /// The key that turned out to have changed since it was read.
    pub(super) conflict: Option<usize>,
    /// After the commit, of each entry.
    pub(super) written: Vec<Written>,
    /// Of each operation of a batch the entry of its key, and whether no operation before it wrote that.
    pub(super) operations: Vec<(usize, bool)>,
    pub(super) spare: Spare,
}

/// What a commit allocates, to be used again by the next.
#[derive(Default)]
pub(super) struct Spare {
    pub(super) room: Room,
    /// Empty.
    pub(super) parts: Vec<Part<'static>>,
}

impl Default for Notes {
    fn default() -> Notes {
        Notes {
            root: NO_ROOT,
            entries: Vec::new(),
            bytes: Vec::new(),
            garbage: 0,
            index: HashMap::new(),
            conflict: None,
            written: Vec::new(),
            operations: Vec::new(),
            spare: Spare::default(),
        }
    }
}

impl Notes {
    /// Forgets all; what was allocated stays.
    pub(crate) fn clear(&mut self) {
        (self.root, self.garbage, self.conflict) = (NO_ROOT, 0, None);
        self.entries.clear();
        self.bytes.clear();
        self.index.clear();
        self.written.clear();
        self.operations.clear();
    }

    /// Whether it has allocated little: then it is worth keeping for the next transaction.
    pub(super) fn is_small(&self) -> bool {
        self.entries.capacity() <= FEW && self.bytes.capacity() <= KEPT
    }

    /// Makes room for this number of keys, and for this number of bytes of keys and values.
    #[inline(always)]
    pub(super) fn reserve(&mut self, keys: usize, bytes: usize) {
        self.entries.reserve(keys.min(KEYS_MAX as usize));
        self.bytes.reserve(bytes);
    }

    pub(super) fn key(&self, entry: usize) -> &[u8] {
        &self.bytes[self.entries[entry].key.clone()]
    }

    /// The error of a key that was changed by others.
    pub(super) fn conflict_at(&self, entry: usize) -> WriteError {
        WriteError::Conflict { key: String::from_utf8_lossy(self.key(entry)).into() }
    }

    /// The entry of a key.
    #[inline(always)]
    pub(super) fn find(&self, key: &[u8], kh: KeyHash) -> Option<usize> {
        if self.entries.len() <= FEW {
            return self.entries.iter().position(|entry| entry.kh == kh && self.bytes[entry.key.clone()] == *key);
        }
        self.find_indexed(key, kh)
    }

    #[inline(never)]
    fn find_indexed(&self, key: &[u8], kh: KeyHash) -> Option<usize> {
        let is_it = |at: &usize| self.entries[*at].kh == kh && self.key(*at) == key;
        let mut at = self.index.get(&kh.hash).copied();
        while let Some(entry) = at.filter(|at| !is_it(at)) {
            at = self.entries[entry].before;
        }
        at
    }

    /// Makes the entry of a key that has none.
    #[inline(always)]
    pub(super) fn add(&mut self, key: &[u8], kh: KeyHash) -> usize {
        let number = self.entries.len();
        let before = if number >= FEW { self.index_one(kh) } else { None };
        let key = self.keep(key);
        self.entries.push(Entry { key, kh, before, seen: None, lookup: None, write: Write::None });
        number
    }

    /// Puts the next entry into the index, and with the first one those before it. An earlier entry of the same hash.
    #[inline(never)]
    fn index_one(&mut self, kh: KeyHash) -> Option<usize> {
        let number = self.entries.len();
        if number == FEW {
            for (at, entry) in self.entries.iter_mut().enumerate() {
                entry.before = self.index.insert(entry.kh.hash, at);
            }
        }
        self.index.insert(kh.hash, number)
    }

    /// Forgets the value that was to be written of a key, so that one that is written often does not fill the memory.
    #[inline(always)]
    pub(super) fn forget(&mut self, entry: usize) {
        if matches!(self.entries[entry].write, Write::Put { .. }) {
            self.forget_value(entry);
        }
    }

    #[inline(never)]
    fn forget_value(&mut self, entry: usize) {
        let Write::Put { value, .. } = std::mem::replace(&mut self.entries[entry].write, Write::None) else { return };
        if value.end == self.bytes.len() {
            self.bytes.truncate(value.start);
            return;
        }
        self.garbage += value.len();
        if self.garbage < GARBAGE.max(self.bytes.len() / 2) {
            return;
        }
        let all = std::mem::take(&mut self.bytes);
        for entry in &mut self.entries {
            let mut ranges = vec![&mut entry.key];
            if let Write::Put { value, .. } = &mut entry.write {
                ranges.push(value);
            }
            for range in ranges {
                if range.start == range.end {
                    *range = 0..0;
                    continue;
                }
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&all[range.clone()]);
                *range = start..self.bytes.len();
            }
        }
        self.garbage = 0;
    }

    #[inline(always)]
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        // Behind what is forgotten no empty range may be left: the bytes end before it then.
        if bytes.is_empty() {
            return 0..0;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// The parts of a commit, one for each entry, in what was allocated for others.
    #[inline(always)]
    pub(super) fn parts(&self, spare: Vec<Part<'static>>) -> Vec<Part<'_>> {
        let mut parts = emptied(spare);
        parts.reserve(self.entries.len());
        for entry in &self.entries {
            parts.push(self.part(entry));
            if let (Some(lookup), Some(part)) = (&entry.lookup, parts.last_mut()) {
                part.remember(lookup);
            }
        }
        parts
    }

    #[inline(always)]
    fn part(&self, entry: &Entry) -> Part<'_> {
        let guard = match &entry.seen {
            None => Guard::Any,
            Some(Seen { metadata: None, .. }) => Guard::Absent,
            Some(Seen { metadata: Some(seen), .. }) => Guard::Seen(*seen),
        };
        let change = match &entry.write {
            Write::None => Change::Same,
            Write::Gone => Change::Remove,
            Write::Put { value, expires, flags, least, keeps_version } => Change::Put(Value {
                bytes: &self.bytes[value.clone()],
                expires: *expires,
                flags: *flags,
                least: *least,
                keeps_version: *keeps_version,
            }),
        };
        Part::new(&self.bytes[entry.key.clone()], entry.kh, guard, change)
    }
}

/// The same allocation for parts of another lifetime (`collect` reuses it), without the parts.
#[inline(always)]
pub(super) fn emptied<'a>(parts: Vec<Part<'_>>) -> Vec<Part<'a>> {
    parts.into_iter().map_while(|_| None).collect()
}
