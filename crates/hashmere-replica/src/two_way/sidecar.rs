//! What is remembered of each key of a side, in a store of its own beside it.

use crate::error::{At, ReplicaError};
use hashmere::{Cursor, Filter, Key, Store};

/// Who wrote a key last: the larger one wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    /// The version that it had where it was written.
    pub version: u64,
    /// Where that was.
    pub site: u64,
}

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
    fn entry(&self) -> Vec<u8> {
        let mut bytes = vec![if self.hash.is_some() { b'h' } else { b'k' }];
        bytes.extend(self.hash.iter().flat_map(|hash| hash.to_le_bytes()));
        bytes.extend(&self.key);
        bytes
    }

    fn of_entry(bytes: &[u8]) -> Option<Name> {
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
    /// What is about to be applied; of a version 0: nothing.
    pub pending: Stamp,
    pub is_pending_tombstone: bool,
    /// Where this side's feed was at the delete.
    pub position: u64,
}

impl Entry {
    fn bytes(&self) -> Vec<u8> {
        let marks = u64::from(self.is_tombstone) | u64::from(self.is_pending_tombstone) << 1;
        let (stamp, pending) = (self.stamp, self.pending);
        let words = [stamp.version, stamp.site, self.applied, marks, pending.version, pending.site, self.position];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn parse(bytes: &[u8]) -> Option<Entry> {
        let word = |n: usize| Some(u64::from_le_bytes(bytes.get(8 * n..8 * n + 8)?.try_into().ok()?));
        let marks = word(3)?;
        Some(Entry {
            stamp: Stamp { version: word(0)?, site: word(1)? },
            applied: word(2)?,
            is_tombstone: marks & 1 != 0,
            pending: Stamp { version: word(4)?, site: word(5)? },
            is_pending_tombstone: marks & 2 != 0,
            position: word(6)?,
        })
    }
}

/// The entries of a side.
#[derive(Debug)]
pub(super) struct Sidecar {
    state: Store,
    is_known: bool,
}

/// The key of the store's UUID.
const OF: &[u8] = b"store";

impl Sidecar {
    /// The entries for the store with this UUID; those of another store are forgotten.
    pub fn new(state: Store, uuid: [u64; 2]) -> Result<Sidecar, ReplicaError> {
        let uuid: Vec<u8> = uuid.iter().flat_map(|word| word.to_le_bytes()).collect();
        let is_known = state.get(OF).at(&state)?.as_ref() == Some(&uuid);
        if !is_known {
            state.clear().at(&state)?;
            state.set(OF, &uuid).at(&state)?;
        }
        Ok(Sidecar { state, is_known })
    }

    /// Whether it was there before, for this store.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    pub fn get(&self, name: &Name) -> Result<Option<Entry>, ReplicaError> {
        Ok(self.state.get(&name.entry()).at(&self.state)?.and_then(|bytes| Entry::parse(&bytes)))
    }

    pub fn put(&self, name: &Name, entry: &Entry) -> Result<(), ReplicaError> {
        self.state.set(&name.entry(), &entry.bytes()).at(&self.state).map(drop)
    }

    /// What was about to be applied has this version of the key: its replicator was killed before it could say so.
    pub fn promote(&self, name: &Name, version: u64) -> Result<(), ReplicaError> {
        match self.get(name)? {
            // An older version is that of something applied before: its event comes again after a kill.
            Some(entry) if entry.pending != Stamp::default() && version > entry.applied => {
                let (stamp, is_tombstone) = (entry.pending, entry.is_pending_tombstone);
                self.put(
                    name,
                    &Entry { stamp, is_tombstone, applied: version, position: entry.position, ..Entry::default() },
                )
            }
            _ => Ok(()),
        }
    }

    pub fn note_tombstone(&self, name: &Name, stamp: Stamp, position: u64) -> Result<(), ReplicaError> {
        let applied = stamp.version;
        self.put(name, &Entry { stamp, applied, is_tombstone: true, position, ..Entry::default() })
    }

    /// Forgets everything: the store was cleared, and its versions begin again.
    pub fn forget(&self) -> Result<(), ReplicaError> {
        let uuid = self.state.get(OF).at(&self.state)?.unwrap_or_default();
        self.state.clear().at(&self.state)?;
        self.state.set(OF, &uuid).at(&self.state).map(drop)
    }

    /// Forgets deletes that the feed of the store does not reach back to and that the other store does not need to
    /// learn of, and keys that are gone without one.
    pub fn prune(&self, store: &Store, other: &Store) -> Result<(), ReplicaError> {
        let oldest = hashmere_feed::info(store).map_or(0, |info| info.oldest);
        for pair in self.state.scan(Cursor::START, Filter::all()) {
            let pair = pair.at(&self.state)?;
            let (Some(name), Some(entry)) = (Name::of_entry(&pair.key), Entry::parse(&pair.value)) else { continue };
            let is_old = entry.position < oldest && entry.pending == Stamp::default();
            let has = |store: &Store| store.contains_key(name.key()).at(store);
            if is_old && !has(store)? && !(entry.is_tombstone && has(other)?) {
                self.state.delete(&pair.key).at(&self.state)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashmere::Options;

    #[test]
    fn a_delete_is_kept_while_the_other_side_has_the_key() {
        let folder = std::env::temp_dir().join(format!("hashmere-sidecar-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let open = |name: &str| Options::new().feed(1 << 20).open(folder.join(name)).unwrap();
        let (store, other) = (open("store.mere"), open("other.mere"));
        let sidecar = Sidecar::new(Options::new().open(folder.join("sidecar.mere")).unwrap(), [1, 2]).unwrap();
        let name = |key: &str| Name { key: key.into(), hash: None };
        other.set("there", b"1").unwrap();
        for key in ["there", "gone"] {
            sidecar.note_tombstone(&name(key), Stamp { version: 7, site: 1 }, 0).unwrap();
        }
        let kept = || ["there", "gone"].map(|key| sidecar.get(&name(key)).unwrap().is_some());
        sidecar.prune(&store, &other).unwrap();
        assert_eq!(kept(), [true, true], "the feed reaches back to them");
        (0..60_000u32).for_each(|n| _ = store.set(&(n % 100).to_le_bytes(), &n.to_le_bytes()).unwrap());
        sidecar.prune(&store, &other).unwrap();
        assert_eq!(kept(), [true, false]);
        drop((store, other, sidecar));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
