//! Writes that depend on what the key is: removal, compare-and-set, and updates by a function of the caller's.

use crate::engine::read::fetch::PIN_FROM;
use crate::engine::write::fairness::Rounds;
use crate::engine::{Current, Decision, Engine, KeyHash, Outcome, Writer};
use crate::error::{ReadError, WriteError};
use crate::fault::{self, Fault};
use crate::types::{Attributes, CasOutcome, Change, Expected, Item, Ttl, Update, Updated, Version};
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// Removes a key, if `only` is not given or is its version.
    pub fn remove(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        only: Option<Version>,
    ) -> Result<bool, WriteError> {
        let outcome = self.mutate(writer, key, kh, |current| {
            Ok(match (only, current) {
                (Some(version), Some(c)) if c.version() != version.0 => Decision::Keep,
                (Some(_), None) => Decision::Keep,
                _ => Decision::Remove,
            })
        })?;
        Ok(outcome == Outcome::Removed)
    }

    /// Removes what has expired under a key, as cleaning does in its time; `true`: there was something.
    pub fn expire(&self, writer: &mut Writer, key: &[u8], kh: KeyHash) -> Result<bool, WriteError> {
        Ok(self.mutate(writer, key, kh, |_| Ok(Decision::Expire))? == Outcome::Removed)
    }

    /// Compare, then set or remove.
    pub(crate) fn cas(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        expected: Expected<'_>,
        change: Change<'_>,
    ) -> Result<CasOutcome, WriteError> {
        let expected = match (expected, change) {
            (Expected::Version(Version(0)), Change::Set(_) | Change::SetWith(..)) => Expected::Absent,
            _ => expected,
        };
        let draft = match change {
            Change::Remove => None,
            Change::Set(value) => Some((value, Attributes::NONE)),
            Change::SetWith(value, attributes) => Some((value, attributes)),
        };
        let draft = match draft {
            None => None,
            Some((value, attributes)) => {
                if let Some(refused) = self.refused_early(key, kh, expected, value.len() as u64)? {
                    return Ok(refused);
                }
                let draft = self.begin(writer, key, kh, value.len() as u64, attributes)?;
                self.mem.write(draft.value, value);
                self.seal(&draft);
                Some(draft)
            }
        };
        let mut refused = None;
        let outcome = self.mutate(writer, key, kh, |current| {
            refused = self.refusal(expected, current);
            Ok(match (refused, draft) {
                (Some(_), _) => Decision::Keep,
                (None, Some(draft)) => Decision::Put(draft),
                (None, None) => Decision::Remove,
            })
        });
        let outcome = match draft {
            Some(draft) => self.conclude(writer, (key, kh), draft, outcome)?,
            None => outcome?,
        };
        Ok(match (refused, outcome) {
            (Some(refused), _) => refused,
            (None, Outcome::Stored) => CasOutcome::Stored(writer.stored),
            (None, _) => CasOutcome::Removed,
        })
    }

    /// Why a change is not made, if this is what the key is.
    fn refusal(&self, expected: Expected<'_>, current: Option<&Current>) -> Option<CasOutcome> {
        match (expected, current) {
            (Expected::Absent, None) => None,
            (_, None) => Some(CasOutcome::Absent),
            (_, Some(c)) => (!self.is_as(c, expected)).then_some(CasOutcome::Mismatch(Version(c.version()))),
        }
    }

    /// The same before room is made for a long value: a cache would evict for it, a strict store clean, and all for
    /// nothing.
    fn refused_early(
        &self,
        key: &[u8],
        kh: KeyHash,
        expected: Expected<'_>,
        value_len: u64,
    ) -> Result<Option<CasOutcome>, WriteError> {
        self.admit(key.len() as u64, value_len)?;
        if value_len <= PIN_FROM {
            return Ok(None);
        }
        let seen = self.read(key, kh, |found| Ok(self.refusal(expected, Some(found))))?;
        Ok(seen.unwrap_or_else(|| self.refusal(expected, None)))
    }

    fn is_as(&self, current: &Current, expected: Expected<'_>) -> bool {
        if fault::is(Fault::CasUncompared) {
            return true;
        }
        match expected {
            Expected::Absent => false,
            Expected::Version(version) => current.version() == version.0,
            Expected::Value(value) => value.len() == current.value_len() && self.mem.matches(current.value(), value),
        }
    }

    /// Shows the key to `f` and does what it says, provided that the key did not change in between; else again. No lock
    /// is held while `f` runs.
    pub fn update(
        &self,
        key: &[u8],
        kh: KeyHash,
        item: &mut dyn FnMut() -> Result<Option<Item>, ReadError>,
        f: &mut dyn FnMut(Option<&Item>) -> Result<Update, WriteError>,
    ) -> Result<Updated, WriteError> {
        let mut rounds = Rounds::default();
        loop {
            self.begin_round(rounds, key, kh)?;
            let seen = item()?;
            let update = f(seen.as_ref())?;
            let mut writer = self.writer_for(key, kh)?;
            let done =
                self.end_round(&mut rounds, &mut writer, |writer| self.do_update(writer, key, kh, &seen, update))?;
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }

    /// Does what the function said of what it saw; `None`: that is not there any more.
    fn do_update(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        seen: &Option<Item>,
        update: Update,
    ) -> Result<Option<Updated>, WriteError> {
        let seen = seen.as_ref();
        Ok(match update {
            Update::Keep => Some(Updated::Unchanged),
            Update::Remove => match seen {
                None => Some(Updated::Unchanged),
                Some(item) => self.remove(writer, key, kh, Some(item.metadata.version))?.then_some(Updated::Removed),
            },
            Update::Set(value) => self.edit_seen(writer, key, kh, &value, Version(0), seen)?,
            Update::SetMinVersion(value, least) => self.edit_seen(writer, key, kh, &value, least, seen)?,
            Update::SetWith(value, attributes) => {
                self.replace_seen(writer, key, kh, &value, attributes, seen.map(|i| (i, false)))?
            }
        })
    }

    /// Stores a value with the flags and the expiry that were seen.
    fn edit_seen(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        min_version: Version,
        seen: Option<&Item>,
    ) -> Result<Option<Updated>, WriteError> {
        let ttl = seen.and_then(|i| i.metadata.expires_at_ms).map_or(Ttl::Never, Ttl::At);
        let flags = seen.map_or(0, |i| i.metadata.flags);
        let attributes = Attributes { flags, ttl, min_version };
        self.replace_seen(writer, key, kh, value, attributes, seen.map(|i| (i, true)))
    }

    /// Stores a value if the key is still as it was seen. With `true` also its expiry must be the same, because it is
    /// kept.
    fn replace_seen(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        attributes: Attributes,
        seen: Option<(&Item, bool)>,
    ) -> Result<Option<Updated>, WriteError> {
        self.with_index_room(writer, |writer| self.replace_seen_once(writer, key, kh, value, attributes, seen))
    }

    fn replace_seen_once(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        attributes: Attributes,
        seen: Option<(&Item, bool)>,
    ) -> Result<Option<Updated>, WriteError> {
        let draft = self.begin(writer, key, kh, value.len() as u64, attributes)?;
        self.mem.write(draft.value, value);
        self.seal(&draft);
        let outcome = self.mutate(writer, key, kh, |current| {
            let same = match (seen, current) {
                (None, None) => true,
                (Some((item, keeps)), Some(c)) => {
                    let now = self.meta_of_found(c);
                    now.version == item.metadata.version && (!keeps || now.expires_at_ms == item.metadata.expires_at_ms)
                }
                _ => false,
            };
            Ok(if same { Decision::Put(draft) } else { Decision::Keep })
        });
        let outcome = self.conclude(writer, (key, kh), draft, outcome)?;
        Ok((outcome == Outcome::Stored).then_some(Updated::Stored(writer.stored)))
    }
}
