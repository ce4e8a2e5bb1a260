//! One direction: a side gets what its peer has written, where that is later than what it has.

use super::entry::name_of;
use super::side::{is_delete, Becomes, Drained, Side};
use super::stamp::Stamp;
use super::stamped::{Stamped, StampedFeed};
use crate::error::ReplicaError;
use crate::keys::Keys;
use crate::place::{Place, Record};
use crate::source::{start_at, Remote, Served};
use crate::status::{ReplicaPhase, ReplicaStatus};
use hashmere::Store;
use hashmere_feed::{Change, Event, Token, Value};
use hashmere_os::clock;
use std::time::Duration;

/// Events that are taken from the peer at once.
const EVENTS: usize = 1024;

/// The other side.
#[derive(Debug)]
enum Peer {
    /// A file.
    Local(Store, Box<StampedFeed>),
    /// A server.
    Served(Box<Remote>),
}

impl Peer {
    fn next_batch(&mut self, events: usize, timeout: Duration) -> Result<Vec<Stamped>, ReplicaError> {
        match self {
            Peer::Local(_, feed) => feed.next_batch(events, timeout),
            Peer::Served(remote) => remote.next_batch(events, timeout),
        }
    }

    fn rewind(&mut self, done: Option<Token>) -> Result<(), ReplicaError> {
        match self {
            Peer::Local(store, feed) => **feed = StampedFeed::open(store, start_at(done))?,
            Peer::Served(remote) => remote.rewind(done),
        }
        Ok(())
    }

