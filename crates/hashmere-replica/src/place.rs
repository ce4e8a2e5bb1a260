//! Up to where a store is a copy of another one: a region of its own file.
//!
//! Two records take turns, so that a kill leaves the one or the other. `docs/internals/replicas.md` has the offsets.

use crate::error::{At, ReplicaError};
use crate::status::{ReplicaPhase, ReplicaStatus};
use hashmere::{Store, WriteError};
use hashmere_engine::{ClientId, Region, StoreHandle};
use hashmere_feed::Token;
use hashmere_format::region::kind;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Of a copy: where its source is followed; of a sidecar: where its store is.
const NAME: &[u8] = b"replica";
/// Of a sidecar: where the peer of its store is followed.
const PEER: &[u8] = b"peer";
const BYTES: u64 = 2048;
const FORMAT: u64 = 1;

/// Words of the region.
mod at {
    pub const FORMAT: u64 = 0;
    pub const OWNER: u64 = 8;
    pub const TURN: u64 = 16;
    pub const STATUS: u64 = 64;
    /// Two of them, this far apart.
    pub const RECORDS: u64 = 256;
    pub const APART: u64 = 512;
    /// From one token of a record to the next.
    pub const TOKEN: u64 = 256;
}

/// Longest text of a token.
const TOKEN_MAX: u64 = 160;
/// Words of the status.
const STATUS: u64 = 7;

/// What is applied, and what is about to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Everything before it is applied.
    pub done: Option<Token>,
    /// What is between the two was applied as one batch, or not at all.
    pub next: Option<Token>,
}

/// The place of a store that this process replicates to.
#[derive(Debug)]
pub(crate) struct Place {
    region: Region,
    me: ClientId,
}

fn open(store: &Store, name: &[u8]) -> Result<Option<Region>, WriteError> {
    Ok(store.shared().open_region(kind::REPLICA, name)?.filter(|region| region.len() >= BYTES))
}

fn owner(region: &Region) -> Option<ClientId> {
    ClientId::unpack(region.mem().load(region.offset() + at::OWNER, Ordering::Relaxed))
}

/// How far a replica is. `None`: the store was never one, or it is a copy or was rebuilt since.
///
/// # Errors
/// The store must be open for writing; those of opening a region.
pub fn status(replica: &Store) -> Result<Option<ReplicaStatus>, ReplicaError> {
    status_of(replica).at(replica)
}

fn status_of(store: &Store) -> Result<Option<ReplicaStatus>, WriteError> {
    let Some(region) = open(store, NAME)? else { return Ok(None) };
    let shared = store.shared();
    let mut pid = None;
    if let Some(owner) = owner(&region) {
        if !shared.is_gone(owner)? {
            pid = shared.process_of(owner).map(|(pid, _)| pid);
        }
    }
    Ok(Some(status_at(region.mem(), region.offset(), pid)))
}

/// The same by a process that may have the store open read-only. A replicator that was killed counts as running until
/// another process notices. `None` as well if the region is removed at this moment.
pub fn peek_status(replica: &Store) -> Option<ReplicaStatus> {
    let shared = replica.shared();
    let seen = shared.peek_region(kind::REPLICA, NAME, |mem, base, len| {
        (len >= BYTES).then(|| {
            let owner = ClientId::unpack(mem.load(base + at::OWNER, Ordering::Relaxed));
            let process = owner.and_then(|owner| shared.process_of(owner));
            status_at(mem, base, process.map(|(pid, _)| pid))
        })
    });
    seen.flatten()
}

fn status_at<M: Mem>(mem: &M, base: u64, pid: Option<u32>) -> ReplicaStatus {
    let word = |n: u64| mem.load(base + at::STATUS + 8 * n, Ordering::Relaxed);
    ReplicaStatus {
        phase: if word(0) == 1 { ReplicaPhase::Live } else { ReplicaPhase::Copying },
        pid,
        position: word(1),
        source_position: word(2),
        lag_ms: word(3),
        changes: word(4),
        copied: word(5),
        updated_ms: word(6),
    }
}

fn turn<M: Mem>(mem: &M, base: u64) -> u64 {
    // SYNC(replica): pairs with the store of the process that wrote the record; what it leads to is complete.
    mem.load(base + at::TURN, Ordering::Acquire)
}

