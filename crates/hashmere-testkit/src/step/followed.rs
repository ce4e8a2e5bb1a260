//! A consumer follows the feed of the store beside the process that dies or is stopped. When that is repaired, or has
//! gone on, it has got every change that is there: once or more often, in order, and none that never was.

use super::judge::Judge;
use super::trace::Stopped;
use super::verify::{difference, dump, Frame, State};
use hashmere::{Store, Version};
use hashmere_feed::{Change, Event, Feed, FeedOptions, FeedStart, Operation, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Judges the keys, and what a consumer got of them.
pub(super) struct Followed(pub(super) Frame);

/// A client that was there all the time, and a consumer of its feed.
pub(super) struct Follower {
    store: Store,
    feed: Feed,
    /// The keys that were there at first, changed by what it got.
    got: State,
    /// Each value that it got; `None`: the key is gone.
    values: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    versions: BTreeMap<Vec<u8>, Version>,
}

impl Follower {
    /// Takes every change that there is, which must end in what the store holds.
    fn hear(&mut self) -> Result<(), String> {
        while let Some(event) = self.feed.next_within(Duration::ZERO).map_err(|error| format!("feed: {error}"))? {
            match event {
                Event::Change(change) => self.take(change)?,
                event => return Err(format!("the consumer gets {event:?}")),
            }
        }
        let seen = dump(&self.store)?;
        if seen != self.got {
            return Err(format!("the consumer got another store: {}", difference(&self.got, &seen)));
        }
        Ok(())
    }

    fn take(&mut self, change: Change) -> Result<(), String> {
        let last = self.versions.entry(change.key.clone()).or_insert(change.version);
        // A repetition, of what a repair was not sure of.
        if change.version < *last {
            return Ok(());
        }
        *last = change.version;
        match (change.operation, change.value) {
            (Operation::Touch, _) => {}
            (Operation::Set, Value::Bytes(value)) => {
                self.values.push((change.key.clone(), Some(value.clone())));
                self.got.insert(change.key, value);
            }
            (operation, Value::Absent) if operation.removes() => {
                self.got.remove(&change.key);
                self.values.push((change.key, None));
            }
            (operation, value) => return Err(format!("the consumer gets {operation:?} of {value:?}")),
        }
        Ok(())
    }

    /// It got what others could see, also of a key that was overwritten since.
    fn has_heard(&self, first: &State, seen: &State) -> Result<(), String> {
        let differs = |key: &&Vec<u8>| first.get(*key) != seen.get(*key);
        let mut changed = first.keys().chain(seen.keys()).filter(differs);
        let has_it = |key: &Vec<u8>| self.values.iter().any(|(k, value)| k == key && value.as_ref() == seen.get(key));
        match changed.find(|key| !has_it(key)) {
            Some(key) => Err(format!("the consumer did not get what others saw of {}", key.escape_ascii())),
            None => Ok(()),
        }
    }
}

impl Judge for Followed {
    type Survivor = Follower;

    fn attend(&self, store: Store) -> Result<Follower, String> {
        let got = dump(&store)?;
        let options = FeedOptions::new().values(true);
        let feed = Feed::open(&store, FeedStart::Now, options).map_err(|error| format!("feed: {error}"))?;
        Ok(Follower { store, feed, got, values: Vec::new(), versions: BTreeMap::new() })
    }

    fn verify(&self, survivor: &mut Follower, copy: &Path, returned: bool) -> Result<u64, String> {
        let (first, seen) = (survivor.got.clone(), dump(&survivor.store)?);
        let waited = self.0.verify_live(&survivor.store, copy, returned)?;
        survivor.hear()?;
        survivor.has_heard(&first, &seen)?;
        Ok(waited)
    }

    fn verify_copy(&self, path: &Path, copy: &Path) -> Result<u64, String> {
        self.0.verify_copied(path, copy)
    }

    fn verify_beside(&self, survivor: &mut Follower, stopped: Stopped) -> Result<u64, String> {
        let took = self.0.verify_stopped(&survivor.store, stopped)?;
        survivor.hear()?;
        Ok(took)
    }
}
