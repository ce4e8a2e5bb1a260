//! What a store must do, on a `HashMap`.

use super::{Action, Hashed, Numbered, Outcome, To, Want};
use crate::limits::wall_ms;
use hashmere::{Attributes, Counter, Ttl, Update};
use std::collections::{HashMap, HashSet};

/// How far from the model's idea an expiry may be that was given relative to now.
const CLOCK_SLACK_MS: u64 = 120_000;

/// When an entry expires; entries that have expired are not in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    Never,
    Exactly(u64),
    About(u64),
}

impl Expiry {
    pub(crate) fn allows(self, expires_at_ms: Option<u64>) -> bool {
        match self {
            Expiry::Never => expires_at_ms.is_none(),
            Expiry::Exactly(ms) => expires_at_ms == Some(ms),
            Expiry::About(ms) => expires_at_ms.is_some_and(|at| at.abs_diff(ms) <= CLOCK_SLACK_MS),
        }
    }
}

/// A key's value and what is attached to it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub value: Vec<u8>,
    pub flags: u32,
    pub expiry: Expiry,
    /// The last version that the store reported, and whether the entry has changed since.
    pub version: u64,
    pub changed: bool,
    /// The UID that the store reported, once it has.
    pub uid: Option<u32>,
}

/// All keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub entries: HashMap<Vec<u8>, Entry>,
    /// Keys that expired: the store may still count them, but never return them.
    pub ghosts: HashSet<Vec<u8>>,
    /// The largest version each key ever had.
    pub newest: HashMap<Vec<u8>, u64>,
}

impl Model {
    /// Does the action; what it must return.
    pub(crate) fn apply(&mut self, key: &[u8], action: &Action) -> Outcome {
        let entry = self.entries.get(key);
        let created = entry.is_none();
        match action {
            Action::Get | Action::GetInto | Action::View => self.value(key),
            Action::GetItem => self.item(key),
            Action::Exists => Outcome::Flag(!created),
            Action::ValueLen => entry.map_or(Outcome::Absent, |e| Outcome::Length(e.value.len() as u64)),
            Action::Ttl => entry.map_or(Outcome::Absent, |e| Outcome::Expires(e.expiry != Expiry::Never)),
            Action::Set(value) => self.put(key, value, Attributes::NONE),
            Action::SetWith(value, attributes) => self.put(key, value, *attributes),
            Action::Add(value, attributes) if created => self.put(key, value, *attributes),
            Action::Add(..) => Outcome::Present,
            Action::Replace(value, attributes) if !created => self.put(key, value, *attributes),
            Action::Replace(..) => Outcome::Absent,
            Action::Append(tail) => self.edit(key, |value| value.extend_from_slice(tail)),
            Action::Prepend(head) => self.edit(key, |value| *value = [head, &value[..]].concat()),
            Action::Reserve(value, Some(attributes)) => self.put(key, value, *attributes),
            Action::Reserve(_, None) => Outcome::Abandoned,
            Action::Delete => Outcome::Flag(self.remove(key)),
            Action::Take => {
                let value = self.value(key);
                self.remove(key);
                value
            }
            Action::Cas(want, to) => self.cas(key, want, to),
            Action::Update(update) => self.update(key, update),
            Action::Edit(tail) => {
                let mut value = entry.map(|e| e.value.clone()).unwrap_or_default();
                value.extend_from_slice(tail);
                self.update(key, &Update::Set(value))
            }
            Action::Incr(by, counter) => self.count(key, counter, |n| Some(n.wrapping_add(*by))),
            Action::Decr(by, counter) => self.count(key, counter, |n| Some(n.saturating_sub(*by))),
            Action::IncrBy(by, counter) if *by < 0 => {
                self.count(key, counter, |n| Some(n.saturating_sub(by.unsigned_abs())))
            }
            Action::IncrBy(by, counter) => self.count(key, counter, |n| Some(n.wrapping_add(*by as u64))),
            Action::IncrSigned(by, counter) => {
                self.count_as(key, counter, signed, |n| n.checked_add(*by), Outcome::Signed)
            }
            Action::IncRef(0) if created => Outcome::Number(0),
            Action::IncRef(by) => self.count(key, &Counter::or_create(*by), |n| n.checked_add(*by)),
            Action::DecRef(by) => {
                let outcome = self.count(key, &Counter::EXISTING, |n| Some(n.saturating_sub(*by)));
                if outcome == Outcome::Number(0) {
                    self.remove(key);
                }
                outcome
            }
            Action::Touch(ttl) => Outcome::Flag(self.touch(key, *ttl)),
            Action::GetAndTouch(ttl) => {
                let item = self.item(key);
                self.touch(key, *ttl);
                item
            }
            Action::At(numbered) => self.numbered(key, numbered),
            Action::Hashed(hashed) => self.hashed(key, hashed),
        }
    }

