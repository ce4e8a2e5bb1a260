//! The feed of one of two sites: each event with the stamp that its key had then, and the deletes that a first copy has
//! to tell of.

use super::entry::{name_of, Name};
use super::sidecar::SidecarView;
use super::stamp::Stamp;
use crate::error::{At, ReplicaError};
use hashmere::{Cursor, Store, Version};
use hashmere_engine::{StoreHandle, APPLIED};
use hashmere_feed::{Change, Event, Feed, FeedOptions, FeedStart, Operation, Place, Token, Value};
use hashmere_os::clock;
use std::collections::VecDeque;
use std::time::Duration;

/// An event, and the stamp that its key had then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The default one: the event is of no writer, or a later one has what its key has.
    pub stamp: Stamp,
    /// The event.
    pub event: Event,
}

/// What is left of a first copy when all keys were given.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Of *synced*.
    token: Token,
    /// Where the deletes are read on; `None`: they are not known yet.
    deletes: Option<Cursor>,
}

/// A consumer of the changes of one of two sites.
#[derive(Debug)]
pub struct StampedFeed {
    store: Store,
    site: u64,
    feed: Feed,
    sidecar: SidecarView,
    end: Option<End>,
    ready: VecDeque<Stamped>,
}

impl StampedFeed {
    /// Follows the changes of a store, with values.
    ///
    /// # Errors
    /// As [`Feed::open`].
    pub fn open(store: &Store, start: FeedStart) -> Result<StampedFeed, ReplicaError> {
        let feed = Feed::open(store, start, FeedOptions::new().values(true)).at(store)?;
        let uuid = store.shared().engine().uuid();
        let sidecar = SidecarView::new(store, uuid);
        Ok(StampedFeed { store: store.clone(), site: uuid[0], feed, sidecar, end: None, ready: VecDeque::new() })
    }

    /// The next event; `None` if there is none within this time, or [none yet](Self::is_held).
    ///
    /// # Errors
    /// As [`Feed::next_within`]; those of reading the sidecar. The call may be tried again: nothing is passed over.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Stamped>, ReplicaError> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(Some(ready));
            }
            match self.end {
                Some(End { token, deletes: None }) if !self.sidecar.has_reached(&token)? => return Ok(None),
                Some(End { token, deletes }) => self.read_deletes(token, deletes.unwrap_or(Cursor::START))?,
                None => {
                    // It is taken out when all is known of it, so that an error loses nothing.
                    let (stamp, is_lost) = match self.feed.peek_within(timeout).at(&self.store)? {
                        Some(Event::Read(change) | Event::Change(change)) => {
                            (stamp_of(&mut self.sidecar, self.site, change)?, is_lost(&self.store, change)?)
                        }
                        Some(_) => (Stamp::default(), false),
                        // What comes from now on has not been looked at.
                        None => return Ok(None),
                    };
                    match self.feed.next_within(Duration::ZERO).at(&self.store)? {
                        Some(Event::Synced { token }) => self.end = Some(End { token, deletes: None }),
                        Some(Event::Change(mut change)) if is_lost => {
                            (change.operation, change.value) = (Operation::Delete, Value::Absent);
                            return Ok(Some(Stamped { stamp, event: Event::Change(change) }));
                        }
                        event => return Ok(event.map(|event| Stamped { stamp, event })),
                    }
                }
            }
        }
    }

    /// What is there, at most `max` events; waits for the first one for as long as this.
    ///
    /// # Errors
    /// As [`next_within`](Self::next_within).
    pub fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Stamped>, ReplicaError> {
        let mut batch: Vec<Stamped> = self.next_within(timeout)?.into_iter().collect();
        while !batch.is_empty() && batch.len() < max {
            match self.next_within(Duration::ZERO) {
                Ok(Some(stamped)) => batch.push(stamped),
                // An error is for the next call, which meets it again.
                _ => break,
            }
        }
        Ok(batch)
    }

    /// Whether the end of a first copy waits for this side's replicator: until that has met all deletes of its writers,
    /// there is nothing.
    pub fn is_held(&self) -> bool {
        self.end.is_some()
    }

    /// As [`Feed::token`].
    pub fn token(&self) -> Token {
        self.end.map_or_else(|| self.feed.token(), |end| end.token.before_synced())
    }

    /// As [`Feed::lag`].
    pub fn lag(&self) -> u64 {
        self.feed.lag()
    }

    /// As [`Feed::place`].
    pub fn place(&self) -> Place {
        self.feed.place()
    }

    fn read_deletes(&mut self, token: Token, from: Cursor) -> Result<(), ReplicaError> {
        let (deletes, next) = self.sidecar.tombstones(from)?;
        for (name, stamp) in deletes {
            // One that was written again since was read, or is about to come.
            if self.store.metadata(name.key()).at(&self.store)?.is_some() {
                continue;
            }
            let mut change = Change::new(Operation::Delete, name.key, Version(stamp.version), token.before_synced());
            (change.supplied_hash, change.ts_ms) = (name.hash, clock::now_ms());
            self.ready.push_back(Stamped { stamp, event: Event::Change(change) });
        }
        self.end = next.map(|next| End { token, deletes: Some(next) });
        if self.end.is_none() {
            self.ready.push_back(Stamped { stamp: Stamp::default(), event: Event::Synced { token } });
        }
        Ok(())
    }
}

/// Whether it is a write by a writer of this side whose value is lost because its key is gone: it was cleared, has
/// expired or was evicted. No later event has what the key became, so it comes as a delete: what it won against is not
/// to stay at the other site.
fn is_lost(store: &Store, change: &Change) -> Result<bool, ReplicaError> {
    let has_no_value = change.value == Value::Superseded && change.marks & APPLIED == 0;
    Ok(has_no_value && store.metadata(name_of(change).key()).at(store)?.is_none())
}

/// The stamp that the key had when this happened; the default one: a later event has it.
fn stamp_of(sidecar: &mut SidecarView, site: u64, change: &Change) -> Result<Stamp, ReplicaError> {
    let written_here = Stamp { version: change.version.0, site };
    match change.operation {
        Operation::Evict | Operation::Expire => return Ok(Stamp::default()),
        _ if change.marks & APPLIED == 0 => return Ok(written_here),
        _ => {}
    }
    let name = Name { key: change.key.clone(), hash: change.supplied_hash };
    Ok(match sidecar.get(&name)? {
        Some(entry) if change.version.0 < entry.applied => Stamp::default(),
        Some(entry) => entry.stamp_of(change.version.0).unwrap_or(written_here),
        None => written_here,
    })
}
