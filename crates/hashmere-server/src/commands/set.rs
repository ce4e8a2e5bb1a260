//! Storing, for all three protocols.

use super::Context;
use crate::protocol::classic::Verb;
use hashmere::{Attributes, CasOutcome, Change, Expected, Stored, Update, Updated, Version, WriteError};

/// What memcached keeps with an item beside key and value: counted against the item limit, so that the limit means the same.
const ITEM_OVERHEAD: u64 = 59;

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    /// Stored, with a value of this length.
    Stored(Stored, u64),
    /// The condition on presence is not met.
    NotStored,
    /// The key has another version.
    Exists,
    /// The key is not there, and has to be.
    NotFound,
    /// Above the item limit.
    TooLarge,
    /// The store refused.
    Failed(WriteError),
}

impl Outcome {
    /// What was to be deleted is.
    pub fn gone() -> Outcome {
        Outcome::Stored(Stored::default(), 0)
    }

    fn of(stored: Result<Option<Stored>, WriteError>, value: &[u8]) -> Outcome {
        match stored {
            Ok(Some(stored)) => Outcome::Stored(stored, value.len() as u64),
            Ok(None) => Outcome::NotStored,
            Err(error) => Outcome::Failed(error),
        }
    }
}

/// Why the store refused, as a reply in text.
pub fn failure(error: &WriteError) -> String {
    match error {
        error if error.is_no_room() => "SERVER_ERROR out of memory storing object".into(),
        WriteError::TooLarge { .. } => crate::protocol::classic::TOO_LARGE.into(),
        other => format!("SERVER_ERROR {other}"),
    }
}

impl Context<'_> {
    /// Whether an item may be this large.
    pub fn fits(&self, key: &[u8], flags: u32, len: u64) -> bool {
        let item = ITEM_OVERHEAD + key.len() as u64 + len + if flags == 0 { 0 } else { 4 };
        item <= self.server.config.item_max
    }

    /// Stores a value. `only`: the version demanded, for what puts bytes in front or behind.
    #[inline]
    pub fn put(&self, verb: Verb, key: &[u8], value: &[u8], attributes: Attributes, only: Option<u64>) -> Outcome {
        let store = &self.server.store;
        let counters = self.counters;
        counters.cmd_set.add(1);
        let outcome = match verb {
            Verb::Set => Outcome::of(store.set_with(key, value, attributes).map(Some), value),
            Verb::Add => Outcome::of(store.add(key, value, attributes), value),
            Verb::Replace => Outcome::of(store.replace(key, value, attributes), value),
            Verb::Append => self.extend(key, only, attributes.min_version, |old| [old, value].concat()),
            Verb::Prepend => self.extend(key, only, attributes.min_version, |old| [value, old].concat()),
            // To a store version 0 is "absent"; to memcached it is one that no item has.
            Verb::Cas(0) => match store.contains_key(key) {
                Ok(true) => Outcome::Exists,
                Ok(false) => Outcome::NotFound,
                Err(error) => Outcome::Failed(error.into()),
            },
            Verb::Cas(version) => {
                let expected = Expected::Version(Version(version));
                match store.compare_and_set(key, expected, Change::SetWith(value, attributes)) {
                    Ok(CasOutcome::Stored(stored)) => Outcome::Stored(stored, value.len() as u64),
                    Ok(CasOutcome::Mismatch(_)) => Outcome::Exists,
                    Ok(_) => Outcome::NotFound,
                    Err(error) => Outcome::Failed(error),
                }
            }
        };
        match &outcome {
            Outcome::Stored(..) => drop(self.server.flushed.forget(key)),
            Outcome::NotStored if verb != Verb::Add => self.missed(key),
            Outcome::NotFound => self.missed(key),
            _ => {}
        }
        self.count_put(&outcome, matches!(verb, Verb::Cas(_)) || only.is_some());
        self.log_store(verb, key, value.len(), attributes, &outcome);
        if let Outcome::Stored(stored, _) = &outcome {
            self.note(stored.uid, false);
        }
        outcome
    }

    fn count_put(&self, outcome: &Outcome, versioned: bool) {
        let counters = self.counters;
        match outcome {
            Outcome::Stored(..) => counters.stored.add(1),
            Outcome::Exists => counters.cas_badval.add(1),
            Outcome::NotFound => counters.cas_misses.add(1),
            Outcome::Failed(error) if error.is_no_room() => counters.no_memory.add(1),
            _ => {}
        }
        if versioned && matches!(outcome, Outcome::Stored(..)) {
            counters.cas_hits.add(1);
        }
    }

    fn extend(&self, key: &[u8], only: Option<u64>, least: Version, build: impl Fn(&[u8]) -> Vec<u8>) -> Outcome {
        let mut refused = Outcome::NotStored;
        let mut len = 0;
        let updated = self.server.store.update_with(key, |item| {
            let Some(item) = item else {
                refused = Outcome::NotStored;
                return Update::Keep;
            };
            if only.is_some_and(|version| version != item.metadata.version.0) {
                refused = Outcome::Exists;
                return Update::Keep;
            }
            let value = build(&item.value);
            len = value.len() as u64;
            if !self.fits(key, item.metadata.flags, len) {
                refused = Outcome::TooLarge;
                return Update::Keep;
            }
            Update::SetMinVersion(value, least)
        });
        match updated {
            Ok(Updated::Stored(stored)) => Outcome::Stored(stored, len),
            Ok(_) => refused,
            Err(error) => Outcome::Failed(error),
        }
    }

    /// After a value that could not be taken. With `drops`, what it was to replace goes too: no reader must take the one for the other.
    pub fn refuse_large(&self, verb: Verb, key: &[u8], drops: bool) {
        self.counters.too_large.add(1);
        self.log_store(verb, key, 0, Attributes::NONE, &Outcome::TooLarge);
        if drops {
            // There is nobody to tell: the client is told that its value was refused.
            let _ = self.server.store.delete(key);
        }
    }
}
