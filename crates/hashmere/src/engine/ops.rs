//! The operations on one key, on top of reading and [`mutate`](Engine::mutate).

use super::index::Tree;
use super::read::Probe;
use super::{Current, Decision, Draft, Engine, Found, KeyHash, Lane, Outcome};
use crate::canary::{self, Canary};
use crate::error::{ReadError, WriteError};
use crate::types::{Attributes, Cas, Change, Counter, Expected, Item, Meta, Ttl, Uid, Update, Updated, Version};
use hashmere_format::header::limit;
use hashmere_format::record::{field, Head};
use hashmere_format::row::Stat;
use hashmere_format::segment::State;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Values above this are copied under a pin: copying them optimistically could fail again and again.
pub(crate) const PIN_FROM: u64 = 32 << 10;
/// Digits of the largest counter.
const DIGITS: u64 = 20;
/// Wall clock values are below this, so that every expiry fits 48 bits.
const TIME_MAX: u64 = (1 << 48) - 1;

/// When a plain store takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    Absent,
    Present,
}

/// What a counter call makes of a present counter.
pub(crate) enum Tick {
    Set(u64),
    Delete,
}

/// What a read found: the bytes are in the caller's buffer, or the value is long and should be pinned.
pub(crate) enum Fetched<R> {
    Copied(R),
    Long,
}

impl<M: Mem, H: Host> Engine<M, H> {
    #[inline(always)]
    pub(crate) fn meta_of_found(&self, found: &Found) -> Meta {
        let flags = self.flags_of(found);
        Meta {
            value_len: found.outline.value_len,
            flags: flags as u32,
            marks: (flags >> 32) as u32,
            version: Version(found.version()),
            expires_at_ms: self.expiry_of(found),
            uid: Uid(self.uid(found.tree, found.leaf, found.slot_offset, found.slot.tag())),
        }
    }

