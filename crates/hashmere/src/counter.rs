//! Counting.

use crate::key::Name;
use crate::{Counter, Item, Key, Store, Update, WriteError};
use hashmere_engine::{step, Address, CounterKind, FractionStep, Signed, Tick, Unsigned};

impl Store {
    /// Adds to a counter, wrapping at 2^64; returns its new value. `None`: the key is missing and `counter` does not
    /// say to create it.
    ///
    /// A counter is a key whose value is a decimal number: what `set` stored can be counted with, and `get` reads the
    /// text.
    ///
    /// # Errors
    /// [`WriteError::NotANumber`], else as [`set`](Self::set).
    pub fn incr<'k>(&self, key: impl Into<Key<'k>>, by: u64, counter: Counter) -> Result<Option<u64>, WriteError> {
        self.tick(self.name(key), &Unsigned, counter, |n| Ok(Tick::Set(n.wrapping_add(by))))
    }

    /// Subtracts from a counter, stopping at zero: see [`incr`](Self::incr).
    ///
    /// # Errors
    /// As [`incr`](Self::incr).
    pub fn decr<'k>(&self, key: impl Into<Key<'k>>, by: u64, counter: Counter) -> Result<Option<u64>, WriteError> {
        self.tick(self.name(key), &Unsigned, counter, |n| Ok(Tick::Set(n.saturating_sub(by))))
    }

    /// Adds a signed number to a counter: below zero it stops at zero, beyond 2^64 it wraps.
    ///
    /// # Errors
    /// As [`incr`](Self::incr).
    pub fn incr_by<'k>(&self, key: impl Into<Key<'k>>, by: i64, counter: Counter) -> Result<Option<u64>, WriteError> {
        self.tick(self.name(key), &Unsigned, counter, |n| Ok(Tick::Set(step(n, by))))
    }

    /// Adds to a signed counter: a decimal number of 64 bits with a sign, which may be below zero. Else as
    /// [`incr`](Self::incr).
    ///
    /// # Errors
    /// [`WriteError::NotANumber`]; [`WriteError::Overflow`] if the sum is below -2^63 or above 2^63 - 1; else as
    /// [`set`](Self::set).
    pub fn incr_signed<'k>(
        &self,
        key: impl Into<Key<'k>>,
        by: i64,
        counter: Counter<i64>,
    ) -> Result<Option<i64>, WriteError> {
        let add = |n: i64| n.checked_add(by).map(Tick::Set).ok_or(WriteError::Overflow);
        self.tick(self.name(key), &Signed, counter, add)
    }

    /// Adds to a decimal fraction, exactly: the text becomes the sum of the value and the shortest text of `by`, with
    /// at most 17 digits behind the point, no exponent and no zeros at the end, as by Redis' `INCRBYFLOAT`. Returns the
    /// number next to that. Else as [`incr`](Self::incr).
    ///
    /// # Errors
    /// [`WriteError::NotANumber`]; [`WriteError::Overflow`] if the sum is beyond the numbers of an `f64`;
    /// [`WriteError::InvalidState`] if the step or the initial value is NaN or infinite; else as [`set`](Self::set).
    pub fn incr_float<'k>(
        &self,
        key: impl Into<Key<'k>>,
        by: f64,
        counter: Counter<f64>,
    ) -> Result<Option<f64>, WriteError> {
        let step = FractionStep::new(by, counter.initial)?;
        let engine = self.engine();
        let (mut now, mut refused) = (None, None);
        let mut add = |item: Option<&Item>| {
            (now, refused) = (None, None);
            match step.next(item.map(|item| &item.value[..])) {
                Ok(Some((text, number))) => {
                    now = Some(number);
                    let text = engine.fraction_text(text);
                    match item {
                        Some(_) => Update::SetMinVersion(text, counter.attributes.min_version),
                        None => Update::SetWith(text, counter.attributes),
                    }
                }
                Ok(None) => Update::Keep,
                Err(error) => {
                    refused = Some(error);
                    Update::Keep
                }
            }
        };
        let updated = match self.name(key) {
            Name::Key(key, kh) => self.shared.update_hashed(key, kh, add),
            Name::At(at) => self.update_entry(at, &mut add),
        };
        match (refused, updated) {
            (Some(error), Ok(_)) => Err(error),
            (None, Ok(_)) => Ok(now),
            (_, Err(WriteError::Stale)) if counter.initial.is_none() => Ok(None),
            (_, Err(error)) => Err(error),
        }
    }

    /// Counts references: adds them, and creates the key with them if it is absent. Returns the count. Of 0 nothing is
    /// changed.
    ///
    /// # Errors
    /// [`WriteError::Overflow`] if there were more than 2^64 - 1, else as [`incr`](Self::incr).
    pub fn inc_ref<'k>(&self, key: impl Into<Key<'k>>, by: u64) -> Result<u64, WriteError> {
        let counter = if by == 0 { Counter::EXISTING } else { Counter::or_create(by) };
        let add = |n: u64| n.checked_add(by).map(Tick::Set).ok_or(WriteError::Overflow);
        Ok(self.tick(self.name(key), &Unsigned, counter, add)?.unwrap_or(by))
    }

    /// Gives references back: subtracts them, and deletes the key when that leaves none. Returns the count; `None`: the
    /// key is absent.
    ///
    /// # Errors
    /// As [`incr`](Self::incr).
    pub fn dec_ref<'k>(&self, key: impl Into<Key<'k>>, by: u64) -> Result<Option<u64>, WriteError> {
        self.tick(self.name(key), &Unsigned, Counter::EXISTING, |n| {
            Ok(match n.saturating_sub(by) {
                0 => Tick::Delete,
                rest => Tick::Set(rest),
            })
        })
    }

    #[inline]
    fn tick<K: CounterKind>(
        &self,
        name: Name<'_>,
        kind: &K,
        counter: Counter<K::Number>,
        tick: impl Fn(K::Number) -> Result<Tick<K::Number>, WriteError>,
    ) -> Result<Option<K::Number>, WriteError> {
        match name {
            Name::Key(key, kh) => Ok(self.shared.count((key, kh), kind, counter, tick)?.map(|(number, _)| number)),
            Name::At(at) => self.tick_entry(at, kind, counter, tick),
        }
    }

    #[cold]
    fn tick_entry<K: CounterKind>(
        &self,
        at: Address,
        kind: &K,
        counter: Counter<K::Number>,
        tick: impl Fn(K::Number) -> Result<Tick<K::Number>, WriteError>,
    ) -> Result<Option<K::Number>, WriteError> {
        let mut now = None;
        let ticked = self.shared.update_with_at(at, |item| {
            Ok(match tick(kind.parse(&item.value, false).ok_or(WriteError::NotANumber)?)? {
                Tick::Delete => {
                    now = Some(kind.zero());
                    Update::Remove
                }
                Tick::Set(number) => {
                    now = Some(number);
                    Update::SetMinVersion(self.engine().counter_text(kind, number)?, counter.attributes.min_version)
                }
            })
        });
        match ticked {
            Err(WriteError::Stale) if counter.initial.is_none() => Ok(None),
            ticked => ticked.map(|_| now),
        }
    }
}