fn token<M: Mem>(mem: &M, at: u64) -> Option<Token> {
    let len = mem.load(at, Ordering::Relaxed).min(TOKEN_MAX);
    let mut text = vec![0; len as usize];
    mem.read(at + 8, &mut text);
    std::str::from_utf8(&text).ok()?.parse().ok()
}

/// What is applied, read by a process that may have the store open read-only. `None` as well while it is written.
pub(crate) fn peek_done(store: &Store) -> Option<Token> {
    let seen = store.shared().peek_region(kind::REPLICA, NAME, |mem, base, len| {
        if len < BYTES {
            return None;
        }
        let before = turn(mem, base);
        let done = token(mem, base + at::RECORDS + (before & 1) * at::APART);
        // The record is written again two turns later.
        done.filter(|_| turn(mem, base) == before)
    });
    seen.flatten()
}

impl Place {
    /// Takes the place of a store for this process, making it if it is not there.
    pub fn take(store: &Store) -> Result<Place, ReplicaError> {
        Place::take_named(store, NAME)
    }

    /// That of a sidecar for the peer of its store.
    pub fn take_peer(sidecar: &Store) -> Result<Place, ReplicaError> {
        Place::take_named(sidecar, PEER)
    }

    fn take_named(store: &Store, name: &[u8]) -> Result<Place, ReplicaError> {
        let shared = store.shared();
        let region = loop {
            if let Some(region) = open(store, name).at(store)? {
                break region;
            }
            let made = shared.create_region(kind::REPLICA, name, BYTES, |mem, at| {
                mem.zero(at, BYTES);
                mem.store(at + at::FORMAT, FORMAT, Ordering::Relaxed);
            });
            if let Some(region) = made.at(store)? {
                break region;
            }
        };
        if region.mem().load(region.offset() + at::FORMAT, Ordering::Relaxed) != FORMAT {
            return Err(ReplicaError::UnknownPlace { path: store.path().into() });
        }
        let me = shared.client().at(store)?;
        loop {
            let before = region.mem().load(region.offset() + at::OWNER, Ordering::Relaxed);
            if let Some(owner) = ClientId::unpack(before) {
                // Another replicator of this very process counts as well.
                if !shared.is_gone(owner).at(store)? {
                    let pid = shared.process_of(owner).map(|(pid, _)| pid);
                    return Err(ReplicaError::Taken { path: store.path().into(), pid });
                }
            }
            if region.mem().compare_exchange(region.offset() + at::OWNER, before, me.pack()).is_ok() {
                return Ok(Place { region, me });
            }
        }
    }

    fn word(&self, at: u64) -> u64 {
        self.region.offset() + at
    }

    fn turn(&self) -> u64 {
        turn(self.region.mem(), self.region.offset())
    }

    /// The record that counts.
    pub fn read(&self) -> Record {
        let token = |at| token(self.region.mem(), self.word(at));
        let at = at::RECORDS + (self.turn() & 1) * at::APART;
        Record { done: token(at), next: token(at + at::TOKEN) }
    }

    /// Makes this the record that counts.
    pub fn write(&self, record: Record) {
        let mem = self.region.mem();
        let turn = self.turn().wrapping_add(1);
        let at = at::RECORDS + (turn & 1) * at::APART;
        for (at, token) in [(at, record.done), (at + at::TOKEN, record.next)] {
            let text = token.map_or_else(String::new, |token| token.to_string());
            mem.write(self.word(at + 8), text.as_bytes());
            mem.store(self.word(at), text.len() as u64, Ordering::Relaxed);
        }
        // SYNC(replica): pairs with the load of the next owner.
        mem.store(self.word(at::TURN), turn, Ordering::Release);
    }

    /// Counters of the last status: changes and keys.
    pub fn counts(&self) -> (u64, u64) {
        let word = |n: u64| self.region.mem().load(self.word(at::STATUS + 8 * n), Ordering::Relaxed);
        (word(4), word(5))
    }

    /// Shows how far it is.
    pub fn show(&self, status: &ReplicaStatus) {
        let words: [u64; STATUS as usize] = [
            u64::from(status.phase == ReplicaPhase::Live),
            status.position,
            status.source_position,
            status.lag_ms,
            status.changes,
            status.copied,
            status.updated_ms,
        ];
        for (n, word) in words.into_iter().enumerate() {
            self.region.mem().store(self.word(at::STATUS + 8 * n as u64), word, Ordering::Relaxed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.region.is_ours() {
            let _ = self.region.mem().compare_exchange(self.word(at::OWNER), self.me.pack(), 0);
        }
    }
}