    /// Where its feed ends, as far as is known.
    fn end(&self) -> Option<u64> {
        match self {
            Peer::Local(store, _) => hashmere_feed::info(store).map(|info| info.position),
            Peer::Served(remote) => remote.end(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Follower {
    side: Side,
    peer: Peer,
    /// Of the store: nothing else replicates to it; its status.
    shown: Place,
    /// Of the sidecar: where the peer is followed.
    place: Place,
    /// Everything of the peer before it is applied; `None`: a first copy is to begin, or under way.
    done: Option<Token>,
    /// The keys that a first copy has brought.
    copied: Option<Keys>,
    /// It is to bring back what this side has lost. (Not after a clear: what was written here is gone for good.)
    restores: bool,
    status: ReplicaStatus,
}

impl Follower {
    /// From a store of this machine.
    pub fn open(peer: &Store, store: &Store) -> Result<Follower, ReplicaError> {
        Follower::with(store, |done| Ok(Peer::Local(peer.clone(), Box::new(StampedFeed::open(peer, start_at(done))?))))
    }

    /// From a store that is served.
    pub fn open_served(peer: &Served, store: &Store) -> Result<Follower, ReplicaError> {
        Follower::with(store, |done| Ok(Peer::Served(Box::new(Remote::stamped(peer.clone(), done)))))
    }

    fn with(
        store: &Store,
        peer: impl FnOnce(Option<Token>) -> Result<Peer, ReplicaError>,
    ) -> Result<Follower, ReplicaError> {
        let shown = Place::take(store)?;
        // What a one-way replicator noted is not so any more.
        shown.write(Record::default());
        let (side, is_known) = Side::open(store)?;
        let place = Place::take_peer(side.sidecar().state())?;
        let noted = place.read();
        let done = noted.done.filter(|done| is_known && !done.is_copying());
        let restores = !(is_known && noted.done.is_none() && noted.next.is_some());
        if done.is_none() && restores {
            place.write(Record::default());
        }
        let phase = if done.is_some() { ReplicaPhase::Live } else { ReplicaPhase::Copying };
        let status = ReplicaStatus { phase, pid: Some(std::process::id()), ..Default::default() };
        Ok(Follower { side, peer: peer(done)?, shown, place, done, copied: None, restores, status })
    }

    /// Deals with what there is, some of it; waits for the first event of the peer for as long as this. `false`: there
    /// was nothing.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, ReplicaError> {
        self.step_of(EVENTS, timeout)
    }

    /// The same with at most about this number of events.
    pub(super) fn step_of(&mut self, events: usize, timeout: Duration) -> Result<bool, ReplicaError> {
        match self.side.drain()? {
            Drained::All => {}
            // The peer may have what was passed over for something later, or for what is not known here any more.
            drained => self.begin_again(drained == Drained::Lost)?,
        }
        let batch = self.peer.next_batch(events, timeout)?;
        let is_idle = batch.is_empty() && !matches!(&self.peer, Peer::Local(_, feed) if feed.is_held());
        let mut dealt = Ok(());
        for stamped in &batch {
            dealt = self.take(stamped);
            if dealt.is_err() {
                break;
            }
        }
        match dealt {
            Ok(()) => self.note(self.done),
            // The peer is past what was not applied.
            Err(_) => self.peer.rewind(self.place.read().done)?,
        }
        self.side.note();
        self.show();
        dealt.map(|()| !is_idle)
    }

    /// A step of a replicator that is killed behind some of its events.
    #[cfg(test)]
    pub fn die_within(mut self, events: usize) -> Result<(), ReplicaError> {
        self.side.drain()?;
        let batch = self.peer.next_batch(events, Duration::ZERO)?;
        batch.iter().try_for_each(|stamped| self.take(stamped))
    }

    pub fn status(&self) -> ReplicaStatus {
        self.status
    }

    /// Why the peer cannot be followed at the moment.
    pub fn trouble(&self) -> Option<&str> {
        match &self.peer {
            Peer::Local(..) => None,
            Peer::Served(remote) => remote.trouble(),
        }
    }

    /// To be called when [`step`](Self::step) had nothing: whether everything is applied that had happened at the peer
    /// when this was called first.
    pub fn is_caught_up(&mut self) -> bool {
        self.done.is_some()
            && match &mut self.peer {
                Peer::Local(..) => true,
                Peer::Served(remote) => remote.is_drained(),
            }
    }

    /// Where a first copy is to begin, the second token says whether it restores.
    fn note(&self, done: Option<Token>) {
        let next = done.or_else(|| (!self.restores).then(|| self.side.token()));
        if self.place.read() != (Record { done, next }) {
            self.place.write(Record { done, next });
        }
    }

    pub(super) fn begin_again(&mut self, restores: bool) -> Result<(), ReplicaError> {
        // One that is under way goes on to restore what it restores.
        self.restores = restores || self.done.is_none() && self.restores;
        self.done = None;
        self.note(None);
        // Not before: a clear that is met again begins again. Nor later: what is applied now is not to be taken for
        // what it removed.
        self.side.note();
        self.peer.rewind(None)
    }

    pub(super) fn take(&mut self, stamped: &Stamped) -> Result<(), ReplicaError> {
        if let Some(token) = stamped.event.token() {
            if token.site() == self.side.site {
                return Err(ReplicaError::SameStore { path: self.side.store().path().into() });
            }
        }
        match &stamped.event {
            Event::Reset { .. } => {
                self.done = None;
                self.note(None);
                self.copied = Some(Keys::default());
                self.status = ReplicaStatus { copied: 0, phase: ReplicaPhase::Copying, ..self.status };
            }
            Event::Read(change) | Event::Change(change) => {
                self.merge(change, stamped.stamp)?;
                match &mut self.copied {
                    Some(copied) => {
                        if stamped.stamp != Stamp::default() {
                            copied.add(&change.key, change.supplied_hash);
                        }
                        self.status.copied += 1;
                    }
                    None => {
                        self.done = Some(change.token);
                        self.status.changes += 1;
                    }
                }
            }
            Event::Clear { token, .. } => match &mut self.copied {
                // What was read since it comes again; what was there before is not among that at the end.
                Some(copied) => copied.forget(),
                None => {
                    self.side.delete_those_of(token.site(), |_| false)?;
                    // What comes behind it is not to be deleted if this is read again after a kill.
                    self.done = Some(*token);
                    self.note(self.done);
                }
            },
            Event::Synced { token } => {
                if let Some(copied) = &self.copied {
                    self.side.delete_those_of(token.site(), |pair| copied.has(&pair.key, pair.supplied_hash))?;
                }
                (self.copied, self.done, self.restores) = (None, Some(*token), true);
                self.status.phase = ReplicaPhase::Live;
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives the side what the peer has, if that was written later than what the side has.
    fn merge(&self, change: &Change, stamp: Stamp) -> Result<(), ReplicaError> {
        let becomes = match &change.value {
            _ if stamp == Stamp::default() => return Ok(()),
            _ if is_delete(change) => Becomes::Deleted { is_shared: true },
            Value::Bytes(value) => Becomes::Value(value, change.flags, change.expires_at_ms),
            // A later event has it.
            _ => return Ok(()),
        };
        let name = name_of(change);
        // What was written here and comes back. In a first copy it may be what this side has lost.
        let is_restored = self.copied.is_some() && self.restores || matches!(becomes, Becomes::Deleted { .. });
        let is_echo = stamp.site == self.side.site && !is_restored;
        loop {
            let found = self.side.find(&name)?;
            if stamp == found.stamp {
                return self.side.met_again(&name, change, &found);
            }
            // What the peer wrote and has no more, for it was cleared. It is deleted at both, also where the peer has
            // got something older since: a stamp that became smaller would let what was passed over here stay there.
            let is_gone_there = self.copied.is_some()
                && found.metadata.is_some()
                && found.stamp.site == change.token.site()
                && stamp < found.stamp;
            if is_gone_there {
                let becomes = Becomes::Deleted { is_shared: false };
                if self.side.write(&name, becomes, found.stamp.cleared(), found.metadata.as_ref())? {
                    return Ok(());
                }
                continue;
            }
            if is_echo || stamp < found.stamp {
                return Ok(());
            }
            // Each time that it is not as it was found, a writer has changed it.
            if self.side.write(&name, becomes, stamp, found.metadata.as_ref())? {
                return Ok(());
            }
        }
    }

    fn show(&mut self) {
        let position = self.done.as_ref().map_or(0, Token::position);
        let source_position = self.peer.end().unwrap_or(self.status.source_position).max(position);
        let status = &mut self.status;
        (status.position, status.source_position, status.updated_ms) = (position, source_position, clock::now_ms());
        self.shown.show(status);
    }
}
