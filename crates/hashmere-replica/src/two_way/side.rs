//! One of two sites: its store, its sidecar, and what its own feed says.

use super::entry::{name_of, Entry, Name};
use super::sidecar::Sidecar;
use super::stamp::Stamp;
use crate::error::{At, ReplicaError};
use crate::place::{Place, Record};
use hashmere::{Attributes, Cursor, Filter, Metadata, Pair, Store, Ttl, Version};
use hashmere_engine::{StoreHandle, APPLIED};
use hashmere_feed::{Change, Event, Feed, FeedOptions, FeedStart, Operation, Token};
use std::time::Duration;

/// Events that are taken at once.
const EVENTS: usize = 1024;
/// When a delete has expired, in milliseconds since 1970: no writer gives an expiry that is so long ago.
const LONG_AGO: u64 = 1;

/// A key as it is now.
pub(super) struct Found {
    /// `None`: it is absent.
    pub metadata: Option<Metadata>,
    pub stamp: Stamp,
}

/// What a key becomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Becomes<'v> {
    /// A value with flags and expiry.
    Value(&'v [u8], u32, Option<u64>),
    /// Deleted; whether the peer has deleted it.
    Deleted { is_shared: bool },
}

/// Whether what a feed says of a key is that a replicator deleted it.
pub(super) fn is_delete(change: &Change) -> bool {
    change.operation == Operation::Delete || change.expires_at_ms == Some(LONG_AGO)
}

/// What is known of a side when its feed has been dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Drained {
    /// What happened to every key.
    All,
    /// The same, and that every key was removed: what was later than the peer's may be gone.
    Cleared,
    /// The feed does not reach back: what was deleted is not known.
    Lost,
}

#[derive(Debug)]
pub(super) struct Side {
    store: Store,
    /// Which store this is, in stamps.
    pub site: u64,
    sidecar: Sidecar,
    feed: Feed,
    /// Up to where that was dealt with.
    progress: Place,
    /// Entries were forgotten when the feed ended here.
    pruned_at: u64,
}