    /// Copies a value to the end of `buffer` (which keeps its content on a miss), and returns what `also` makes of the
    /// record.
    #[inline(always)]
    pub(crate) fn fetch<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        buffer: &mut Vec<u8>,
        also: impl Fn(&Found) -> R,
    ) -> Result<Option<Fetched<R>>, ReadError> {
        let start = buffer.len();
        match self.probe(key, kh) {
            Probe::At(found, epoch) if found.outline.value_len <= PIN_FROM => {
                self.mem.append_to(found.value(), found.value_len(), buffer);
                self.visit(&found);
                let also = also(&found);
                if self.stood(epoch) {
                    self.count(Stat::Hits, 1);
                    return Ok(Some(Fetched::Copied(also)));
                }
                buffer.truncate(start);
            }
            Probe::Absent => {
                self.count(Stat::Misses, 1);
                return Ok(None);
            }
            _ => {}
        }
        self.fetch_slowly(key, kh, buffer, also)
    }

    #[cold]
    #[inline(never)]
    fn fetch_slowly<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        buffer: &mut Vec<u8>,
        also: impl Fn(&Found) -> R,
    ) -> Result<Option<Fetched<R>>, ReadError> {
        let start = buffer.len();
        let fetched = self.read_by_generation(key, kh, &mut |found| {
            if found.outline.value_len > PIN_FROM {
                return Ok(Fetched::Long);
            }
            buffer.truncate(start);
            self.mem.append_to(found.value(), found.value_len(), buffer);
            self.visit(found);
            Ok(Fetched::Copied(also(found)))
        })?;
        self.count(if fetched.is_some() { Stat::Hits } else { Stat::Misses }, 1);
        Ok(fetched)
    }

    /// Everything about a key but its value.
    #[inline(always)]
    pub(crate) fn peek(&self, key: &[u8], kh: KeyHash) -> Result<Option<Meta>, ReadError> {
        self.read(key, kh, |found| Ok(self.meta_of_found(found)))
    }

    /// Notes that a record was used (cache mode; a hint, set only if it is not).
    #[inline(always)]
    pub(crate) fn visit(&self, found: &Found) {
        if self.shape.cache && !self.read_only {
            let (word, bit) = self.mark(found.leaf, found.slot_offset);
            // Reads right after the write, while its segment is still open, say nothing about whether it will be wanted later (what
            // S3-FIFO's small queue is for).
            let unmarked = || self.mem.load(word, Ordering::Relaxed) & bit == 0;
            if unmarked() && self.state(self.segment_of(found.record)).state != State::Open {
                self.mark_visited(found.tree, found.leaf, found.slot.tag(), word, bit);
            }
        }
    }

    /// Sets a mark, as an operation under the root of now: a leaf of the past may be something else already.
    #[cold]
    fn mark_visited(&self, tree: Tree, leaf: u64, tag: u64, word: u64, bit: u64) {
        let Ok(mut lane) = self.lane() else { return };
        let root = self.enter(&mut lane);
        if matches!(self.leaf_of(root, tree, tag), Ok(Some(now)) if now == leaf) {
            self.mem.fetch_or(word, bit, Ordering::Relaxed);
        }
        self.mem.store(lane.row + hashmere_format::row::at::ACTIVE, 0, Ordering::Release);
    }

    /// When something with this TTL expires; `None` is never.
    pub(crate) fn deadline(&self, ttl: Ttl) -> Option<u64> {
        match ttl {
            Ttl::Never => None,
            Ttl::At(at) => Some(at.min(TIME_MAX)),
            Ttl::After(after) => {
                let ms = u64::try_from(after.as_millis()).unwrap_or(TIME_MAX);
                Some(self.host.now_ms().saturating_add(ms).min(TIME_MAX))
            }
        }
    }

    /// Refuses keys and values that this store cannot hold.
    #[inline(always)]
    pub(crate) fn admit(&self, key_len: u64, value_len: u64) -> Result<(), WriteError> {
        if self.has_fixed {
            self.admit_fixed(key_len, value_len)?;
        }
        let bytes = key_len.saturating_add(value_len);
        if bytes > limit::PAYLOAD {
            return Err(WriteError::TooLarge { bytes, limit: limit::PAYLOAD });
        }
        Ok(())
    }

    #[cold]
    fn admit_fixed(&self, key_len: u64, value_len: u64) -> Result<(), WriteError> {
        for (what, given, fixed) in [("key", key_len, self.fixed.0), ("value", value_len, self.fixed.1)] {
            if let Some(fixed) = fixed.map(u64::from).filter(|f| *f != given) {
                return Err(WriteError::WrongLength { what, given, fixed });
            }
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn head(&self, key: &[u8], kh: KeyHash, value_len: u64, attributes: Attributes) -> Head {
        let (expires, flags) = (self.deadline(attributes.ttl), attributes.flags.into());
        Head { expires, flags, ..Self::plain_head(key, kh, value_len) }
    }

    /// The head of a draft without attributes.
    #[inline(always)]
    fn plain_head(key: &[u8], kh: KeyHash, value_len: u64) -> Head {
        Head { key_len: key.len() as u64, value_len, hash: kh.word(), expires: None, flags: 0, version: 0, dead: 0 }
    }

    /// A draft with head and key written, the value to be filled in.
    #[inline(always)]
    pub(crate) fn begin(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        value_len: u64,
        attributes: Attributes,
    ) -> Result<Draft, WriteError> {
        self.admit(key.len() as u64, value_len)?;
        self.draft(lane, key, kh, self.head(key, kh, value_len, attributes), value_len)
    }

    /// Runs a write, and again after making room when the index had none to grow.
    #[inline(always)]
    pub(crate) fn with_index_room<R>(
        &self,
        lane: &mut Lane,
        mut write: impl FnMut(&mut Lane) -> Result<R, WriteError>,
    ) -> Result<R, WriteError> {
        loop {
            match write(lane) {
                Err(error) if std::mem::take(&mut lane.index_full) => {
                    if !self.free_for_index(lane)? {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Stores a whole value; `false`: it is not the case that `when` asks for. The particulars are left in the lane.
    #[inline(always)]
    pub(crate) fn store(
        &self,
        lane: &mut Lane,
        (key, kh): (&[u8], KeyHash),
        value: &[u8],
        attributes: Attributes,
        when: When,
    ) -> Result<bool, WriteError> {
        let (expires, flags) = (self.deadline(attributes.ttl), attributes.flags);
        match self.store_once(lane, key, kh, value, expires, flags, when) {
            Err(error) if lane.index_full => self.store_again(lane, error, key, kh, value, expires, flags, when),
            done => done,
        }
    }

    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn store_again(
        &self,
        lane: &mut Lane,
        error: WriteError,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        expires: Option<u64>,
        flags: u32,
        when: When,
    ) -> Result<bool, WriteError> {
        lane.index_full = false;
        if !self.free_for_index(lane)? {
            return Err(error);
        }
        self.with_index_room(lane, |lane| self.store_once(lane, key, kh, value, expires, flags, when))
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn store_once(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        expires: Option<u64>,
        flags: u32,
        when: When,
    ) -> Result<bool, WriteError> {
        if when != When::Always && self.peek(key, kh)?.is_some() != (when == When::Present) {
            return Ok(false);
        }
        let value_len = value.len() as u64;
        self.admit(key.len() as u64, value_len)?;
        let head = Head { expires, flags: flags.into(), ..Self::plain_head(key, kh, value_len) };
        let draft = self.draft(lane, key, kh, head, value_len)?;
        self.mem.write(draft.value, value);
        self.finish(lane, key, kh, draft, when)
    }

    /// Commits a draft whose value is written, as [`store`](Self::store).
    #[inline(always)]
    pub(crate) fn finish(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        draft: Draft,
        when: When,
    ) -> Result<bool, WriteError> {
        self.seal(&draft);
        match self.put_draft(lane, key, kh, draft, when) {
            Ok(Outcome::Stored) => {
                self.count_at(lane.row, Stat::Sets, 1);
                Ok(true)
            }
            other => {
                self.abandon(lane, &Draft { ..draft });
                other.map(|_| false)
            }
        }
    }

    /// Gives the draft up unless it became the record, and counts it if it did.
    #[inline(always)]
    fn conclude(&self, lane: &Lane, draft: Draft, outcome: Result<Outcome, WriteError>) -> Result<Outcome, WriteError> {
        if matches!(outcome, Ok(Outcome::Stored)) {
            self.count_at(lane.row, Stat::Sets, 1);
        } else {
            self.abandon(lane, &draft);
        }
        outcome
    }

    /// Removes a key, if `only` is not given or is its version.
    pub(crate) fn remove(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        only: Option<Version>,
    ) -> Result<bool, WriteError> {
        let outcome = self.mutate(lane, key, kh, |current| {
            Ok(match (only, current) {
                (Some(version), Some(c)) if c.version() != version.0 => Decision::Keep,
                (Some(_), None) => Decision::Keep,
                _ => Decision::Remove,
            })
        })?;
        if outcome == Outcome::Removed {
            self.count_at(lane.row, Stat::Deletes, 1);
        }
        Ok(outcome == Outcome::Removed)
    }

    /// Compare, then set or remove.
    pub(crate) fn compare_and_set(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        expected: Expected<'_>,
        change: Change<'_>,
    ) -> Result<Cas, WriteError> {
        let draft = match change {
            Change::Remove => None,
            Change::Set(value) => Some((value, Attributes::NONE)),
            Change::SetWith(value, attributes) => Some((value, attributes)),
        };
        let draft = match draft {
            None => None,
            Some((value, attributes)) => {
                let draft = self.begin(lane, key, kh, value.len() as u64, attributes)?;
                self.mem.write(draft.value, value);
                self.seal(&draft);
                Some(draft)
            }
        };
        let mut refused = None;
        let outcome = self.mutate(lane, key, kh, |current| {
            refused = match (expected, current) {
                (Expected::Absent, None) => None,
                (_, None) => Some(Cas::NotFound),
                (_, Some(c)) => (!self.is_as(c, expected)).then_some(Cas::Mismatch(Version(c.version()))),
            };
            Ok(match (refused, draft) {
                (Some(_), _) => Decision::Keep,
                (None, Some(draft)) => Decision::Put(draft),
                (None, None) => Decision::Remove,
            })
        });
        let outcome = match draft {
            Some(draft) => self.conclude(lane, draft, outcome)?,
            None => outcome?,
        };
        Ok(match (refused, outcome) {
            (Some(refused), _) => refused,
            (None, Outcome::Stored) => Cas::Stored(lane.stored),
            (None, _) => Cas::Removed,
        })
    }

    fn is_as(&self, current: &Current, expected: Expected<'_>) -> bool {
        if canary::is(Canary::CasUncompared) {
            return true;
        }
        match expected {
            Expected::Absent => false,
            Expected::Version(version) => current.version() == version.0,
            Expected::Value(value) => value.len() == current.value_len() && self.mem.matches(current.value(), value),
        }
    }

    /// Shows the key to `f` and does what it says, provided that nothing changed meanwhile; else again. No lock is held while `f`
    /// runs.
    pub(crate) fn update(
        &self,
        key: &[u8],
        kh: KeyHash,
        item: &mut dyn FnMut() -> Result<Option<Item>, ReadError>,
        f: &mut dyn FnMut(Option<&Item>) -> Result<Update, WriteError>,
    ) -> Result<Updated, WriteError> {
        loop {
            let seen = item()?;
            let version = seen.as_ref().map(|i| i.meta.version);
            let update = f(seen.as_ref())?;
            let mut lane = self.lane()?;
            let done = match update {
                Update::Keep => Some(Updated::Kept),
                Update::Remove if seen.is_none() => Some(Updated::Kept),
                Update::Remove => self.remove(&mut lane, key, kh, version)?.then_some(Updated::Removed),
                Update::Set(value) => {
                    let ttl = seen.as_ref().and_then(|i| i.meta.expires_at_ms).map_or(Ttl::Never, Ttl::At);
                    let flags = seen.as_ref().map_or(0, |i| i.meta.flags);
                    self.replace_seen(
                        &mut lane,
                        key,
                        kh,
                        &value,
                        Attributes { flags, ttl },
                        seen.as_ref().map(|i| (i, true)),
                    )?
                }
                Update::SetWith(value, attributes) => {
                    self.replace_seen(&mut lane, key, kh, &value, attributes, seen.as_ref().map(|i| (i, false)))?
                }
            };
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }

    /// Stores a value if the key is still as it was seen. With `true` also its expiry must be the same, because it is kept.
    fn replace_seen(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        attributes: Attributes,
        seen: Option<(&Item, bool)>,
    ) -> Result<Option<Updated>, WriteError> {
        self.with_index_room(lane, |lane| self.replace_seen_once(lane, key, kh, value, attributes, seen))
    }

    fn replace_seen_once(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        attributes: Attributes,
        seen: Option<(&Item, bool)>,
    ) -> Result<Option<Updated>, WriteError> {
        let draft = self.begin(lane, key, kh, value.len() as u64, attributes)?;
        self.mem.write(draft.value, value);
        self.seal(&draft);
        let outcome = self.mutate(lane, key, kh, |current| {
            let same = match (seen, current) {
                (None, None) => true,
                (Some((item, keeps)), Some(c)) => {
                    let now = self.meta_of_found(c);
                    now.version == item.meta.version && (!keeps || now.expires_at_ms == item.meta.expires_at_ms)
                }
                _ => false,
            };
            Ok(if same { Decision::Put(draft) } else { Decision::Keep })
        });
        let outcome = self.conclude(lane, draft, outcome)?;
        Ok((outcome == Outcome::Stored).then_some(Updated::Stored(lane.stored)))
    }

    /// Counts: reads a decimal number, lets `tick` say what becomes of it, writes it back, under the key's lock.
    pub(crate) fn tick(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        counter: Counter,
        tick: impl Fn(u64) -> Tick,
    ) -> Result<Option<u64>, WriteError> {
        let wide = match self.fixed.1 {
            Some(len) => u64::from(len),
            None => DIGITS,
        };
        self.admit(key.len() as u64, wide)?;
        let widest = Head {
            expires: Some(0),
            flags: 1,
            key_len: key.len() as u64,
            value_len: wide,
            hash: kh.word(),
            ..Head::default()
        };
        let room = self.draft(lane, key, kh, widest, wide)?;
        let mut value = None;
        let mut early = None;
        if canary::is(Canary::CountEarly) {
            early = self.read(key, kh, |found| Ok(self.number(found).ok()))?.flatten();
        }
        let outcome = self.mutate(lane, key, kh, |current| {
            let (next, head) = match current {
                Some(c) => match tick(early.map_or_else(|| self.number(c), Ok)?) {
                    Tick::Delete => {
                        value = Some(0);
                        return Ok(Decision::Remove);
                    }
                    Tick::Set(next) => (next, self.head_of(c)),
                },
                None => match counter.initial {
                    None => return Ok(Decision::Keep),
                    Some(initial) => (initial, self.head(key, kh, 0, counter.attributes)),
                },
            };
            value = Some(next);
            let mut digits = [0u8; DIGITS as usize];
            let text = self.digits(next, &mut digits)?;
            let head = Head { value_len: text.len() as u64, dead: 0, version: 0, ..head };
            let draft = self.write_head(room.offset, key, kh, head, room.is_large());
            self.mem.write(draft.value, text);
            self.seal(&draft);
            Ok(Decision::Put(draft))
        });
        let outcome = self.conclude(lane, room, outcome)?;
        if outcome == Outcome::Removed {
            self.count_at(lane.row, Stat::Deletes, 1);
        }
        Ok(value)
    }

    fn digits<'a>(&self, mut number: u64, buffer: &'a mut [u8; DIGITS as usize]) -> Result<&'a [u8], WriteError> {
        let mut at = buffer.len();
        loop {
            at -= 1;
            buffer[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        if let Some(fixed) = self.fixed.1.map(|f| f as usize) {
            let given = buffer.len() - at;
            if fixed > buffer.len() || given > fixed {
                return Err(WriteError::WrongLength { what: "value", given: given as u64, fixed: fixed as u64 });
            }
            // In a store of fixed lengths a counter is filled up with zeros in front.
            let start = buffer.len() - fixed;
            buffer[start..at].fill(b'0');
            at = start;
        }
        Ok(&buffer[at..])
    }

    /// The number that a value spells. Trailing spaces are allowed, as memcached leaves them after a decrement.
    fn number(&self, current: &Current) -> Result<u64, WriteError> {
        let mut text = [0u8; 32];
        let len = current.value_len();
        if len == 0 || len > text.len() {
            return Err(WriteError::NotANumber);
        }
        self.mem.read(current.value(), &mut text[..len]);
        let text = text[..len].trim_ascii_end();
        if text.is_empty() {
            return Err(WriteError::NotANumber);
        }
        text.iter().try_fold(0u64, |number, byte| {
            let digit = byte.checked_sub(b'0').filter(|d| *d < 10).ok_or(WriteError::NotANumber)?;
            number.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit))).ok_or(WriteError::NotANumber)
        })
    }

    /// Sets a record's expiry where it stands, if it has a word for it. `None`: it has none, so it must be written anew;
    /// `Some(false)`: the key is absent, or not
    /// at the version that was asked for.
    pub(crate) fn touch_in_place(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        deadline: Option<u64>,
        only: Option<Version>,
    ) -> Result<Option<bool>, WriteError> {
        let mut done = Some(false);
        self.mutate(lane, key, kh, |current| {
            done = match current {
                None => Some(false),
                Some(c) if only.is_some_and(|version| version.0 != c.version()) => Some(false),
                Some(c) if c.outline.has(field::EXPIRES) || deadline.is_none() => {
                    self.set_expiry(c, deadline);
                    Some(true)
                }
                Some(_) => None,
            };
            Ok(Decision::Keep)
        })?;
        Ok(done)
    }

    /// One store: a reader sees the old expiry or the new one.
    fn set_expiry(&self, current: &Current, deadline: Option<u64>) {
        if !current.outline.has(field::EXPIRES) {
            return;
        }
        let word = current.record + current.outline.expires_at();
        self.mem.store(word, deadline.unwrap_or(u64::MAX), Ordering::Release);
        if let Some(deadline) = deadline {
            let entry = self.entry_of(self.segment_of(current.record));
            self.lower(entry + hashmere_format::segment::at::EXPIRE_MIN, deadline);
            self.raise(entry + hashmere_format::segment::at::EXPIRE_MAX, deadline);
            self.lower(hashmere_format::header::at::NEXT_EXPIRY, deadline);
        }
    }

    /// Writes a value again with an expiry, if it still has this version; it keeps the version.
    pub(crate) fn refresh(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        item: &Item,
        deadline: Option<u64>,
    ) -> Result<bool, WriteError> {
        let attributes = Attributes { flags: item.meta.flags, ttl: deadline.map_or(Ttl::Never, Ttl::At) };
        let draft = self.begin_marked(lane, (key, kh), item.value.len() as u64, attributes, item.meta.marks)?;
        self.mem.write(draft.value, &item.value);
        self.seal(&draft);
        let outcome = self.mutate(lane, key, kh, |current| {
            let same = current.is_some_and(|c| self.meta_of_found(c).is_same_but_expiry(&item.meta));
            Ok(if same { Decision::Refresh(draft) } else { Decision::Keep })
        });
        if !matches!(outcome, Ok(Outcome::Stored)) {
            self.abandon(lane, &draft);
        }
        Ok(outcome? == Outcome::Stored)
    }
}
