//! What is remembered of a key.

use super::stamp::Stamp;
use hashmere::Key;
use hashmere_feed::Change;

/// A key of a store, with the hash that its writer supplied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub key: Vec<u8>,
    pub hash: Option<u64>,
}

impl Name {
    pub fn key(&self) -> Key<'_> {
        self.hash.map_or(Key::Bytes(&self.key), |hash| Key::Hashed(&self.key, hash))
    }

    /// The key of its entry.
    pub fn entry(&self) -> Vec<u8> {
        let mut bytes = vec![if self.hash.is_some() { b'h' } else { b'k' }];
        bytes.extend(self.hash.iter().flat_map(|hash| hash.to_le_bytes()));
        bytes.extend(&self.key);
        bytes
    }

    /// The key that an entry is of; `None`: it is no entry.
    pub fn of_entry(bytes: &[u8]) -> Option<Name> {
        match bytes.split_first()? {
            (b'k', key) => Some(Name { key: key.to_vec(), hash: None }),
            (b'h', rest) => {
                let hash = u64::from_le_bytes(rest.get(..8)?.try_into().ok()?);
                Some(Name { key: rest[8..].to_vec(), hash: Some(hash) })
            }
            _ => None,
        }
    }
}

/// The key of a change.
pub(super) fn name_of(change: &Change) -> Name {
    Name { key: change.key.clone(), hash: change.supplied_hash }
}

/// What is remembered of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Of what was applied here, or of the delete.
    pub stamp: Stamp,
    /// The version that the key got here when that was applied, or that of a delete made here. With another one it was
    /// written here since.
    pub applied: u64,
    /// Whether it was a delete.
    pub is_tombstone: bool,
    /// Whether the peer is known to have that delete.
    pub is_shared: bool,
    /// What is about to be applied; the default one: nothing.
    pub pending: Stamp,
    pub is_pending_tombstone: bool,
    /// Where this side's feed was behind that.
    pub position: u64,
}

impl Entry {
    pub fn bytes(&self) -> Vec<u8> {
        let marks = [self.is_tombstone, self.is_pending_tombstone, self.is_shared];
        let marks = marks.iter().enumerate().map(|(bit, is_set)| u64::from(*is_set) << bit).sum();
        let (stamp, pending) = (self.stamp, self.pending);
        let words = [stamp.version, stamp.site, self.applied, marks, pending.version, pending.site, self.position];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub fn parse(bytes: &[u8]) -> Option<Entry> {
        let word = |n: usize| Some(u64::from_le_bytes(bytes.get(8 * n..8 * n + 8)?.try_into().ok()?));
        let marks = word(3)?;
        Some(Entry {
            stamp: Stamp { version: word(0)?, site: word(1)? },
            applied: word(2)?,
            is_tombstone: marks & 1 != 0,
            is_shared: marks & 4 != 0,
            pending: Stamp { version: word(4)?, site: word(5)? },
            is_pending_tombstone: marks & 2 != 0,
            position: word(6)?,
        })
    }

    /// Whether something was about to be applied when its replicator was killed.
    pub fn is_pending(&self) -> bool {
        self.pending != Stamp::default()
    }

    /// The stamp of what a replicator applied with this version; `None`: it has been applied again since.
    pub fn stamp_of(&self, version: u64) -> Option<Stamp> {
        match version.cmp(&self.applied) {
            std::cmp::Ordering::Equal => Some(self.stamp),
            std::cmp::Ordering::Greater if self.is_pending() => Some(self.pending),
            _ => None,
        }
    }
}
