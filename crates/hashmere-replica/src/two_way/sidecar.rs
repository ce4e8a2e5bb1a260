//! What is remembered of the keys of a side, in a store of its own beside it.

use super::entry::{Entry, Name};
use super::stamp::Stamp;
use crate::error::{At, ReplicaError};
use crate::file::file_of;
use crate::place::peek_done;
use hashmere::{Cursor, Filter, OpenError, Options, Store};
use hashmere_feed::Token;
use std::path::PathBuf;

/// The key of the store's UUID.
const OF: &[u8] = b"store";

/// Where the sidecar of a store lies.
fn path_of(store: &Store) -> PathBuf {
    let mut path = store.path().as_os_str().to_owned();
    path.push(".sidecar");
    path.into()
}

fn bytes_of(uuid: [u64; 2]) -> Vec<u8> {
    uuid.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The entries of a side, for its replicator.
#[derive(Debug)]
pub(super) struct Sidecar {
    state: Store,
    is_known: bool,
}

impl Sidecar {
    /// That of a store with this UUID; the entries of another store are forgotten.
    pub fn open(store: &Store, uuid: [u64; 2]) -> Result<Sidecar, ReplicaError> {
        let path = path_of(store);
        let state = Options::new().open(&path);
        let state = state.map_err(|source| ReplicaError::Store { path, source: Box::new(source.into()) })?;
        let is_known = state.get(OF).at(&state)? == Some(bytes_of(uuid));
        if !is_known {
            state.clear().at(&state)?;
            state.set(OF, &bytes_of(uuid)).at(&state)?;
        }
        Ok(Sidecar { state, is_known })
    }

    /// The store that it is.
    pub fn state(&self) -> &Store {
        &self.state
    }

    /// Whether it was there before, for this store.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    pub fn get(&self, name: &Name) -> Result<Option<Entry>, ReplicaError> {
        entry_of(&self.state, name)
    }

    pub fn put(&self, name: &Name, entry: &Entry) -> Result<(), ReplicaError> {
        self.state.set(&name.entry(), &entry.bytes()).at(&self.state).map(drop)
    }

    pub fn forget(&self, name: &Name) -> Result<(), ReplicaError> {
        self.state.delete(&name.entry()).at(&self.state).map(drop)
    }

    /// Calls `act` with every entry.
    pub fn each(&self, mut act: impl FnMut(Name, Entry) -> Result<(), ReplicaError>) -> Result<(), ReplicaError> {
        for pair in self.state.scan(Cursor::START, Filter::all()) {
            let pair = pair.at(&self.state)?;
            if let (Some(name), Some(entry)) = (Name::of_entry(&pair.key), Entry::parse(&pair.value)) {
                act(name, entry)?;
            }
        }
        Ok(())
    }
}

fn entry_of(state: &Store, name: &Name) -> Result<Option<Entry>, ReplicaError> {
    Ok(state.get(&name.entry()).at(state)?.and_then(|bytes| Entry::parse(&bytes)))
}

/// The entries of a side, for those that read its feed: read-only, and perhaps not there.
#[derive(Debug)]
pub(super) struct SidecarView {
    store: Store,
    uuid: [u64; 2],
    /// With device and inode.
    opened: Option<(Store, Option<(u64, u64)>)>,
}

/// A key and the stamp of its delete.
pub(super) type Tombstone = (Name, Stamp);

impl SidecarView {
    pub fn new(store: &Store, uuid: [u64; 2]) -> SidecarView {
        SidecarView { store: store.clone(), uuid, opened: None }
    }

    /// The sidecar as it is now; `None`: there is none for this store.
    fn state(&mut self) -> Result<Option<&Store>, ReplicaError> {
        let path = path_of(&self.store);
        let file = file_of(&path);
        if self.opened.as_ref().is_none_or(|(_, opened)| *opened != file) {
            self.opened = match Options::new().read_only().open(&path) {
                Ok(state) => Some((state, file)),
                Err(OpenError::NotFound { .. }) => None,
                // Not the same as none: what was applied here would be taken for written here.
                Err(source) => return Err(ReplicaError::Store { path, source: Box::new(source.into()) }),
            };
        }
        let Some((state, _)) = &self.opened else { return Ok(None) };
        let is_ours = state.get(OF).at(state)? == Some(bytes_of(self.uuid));
        Ok(is_ours.then_some(state))
    }

    pub fn get(&mut self, name: &Name) -> Result<Option<Entry>, ReplicaError> {
        // While it is open, whether it has been replaced is not asked for every key.
        match &self.opened {
            Some((state, _)) => entry_of(state, name),
            None => self.state()?.map_or(Ok(None), |state| entry_of(state, name)),
        }
    }

    /// Whether every delete before this place is among the entries.
    pub fn has_reached(&mut self, place: &Token) -> Result<bool, ReplicaError> {
        // What was never replicated has nothing to be told.
        let Some(state) = self.state()? else { return Ok(true) };
        Ok(peek_done(state).is_some_and(|done| done.is_as_far_as(place)))
    }

    /// Some deletes, and where the next ones are; `None`: there are no more.
    pub fn tombstones(&mut self, from: Cursor) -> Result<(Vec<Tombstone>, Option<Cursor>), ReplicaError> {
        let Some(state) = self.state()? else { return Ok((Vec::new(), None)) };
        let mut scan = state.scan(from, Filter::all());
        let mut found = Vec::new();
        let mut places = 1 << 14;
        while found.len() < 256 {
            let Some(pair) = scan.next_within(&mut places) else { break };
            let pair = pair.at(state)?;
            if let (Some(name), Some(entry)) = (Name::of_entry(&pair.key), Entry::parse(&pair.value)) {
                found.extend(entry.is_tombstone.then_some((name, entry.stamp)));
            }
        }
        let next = scan.cursor();
        Ok((found, next))
    }
}
