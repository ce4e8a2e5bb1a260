//! Two stores that both write: the last writer of a key wins, on both sides.
//!
//! Events say which keys to look at; what is done with a key depends on what the two stores and their sidecars have of
//! it now. `docs/internals/replicas.md` has the rules and what they promise.

mod merge;
mod sidecar;

use crate::error::{At, ReplicaError};
use crate::one_way::ORIGIN;
use crate::place::{Place, Record};
use crate::status::{ReplicaPhase, ReplicaStatus};
use hashmere::{Cursor, Filter, Options, Store};
use hashmere_engine::StoreHandle;
use hashmere_feed::{Change, Event, Feed, FeedOptions, FeedStart, Operation, Token};
use hashmere_os::clock;
use sidecar::{Name, Sidecar, Stamp};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Events that are taken from one side at once.
const EVENTS: usize = 1024;

/// One of the two.
#[derive(Debug)]
struct Side {
    store: Store,
    feed: Feed,
    sidecar: Sidecar,
    /// Which store this is, in stamps.
    site: u64,
    /// Of the store: nothing else replicates to it; its status.
    place: Place,
    /// Of the sidecar: up to where the feed of the store was dealt with.
    progress: Place,
    status: ReplicaStatus,
    /// Events that are not dealt with yet: the first is a clear, or met an error.
    held: VecDeque<Event>,
}

/// Keys to look at, and on which sides their expiry was changed.
type Touched = BTreeMap<Name, [bool; 2]>;

/// Keeps two stores equal that are both written to.
///
/// Both are opened with the [`origin`](Options::origin) [`ORIGIN`], and keep their changes.
#[derive(Debug)]
pub struct TwoWay {
    sides: [Side; 2],
    /// Every key of both is to be looked at.
    is_unmerged: bool,
}

impl Side {
    fn open(store: &Store) -> Result<Side, ReplicaError> {
        let place = Place::take(store)?;
        // What a one-way replicator noted is not so any more.
        place.write(Record::default());
        let mut path = store.path().as_os_str().to_owned();
        path.push(".sidecar");
        let state = Options::new().open(std::path::PathBuf::from(&path));
        let state =
            state.map_err(|source| ReplicaError::Store { path: path.into(), source: Box::new(source.into()) })?;
        let progress = Place::take(&state)?;
        let uuid = store.shared().engine().uuid();
        let sidecar = Sidecar::new(state, uuid)?;
        let start = progress.read().done.filter(|_| sidecar.is_known()).map_or(FeedStart::Start, FeedStart::At);
        let feed = Feed::open(store, start, FeedOptions::new()).at(store)?;
        let status = ReplicaStatus { pid: Some(std::process::id()), ..Default::default() };
        Ok(Side { store: store.clone(), feed, sidecar, site: uuid[0], place, progress, status, held: VecDeque::new() })
    }

    /// What happened on this side: keys to look at.
    fn take(&mut self, side: usize, change: &Change, touched: &mut Touched) -> Result<(), ReplicaError> {
        let name = Name { key: change.key.clone(), hash: change.supplied_hash };
        if change.origin == ORIGIN {
            return self.sidecar.promote(&name, change.version.0);
        }
        match change.operation {
            // What was dropped for room, or had expired, was not deleted by any process.
            Operation::Evict | Operation::Expire => return Ok(()),
            Operation::Delete => {
                let stamp = Stamp { version: change.version.0, site: self.site };
                self.note_delete(&name, stamp, change.token.position())?;
            }
            _ => {}
        }
        touched.entry(name).or_default()[side] |= change.operation == Operation::Touch;
        Ok(())
    }

    /// A delete by a writer of this side.
    fn note_delete(&self, name: &Name, stamp: Stamp, position: u64) -> Result<(), ReplicaError> {
        let entry = self.sidecar.get(name)?.unwrap_or_default();
        let now = self.store.metadata(name.key()).at(&self.store)?;
        match now {
            None if entry.is_tombstone && entry.stamp >= stamp => Ok(()),
            None => self.sidecar.note_tombstone(name, stamp, position),
            // What is there now was applied beside this delete, before it was known, and lost against it.
            Some(now) if now.version.0 == entry.applied && !entry.is_tombstone && stamp > entry.stamp => {
                merge::mark_dead(self, name, stamp, Some(now.version))?;
                Ok(())
            }
            // Written again since.
            Some(_) => Ok(()),
        }
    }

    fn show(&mut self, phase: ReplicaPhase) {
        let position = self.progress.read().done.as_ref().map_or(0, Token::position);
        let source_position = hashmere_feed::info(&self.store).map_or(position, |info| info.position);
        let status = &mut self.status;
        (status.phase, status.position, status.source_position) = (phase, position, source_position);
        status.updated_ms = clock::now_ms();
        self.place.show(status);
    }
}

