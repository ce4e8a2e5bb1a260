//! Storing a whole value: its draft is written first, then committed if the key is as the caller asks.

use crate::engine::write::in_place::Since;
use crate::engine::{Draft, Engine, KeyHash, Outcome, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use crate::types::{Attributes, Ttl};
use hashmere_format::header::limit;
use hashmere_format::record::Head;
use hashmere_mem::{Host, Mem};

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

impl<M: Mem, H: Host> Engine<M, H> {
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

    /// Whether what expires then has expired; `None`: it never does.
    pub fn is_deadline_reached(&self, deadline: Option<u64>) -> bool {
        deadline.is_some_and(|at| at <= self.host.now_ms())
    }

    /// Refuses keys and values that this store cannot hold.
    #[inline(always)]
    pub fn admit(&self, key_len: u64, value_len: u64) -> Result<(), WriteError> {
        if self.layout.has_fixed {
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
        for (what, given, fixed) in [("key", key_len, self.layout.fixed.0), ("value", value_len, self.layout.fixed.1)] {
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
    pub(in crate::engine) fn plain_head(key: &[u8], kh: KeyHash, value_len: u64) -> Head {
        Head { key_len: key.len() as u64, value_len, hash: kh.word(), ..Head::default() }
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
        let (head, least) = self.admit_head(writer, head)?;
        let draft = self.draft(writer, key, kh, head, head.value_len)?;
        Ok(Draft { least, ..draft })
    }

    /// Refuses a record that this store cannot hold. The head without the version that it asks for, and that version.
    #[inline(always)]
    pub(in crate::engine) fn admit_head(&self, writer: &mut Writer, head: Head) -> Result<(Head, u64), WriteError> {
        self.admit(head.key_len, head.value_len)?;
        let least = head.version;
        if least != 0 {
            self.ask_version(writer, least)?;
        }
        Ok((Head { version: 0, ..head }, least))
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
        self.refuse_if_poisoned()?;
        let lookup = self.look_up(key, kh);
        let is_plain = expires.is_none() && flags == 0 && least == 0 && when != When::Absent;
        if let Some(lookup) = lookup.as_ref().filter(|_| is_plain) {
            if self.replace_in_place(writer, lookup, (key, kh), value, Since::Anything)? {
                return Ok(true);
            }
            self.align_for_next(writer, lookup, value)?;
        }
        let draft = self.begin_with(writer, key, kh, head)?;
        self.mem.write(draft.value, value);
        self.seal(&draft);
        let outcome = self.put_with_lookup(writer, key, kh, Draft { ..draft }, when, lookup);
        Ok(self.conclude(writer, (key, kh), draft, outcome)? == Outcome::Stored)
    }

    /// Gives the draft up unless it became the record, and counts it if it did.
    #[inline(always)]
    pub(super) fn conclude(
        &self,
        writer: &Writer,
        (key, kh): (&[u8], KeyHash),
        draft: Draft,
        outcome: Result<Outcome, WriteError>,
    ) -> Result<Outcome, WriteError> {
        if matches!(outcome, Ok(Outcome::Stored)) {
            self.count_set(writer.row, key, kh);
        } else {
            // A copy of its own: a draft that passes by reference to a cold call would live in memory all the way.
            self.abandon(writer, &Draft { ..draft });
        }
        outcome
    }
}
