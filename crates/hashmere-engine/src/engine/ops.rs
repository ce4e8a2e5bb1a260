//! The operations on one key, on top of reading and [`mutate`](Engine::mutate).

use super::fairness::Rounds;
use super::index::Tree;
use super::read::Probe;
use super::{Current, Decision, Draft, Engine, Found, KeyHash, Outcome, Writer};
use crate::error::{ReadError, WriteError};
use crate::fault::{self, Fault};
use crate::types::{Attributes, CasOutcome, Change, Expected, Item, Metadata, Ttl, Uid, Update, Updated, Version};
use hashmere_format::header::limit;
use hashmere_format::record::Head;
use hashmere_format::row::Stat;
use hashmere_format::segment::State;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Values above this are copied under a pin: copying them optimistically could fail again and again.
pub(crate) const PIN_FROM: u64 = 32 << 10;
/// Wall clock values are below this, so that every expiry fits 48 bits.
const TIME_MAX: u64 = (1 << 48) - 1;

/// When a plain store takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Whether it is there or not.
    Always,
    /// If it is not there.
    Absent,
    /// If it is there.
    Present,
}

impl When {
    /// Whether it takes place, given whether the key is there.
    #[inline(always)]
    pub(super) fn allows(self, is_there: bool) -> bool {
        match self {
            When::Always => true,
            When::Absent => !is_there || fault::is(Fault::AbsenceBelieved),
            When::Present => is_there,
        }
    }
}

/// What a read found: the bytes are in the caller's buffer, or the value is long and should be pinned.
pub(crate) enum Fetched<R> {
    Copied(R),
    Long,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Everything about a record except key and value.
    #[inline(always)]
    pub fn meta_of_found(&self, found: &Found) -> Metadata {
        let flags = self.flags_of(found);
        Metadata {
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
    pub fn peek(&self, key: &[u8], kh: KeyHash) -> Result<Option<Metadata>, ReadError> {
        self.read(key, kh, |found| Ok(self.meta_of_found(found)))
    }

    /// Notes that a record was used (cache mode; a hint, set only if it is not).
    #[inline(always)]
    pub fn visit(&self, found: &Found) {
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
        let Ok(mut writer) = self.writer() else { return };
        let root = self.enter(&mut writer);
        if matches!(self.leaf_of(root, tree, tag), Ok(Some(now)) if now == leaf) {
            self.mem.fetch_or(word, bit, Ordering::Relaxed);
        }
        self.mem.store(writer.row + hashmere_format::row::at::ACTIVE, 0, Ordering::Release);
    }

    /// When something with this TTL expires; `None` is never.
    pub fn deadline(&self, ttl: Ttl) -> Option<u64> {
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
    pub fn admit(&self, key_len: u64, value_len: u64) -> Result<(), WriteError> {
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
        Head { expires, flags, version: attributes.min_version.0, ..Self::plain_head(key, kh, value_len) }
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
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        value_len: u64,
        attributes: Attributes,
    ) -> Result<Draft, WriteError> {
        self.begin_with(writer, key, kh, self.head(key, kh, value_len, attributes))
    }

    /// The same with this head, whose version is the least that the record is to get.
    #[inline(always)]
    pub(super) fn begin_with(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        head: Head,
    ) -> Result<Draft, WriteError> {
        self.admit(head.key_len, head.value_len)?;
        let least = head.version;
        if least != 0 {
            self.ask_version(writer, least)?;
        }
        let draft = self.draft(writer, key, kh, Head { version: 0, ..head }, head.value_len)?;
        Ok(Draft { least, ..draft })
    }

    /// Runs a write, and again after making room when the index had none to grow.
    #[inline(always)]
    pub fn with_index_room<R>(
        &self,
        writer: &mut Writer,
        mut write: impl FnMut(&mut Writer) -> Result<R, WriteError>,
    ) -> Result<R, WriteError> {
        loop {
            match write(writer) {
                Err(error) if std::mem::take(&mut writer.index_full) => {
                    if !self.free_for_index(writer)? {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Stores a whole value; `false`: it is not the case that `when` asks for. The particulars are left in the writer.
    #[inline(always)]
    pub fn store(
        &self,
        writer: &mut Writer,
        (key, kh): (&[u8], KeyHash),
        value: &[u8],
        attributes: Attributes,
        when: When,
    ) -> Result<bool, WriteError> {
        let (expires, flags, least) = (self.deadline(attributes.ttl), attributes.flags, attributes.min_version.0);
        match self.store_once(writer, key, kh, value, expires, flags, least, when) {
            Err(error) if writer.index_full => {
                self.store_again(writer, error, key, kh, value, expires, flags, least, when)
            }
            done => done,
        }
    }

    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn store_again(
        &self,
        writer: &mut Writer,
        error: WriteError,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        expires: Option<u64>,
        flags: u32,
        least: u64,
        when: When,
    ) -> Result<bool, WriteError> {
        writer.index_full = false;
        if !self.free_for_index(writer)? {
            return Err(error);
        }
        self.with_index_room(writer, |writer| self.store_once(writer, key, kh, value, expires, flags, least, when))
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn store_once(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        expires: Option<u64>,
        flags: u32,
        least: u64,
        when: When,
    ) -> Result<bool, WriteError> {
        if when != When::Always && self.peek(key, kh)?.is_some() != (when == When::Present) {
            return Ok(false);
        }
        let head =
            Head { expires, flags: flags.into(), version: least, ..Self::plain_head(key, kh, value.len() as u64) };
        let draft = self.begin_with(writer, key, kh, head)?;
        self.mem.write(draft.value, value);
        self.finish(writer, key, kh, draft, when)
    }

    /// Commits a draft whose value is written, as [`store`](Self::store).
    #[inline(always)]
    fn finish(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        draft: Draft,
        when: When,
    ) -> Result<bool, WriteError> {
        self.seal(&draft);
        let outcome = self.put_draft(writer, key, kh, draft, when);
        Ok(self.conclude(writer, draft, outcome)? == Outcome::Stored)
    }

    /// Gives the draft up unless it became the record, and counts it if it did.
    #[inline(always)]
    pub(super) fn conclude(
        &self,
        writer: &Writer,
        draft: Draft,
        outcome: Result<Outcome, WriteError>,
    ) -> Result<Outcome, WriteError> {
        if matches!(outcome, Ok(Outcome::Stored)) {
            self.count_at(writer.row, Stat::Sets, 1);
        } else {
            // A copy of its own: a draft that passes by reference to a cold call would live in memory all the way.
            self.abandon(writer, &Draft { ..draft });
        }
        outcome
    }

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
    pub(crate) fn compare_and_set(
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
            Some(draft) => self.conclude(writer, draft, outcome)?,
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
            (_, None) => Some(CasOutcome::NotFound),
            (_, Some(c)) => (!self.is_as(c, expected)).then_some(CasOutcome::Mismatch(Version(c.version()))),
        }
    }

    /// The same before room is made for a long value: a cache would evict for it, a strict store clean, and all for nothing.
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

    /// Shows the key to `f` and does what it says, provided that nothing changed meanwhile; else again. No lock is held while `f`
    /// runs.
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
            Update::Keep => Some(Updated::Kept),
            Update::Remove => match seen {
                None => Some(Updated::Kept),
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

    /// Stores a value if the key is still as it was seen. With `true` also its expiry must be the same, because it is kept.
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
        let outcome = self.conclude(writer, draft, outcome)?;
        Ok((outcome == Outcome::Stored).then_some(Updated::Stored(writer.stored)))
    }
}