impl TwoWay {
    /// Resumes where the sidecars say; begins by merging every key where they say nothing.
    ///
    /// # Errors
    /// As [`Replicator::open`](crate::Replicator::open), and those of the sidecars, which lie beside the stores.
    pub fn open(a: &Store, b: &Store) -> Result<TwoWay, ReplicaError> {
        if crate::file::is_same(a, b) {
            return Err(ReplicaError::SameStore { path: b.path().into() });
        }
        let sides = [Side::open(a)?, Side::open(b)?];
        for n in 0..2 {
            sides[n].sidecar.prune(&sides[n].store, &sides[1 - n].store)?;
        }
        Ok(TwoWay { sides, is_unmerged: false })
    }

    /// Deals with what there is, some of it; waits for the first change for about as long as this. `false`: there was
    /// nothing.
    ///
    /// # Errors
    /// Those of the stores. The call may be tried again.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, ReplicaError> {
        let mut touched = Touched::new();
        // Both to their ends: a key is looked at only when what had happened to it before is known.
        while self.drain(0, &mut touched)? | self.drain(1, &mut touched)? {
            for n in 0..2 {
                if !self.sides[n].held.is_empty() {
                    self.spread_clear(n)?;
                    self.sides[n].held.pop_front();
                }
            }
        }
        let is_idle = touched.is_empty() && !self.is_unmerged;
        if is_idle {
            self.note();
            self.show(ReplicaPhase::Live);
            if !timeout.is_zero() {
                let [a, b] = &mut self.sides;
                let half = timeout / 2;
                a.wait(half)?;
                b.wait(half)?;
            }
            return Ok(false);
        }
        if std::mem::take(&mut self.is_unmerged) {
            self.show(ReplicaPhase::Copying);
            self.merge_all().inspect_err(|_| self.is_unmerged = true)?;
        }
        for (name, touch) in &touched {
            merge::merge(&self.sides, name, *touch)?;
        }
        self.sides.iter_mut().for_each(|side| side.status.changes += touched.len() as u64);
        self.note();
        self.show(ReplicaPhase::Live);
        Ok(true)
    }

    /// How far the two feeds are dealt with.
    pub fn status(&self) -> [ReplicaStatus; 2] {
        [self.sides[0].status, self.sides[1].status]
    }

    /// The places are of before the merge: what has come since then comes again.
    fn note(&self) {
        for side in &self.sides {
            let token = Some(side.feed.token());
            if side.progress.read().done != token {
                side.progress.write(Record { done: token, next: token });
            }
        }
    }

    fn show(&mut self, phase: ReplicaPhase) {
        self.sides.iter_mut().for_each(|side| side.show(phase));
    }

    /// Deals with what happened on one side, up to a clear: `true`, there is one.
    fn drain(&mut self, n: usize, touched: &mut Touched) -> Result<bool, ReplicaError> {
        let side = &mut self.sides[n];
        loop {
            if side.held.is_empty() {
                side.held.extend(side.feed.next_batch(EVENTS, Duration::ZERO).at(&side.store)?);
            }
            if side.held.is_empty() {
                return Ok(false);
            }
            while let Some(event) = side.held.pop_front() {
                let dealt = match &event {
                    Event::Change(change) => side.take(n, change, touched),
                    Event::Clear { .. } => {
                        side.held.push_front(event);
                        return Ok(true);
                    }
                    Event::Reset { .. } => {
                        // Every key of both is looked at once.
                        self.is_unmerged = true;
                        Ok(())
                    }
                    _ => Ok(()),
                };
                if let Err(error) = dealt {
                    side.held.push_front(event);
                    return Err(error);
                }
            }
        }
    }

    /// A side was cleared: what it had is deleted on the other one.
    fn spread_clear(&mut self, n: usize) -> Result<(), ReplicaError> {
        let (cleared, other) = (&self.sides[n], &self.sides[1 - n]);
        for pair in other.store.scan(Cursor::START, Filter::all().keys_only()) {
            let pair = pair.at(&other.store)?;
            merge::clear(cleared, other, &Name { key: pair.key, hash: pair.supplied_hash })?;
        }
        cleared.sidecar.forget()?;
        self.is_unmerged = true;
        Ok(())
    }

    fn merge_all(&self) -> Result<(), ReplicaError> {
        for side in &self.sides {
            for pair in side.store.scan(Cursor::START, Filter::all().keys_only()) {
                let pair = pair.at(&side.store)?;
                merge::merge(&self.sides, &Name { key: pair.key, hash: pair.supplied_hash }, [false; 2])?;
            }
        }
        Ok(())
    }
}

impl Side {
    /// Waits until there is an event, which comes again.
    fn wait(&mut self, timeout: Duration) -> Result<(), ReplicaError> {
        let token = self.feed.token();
        if self.feed.next_within(timeout).at(&self.store)?.is_some() {
            self.feed = Feed::open(&self.store, FeedStart::At(token), FeedOptions::new()).at(&self.store)?;
        }
        Ok(())
    }
}