    /// Removes a key; whether it was there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        self.entries.remove(key).is_some()
    }

    /// Writes a key. The outcome tells whether it was there before.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8], attributes: Attributes) -> Outcome {
        let old = self.entries.remove(key);
        self.ghosts.remove(key);
        let created = old.is_none();
        let uid = old.as_ref().and_then(|entry| entry.uid);
        let version = old.map_or(0, |entry| entry.version);
        let flags = attributes.flags;
        let entry = Entry { value: value.to_vec(), flags, expiry: Expiry::Never, version, changed: true, uid };
        self.entries.insert(key.to_vec(), entry);
        self.expire(key, attributes.ttl);
        Outcome::Stored { created }
    }

    /// Sets the expiry of a present key; past ones remove it.
    fn expire(&mut self, key: &[u8], ttl: Ttl) {
        let now = wall_ms();
        let expiry = match ttl {
            Ttl::Never => Expiry::Never,
            Ttl::After(time) => Expiry::About(now + time.as_millis() as u64),
            Ttl::At(ms) => Expiry::Exactly(ms),
        };
        match expiry {
            Expiry::Exactly(ms) | Expiry::About(ms) if ms <= now => {
                self.entries.remove(key);
                self.ghosts.insert(key.to_vec());
            }
            _ => {
                if let Some(entry) = self.entries.get_mut(key) {
                    entry.expiry = expiry;
                }
            }
        }
    }

    fn value(&self, key: &[u8]) -> Outcome {
        self.entries.get(key).map_or(Outcome::Absent, |entry| Outcome::Value(entry.value.clone()))
    }

    fn item(&self, key: &[u8]) -> Outcome {
        self.entries.get(key).map_or(Outcome::Absent, |entry| Outcome::Item(entry.value.clone(), entry.flags))
    }

    /// Changes the value of a present key, which keeps its flags and expiry.
    fn edit(&mut self, key: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Outcome {
        let Some(entry) = self.entries.get_mut(key) else { return Outcome::Absent };
        change(&mut entry.value);
        entry.changed = true;
        Outcome::Stored { created: false }
    }

    fn cas(&mut self, key: &[u8], want: &Want, to: &To) -> Outcome {
        let entry = self.entries.get(key);
        let holds = match (want, entry) {
            (Want::Absent, None) | (Want::ThisVersion | Want::ThisValue, Some(_)) => true,
            // The version that an absent key has: something may be stored there, and there is nothing to remove.
            (Want::ThisVersion, None) => !matches!(to, To::Remove),
            (Want::Value(value), Some(entry)) => entry.value == *value,
            _ => false,
        };
        match (holds, to) {
            (false, _) if entry.is_some() => Outcome::Mismatch,
            (false, _) => Outcome::Absent,
            (true, To::Set(value)) => self.put(key, value, Attributes::NONE),
            (true, To::SetWith(value, attributes)) => self.put(key, value, *attributes),
            (true, To::Remove) => {
                self.remove(key);
                Outcome::Removed
            }
        }
    }

    fn update(&mut self, key: &[u8], update: &Update) -> Outcome {
        match update {
            Update::Keep => Outcome::Kept,
            Update::Set(value) | Update::SetMinVersion(value, _) if self.entries.contains_key(key) => {
                self.edit(key, |old| old.clone_from(value))
            }
            Update::Set(value) | Update::SetMinVersion(value, _) => self.put(key, value, Attributes::NONE),
            Update::SetWith(value, attributes) => self.put(key, value, *attributes),
            Update::Remove if self.remove(key) => Outcome::Removed,
            Update::Remove => Outcome::Kept,
        }
    }

    fn count(&mut self, key: &[u8], counter: &Counter, change: impl FnOnce(u64) -> Option<u64>) -> Outcome {
        self.count_as(key, counter, decimal, change, Outcome::Number)
    }

    /// `change` says what becomes of a number; `None`: its kind does not have it.
    fn count_as<N: Copy + ToString>(
        &mut self,
        key: &[u8],
        counter: &Counter<N>,
        parse: fn(&[u8]) -> Option<N>,
        change: impl FnOnce(N) -> Option<N>,
        outcome: fn(N) -> Outcome,
    ) -> Outcome {
        let Some(entry) = self.entries.get_mut(key) else {
            let Some(initial) = counter.initial else { return Outcome::Absent };
            self.put(key, initial.to_string().as_bytes(), counter.attributes);
            return outcome(initial);
        };
        let Some(number) = parse(&entry.value) else { return Outcome::NotANumber };
        let Some(after) = change(number) else { return Outcome::Overflow };
        entry.value = after.to_string().into_bytes();
        entry.changed = true;
        outcome(after)
    }

    fn touch(&mut self, key: &[u8], ttl: Ttl) -> bool {
        let present = self.entries.contains_key(key);
        if present {
            self.expire(key, ttl);
        }
        if let Some(entry) = self.entries.get_mut(key) {
            entry.changed = true;
        }
        present
    }

    fn numbered(&mut self, key: &[u8], numbered: &Numbered) -> Outcome {
        if !self.entries.contains_key(key) {
            return Outcome::Absent;
        }
        match numbered {
            Numbered::GetByUid | Numbered::GetById => self.item(key),
            Numbered::GetInto => self.value(key),
            Numbered::Set(value) => self.put(key, value, Attributes::NONE),
            Numbered::Update(update) => self.update(key, update),
            Numbered::Delete => {
                self.remove(key);
                Outcome::Removed
            }
            Numbered::GetStale => {
                self.remove(key);
                Outcome::Absent
            }
            Numbered::SetStale(_) => {
                self.remove(key);
                Outcome::Stale
            }
        }
    }

    fn hashed(&mut self, key: &[u8], hashed: &Hashed) -> Outcome {
        match hashed {
            Hashed::Get => self.apply(key, &Action::Get),
            Hashed::GetInto => self.apply(key, &Action::GetInto),
            Hashed::Exists => self.apply(key, &Action::Exists),
            Hashed::Set(value) => self.apply(key, &Action::Set(value.clone())),
            Hashed::Add(value) => self.apply(key, &Action::Add(value.clone(), Attributes::NONE)),
            Hashed::Delete => self.apply(key, &Action::Delete),
            Hashed::Incr(by, counter) => self.apply(key, &Action::Incr(*by, *counter)),
            Hashed::Edit(tail) => self.apply(key, &Action::Edit(tail.clone())),
            Hashed::SetByUid(value) => self.numbered(key, &Numbered::Set(value.clone())),
            Hashed::DeleteByUid => self.numbered(key, &Numbered::Delete),
            Hashed::OtherHash => Outcome::Absent,
        }
    }
}

/// The same with a minus, of 64 bits with a sign.
fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) if text.len() <= 32 => 0i64.checked_sub_unsigned(decimal(digits)?),
        Some(_) => None,
        None => decimal(text)?.try_into().ok(),
    }
}

/// A decimal number below 2^64: digits only, and white space behind them, which memcached allows, too.
fn decimal(text: &[u8]) -> Option<u64> {
    const LEN_MAX: usize = 32;
    let digits = text.trim_ascii_end();
    let is_number = text.len() <= LEN_MAX && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}