impl Side {
    /// Resumes where the sidecar says. `false`: it says nothing.
    pub fn open(store: &Store) -> Result<(Side, bool), ReplicaError> {
        let uuid = store.shared().engine().uuid();
        let sidecar = Sidecar::open(store, uuid)?;
        let progress = Place::take(sidecar.state())?;
        let done = progress.read().done.filter(|_| sidecar.is_known());
        let feed = follow(store, done.map_or(FeedStart::Now, FeedStart::At))?;
        let mut side = Side { store: store.clone(), site: uuid[0], sidecar, feed, progress, pruned_at: 0 };
        if done.is_none() {
            side.note();
        }
        side.prune()?;
        Ok((side, done.is_some()))
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn sidecar(&self) -> &Sidecar {
        &self.sidecar
    }

    /// Deals with all that happened here.
    pub fn drain(&mut self) -> Result<Drained, ReplicaError> {
        let drained = self.drain_all().inspect_err(|_| {
            // What was taken from the feed comes again.
            if let Ok(feed) = follow(&self.store, self.progress.read().done.map_or(FeedStart::Now, FeedStart::At)) {
                self.feed = feed;
            }
        })?;
        if hashmere_feed::info(&self.store).is_some_and(|info| info.oldest > self.pruned_at) {
            self.prune()?;
        }
        Ok(drained)
    }

    fn drain_all(&mut self) -> Result<Drained, ReplicaError> {
        let mut drained = Drained::All;
        loop {
            let events = self.feed.next_batch(EVENTS, Duration::ZERO).at(&self.store)?;
            if events.is_empty() {
                return Ok(drained);
            }
            for event in &events {
                match event {
                    Event::Change(change) => self.met(change)?,
                    Event::Clear { .. } => {
                        self.was_cleared()?;
                        drained = Drained::Cleared;
                    }
                    Event::Reset { .. } => {
                        self.feed = follow(&self.store, FeedStart::Now)?;
                        return Ok(Drained::Lost);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Up to where this side's feed was dealt with.
    pub fn token(&self) -> Token {
        self.feed.token()
    }

    /// Notes that.
    pub fn note(&self) {
        let token = Some(self.token());
        if self.progress.read().done != token {
            self.progress.write(Record { done: token, next: token });
        }
    }

    fn met(&mut self, change: &Change) -> Result<(), ReplicaError> {
        match change.operation {
            Operation::Delete => self.met_delete(change),
            Operation::Touch => self.met_touch(&name_of(change), change.version),
            // What was dropped for room, or had expired, was not deleted by any process.
            _ => Ok(()),
        }
    }

    /// A delete by a writer of this side.
    fn met_delete(&self, change: &Change) -> Result<(), ReplicaError> {
        let (name, stamp) = (name_of(change), Stamp { version: change.version.0, site: self.site });
        // Where a replicator was killed when it had applied something, the entry is complete behind this.
        let now = self.find(&name)?.metadata;
        let entry = self.sidecar.get(&name)?.unwrap_or_default();
        match now {
            None if entry.is_tombstone && entry.stamp >= stamp => Ok(()),
            None => {
                let position = change.token.position();
                // What was applied beside this delete and is gone has events still: they are older than this entry.
                let applied = stamp.version.max(entry.applied);
                let tombstone = Entry { stamp, applied, is_tombstone: true, position, ..Entry::default() };
                self.sidecar.put(&name, &tombstone)
            }
            // What is there now was applied beside this delete, before it was known, and lost against it.
            Some(now) if now.version.0 == entry.applied && !entry.is_tombstone && stamp > entry.stamp => {
                self.write(&name, Becomes::Deleted { is_shared: false }, stamp, Some(&now)).map(drop)
            }
            // Written again since.
            Some(_) => Ok(()),
        }
    }

    /// A writer of this side gave this version of a value another expiry or other flags. It becomes a write of that
    /// writer.
    fn met_touch(&self, name: &Name, version: Version) -> Result<(), ReplicaError> {
        let Some(item) = self.store.get_item(name.key()).at(&self.store)? else { return Ok(()) };
        let now = &item.metadata;
        // Marks of a front end would go with it.
        if now.version != version || now.marks & !APPLIED != 0 {
            return Ok(());
        }
        let ttl = now.expires_at_ms.map_or(Ttl::Never, Ttl::At);
        let attributes = Attributes { flags: now.flags, ttl, ..Attributes::NONE };
        let written = self.store.shared().set_marked_as((&name.key, name.hash), &item.value, attributes, 0, Some(now));
        written.at(&self.store).map(drop)
    }

    /// Every key of this side was removed: what had been applied here is deleted at the peer too.
    fn was_cleared(&self) -> Result<(), ReplicaError> {
        self.sidecar.each(|name, entry| {
            let is_gone = self.store.metadata(name.key()).at(&self.store)?.is_none();
            if is_gone && !entry.is_tombstone && entry.applied != 0 {
                self.write(&name, Becomes::Deleted { is_shared: false }, entry.stamp.cleared(), None)?;
            }
            Ok(())
        })
    }

    /// Deletes what that site wrote and has no more.
    pub fn delete_those_of(&self, site: u64, is_there: impl Fn(&Pair) -> bool) -> Result<(), ReplicaError> {
        for pair in self.store.scan(Cursor::START, Filter::all().keys_only()) {
            let pair = pair.at(&self.store)?;
            if is_there(&pair) {
                continue;
            }
            let name = Name { key: pair.key, hash: pair.supplied_hash };
            let found = self.find(&name)?;
            if found.metadata.is_some() && found.stamp.site == site {
                // One that was written here in between stays.
                let becomes = Becomes::Deleted { is_shared: false };
                self.write(&name, becomes, found.stamp.cleared(), found.metadata.as_ref())?;
            }
        }
        Ok(())
    }

    pub fn find(&self, name: &Name) -> Result<Found, ReplicaError> {
        let metadata = self.store.metadata(name.key()).at(&self.store)?;
        let stamp = match &metadata {
            Some(now) if now.marks & APPLIED == 0 => Stamp { version: now.version.0, site: self.site },
            Some(now) => self.applied(name, now)?,
            None => {
                let entry = self.sidecar.get(name)?.filter(|entry| entry.is_tombstone);
                entry.map_or_else(Stamp::default, |entry| entry.stamp)
            }
        };
        Ok(Found { metadata, stamp })
    }

    /// The stamp of what a replicator applied.
    fn applied(&self, name: &Name, now: &Metadata) -> Result<Stamp, ReplicaError> {
        let entry = self.sidecar.get(name)?.unwrap_or_default();
        let stamp = entry.stamp_of(now.version.0);
        if let Some(stamp) = stamp.filter(|_| now.version.0 > entry.applied) {
            // Its replicator was killed before it could say so.
            let applied = now.version.0;
            let position = hashmere_feed::info(&self.store).map_or(0, |info| info.position);
            self.sidecar.put(name, &Entry { stamp, applied, position, ..Entry::default() })?;
        }
        // Without an entry it is as if it had been written here.
        Ok(stamp.unwrap_or(Stamp { version: now.version.0, site: self.site }))
    }

    /// The peer has what was found here: a delete is known to both, and a value with another expiry was touched here
    /// when no replicator met that, unless it is the peer's touch.
    pub fn met_again(&self, name: &Name, change: &Change, found: &Found) -> Result<(), ReplicaError> {
        let Some(now) = &found.metadata else {
            return match self.sidecar.get(name)? {
                Some(entry) if entry.is_tombstone && !entry.is_shared => {
                    self.sidecar.put(name, &Entry { is_shared: true, ..entry })
                }
                _ => Ok(()),
            };
        };
        let is_same = (now.expires_at_ms, now.flags) == (change.expires_at_ms, change.flags);
        match is_same || change.operation == Operation::Touch {
            true => Ok(()),
            false => self.met_touch(name, now.version),
        }
    }

    /// Makes a key this, if it is as it was found. For readers a deleted key is gone at that moment, and its versions
    /// here go on above that of the delete.
    pub fn write(
        &self,
        name: &Name,
        becomes: Becomes<'_>,
        stamp: Stamp,
        found: Option<&Metadata>,
    ) -> Result<bool, ReplicaError> {
        let before = self.sidecar.get(name)?.unwrap_or_default();
        let (value, flags, ttl) = match becomes {
            Becomes::Value(value, flags, expires) => (value, flags, expires.map_or(Ttl::Never, Ttl::At)),
            Becomes::Deleted { .. } => (&b""[..], 0, Ttl::At(LONG_AGO)),
        };
        let (is_tombstone, is_shared) = match becomes {
            Becomes::Value(..) => (false, false),
            Becomes::Deleted { is_shared } => (true, is_shared),
        };
        // Said first: what is found at this key after a kill is what was applied, if it has the mark.
        self.sidecar.put(name, &Entry { pending: stamp, is_pending_tombstone: is_tombstone, ..before })?;
        self.may_be_killed()?;
        let min_version = Version(stamp.version.min(Version::MIN_VERSION_MAX.0));
        let attributes = Attributes { flags, ttl, min_version };
        let written = self.store.shared().set_marked_as((&name.key, name.hash), value, attributes, APPLIED, found);
        let written = written.at(&self.store)?;
        self.may_be_killed()?;
        let position = hashmere_feed::info(&self.store).map_or(0, |info| info.position);
        let after = match &written {
            Some(stored) => {
                let applied = stored.version.0;
                Entry { stamp, applied, is_tombstone, is_shared, position, ..Entry::default() }
            }
            None => before,
        };
        self.sidecar.put(name, &after)?;
        Ok(written.is_some())
    }

    /// A moment at which a death matters: tests die here.
    #[inline]
    fn may_be_killed(&self) -> Result<(), ReplicaError> {
        #[cfg(test)]
        super::death::die_here(&self.store)?;
        Ok(())
    }

    /// Forgets entries of keys that are absent, if no reader of the feed asks for them any more: deletes that the peer
    /// has too, and what was evicted or has expired.
    fn prune(&mut self) -> Result<(), ReplicaError> {
        let Some(info) = hashmere_feed::info(&self.store) else { return Ok(()) };
        self.pruned_at = info.position;
        self.sidecar.each(|name, entry| {
            let is_old = entry.position < info.oldest && !entry.is_pending();
            if is_old && entry.is_tombstone == entry.is_shared {
                let is_gone = self.store.metadata(name.key()).at(&self.store)?.is_none();
                if is_gone {
                    self.sidecar.forget(&name)?;
                }
            }
            Ok(())
        })
    }
}

fn follow(store: &Store, start: FeedStart) -> Result<Feed, ReplicaError> {
    Feed::open(store, start, FeedOptions::new()).at(store)
}
