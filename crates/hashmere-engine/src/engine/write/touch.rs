//! Expiry of a key that stays as it is: in place where the record has a word for it, else written again.

use crate::engine::feed::report::Happened;
use crate::engine::index::Tree;
use crate::engine::{Current, Decision, Engine, KeyHash, Outcome, Writer};
use crate::error::WriteError;
use crate::types::{Attributes, Item, Ttl, Version};
use hashmere_format::feed::{FeedIntent, Operation};
use hashmere_format::leaf::{LockWord, LOCK_WORD};
use hashmere_format::record::field;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Sets a record's expiry in place, if it has a word for it. `None`: it has none, so it must be written again;
    /// `Some(false)`: the key is absent, or not
    /// at the version that was asked for.
    pub fn touch_in_place(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        deadline: Option<u64>,
        only: Option<Version>,
    ) -> Result<Option<bool>, WriteError> {
        let mut done = Some(false);
        self.mutate(writer, key, kh, |current| {
            done = match current {
                None => Some(false),
                Some(c) if only.is_some_and(|version| version.0 != c.version()) => Some(false),
                Some(c) if c.header.has(field::EXPIRES) || deadline.is_none() => Some(true),
                Some(_) => None,
            };
            Ok(if done == Some(true) { Decision::Touch(deadline) } else { Decision::Keep })
        })?;
        Ok(done)
    }

    /// One store: a reader sees the old expiry or the new one.
    pub(super) fn set_expiry(&self, writer: &mut Writer, root: u64, current: &Current, deadline: Option<u64>) {
        if !current.header.has(field::EXPIRES) {
            return;
        }
        // SYNC(snapshot): as in `commit_draft`.
        let has_feed = self.snapshot().has_feed();
        if has_feed {
            self.note_feed(writer.row, FeedIntent::in_place(Operation::Touch, current.record));
        }
        let word = current.record + current.header.expires_at();
        self.mem.store(word, deadline.unwrap_or(u64::MAX), Ordering::Release);
        if has_feed {
            self.report(writer, root, Happened { operation: Operation::Touch, record: current.record, version: None });
        }
        if let Some(deadline) = deadline {
            let entry = self.entry_of(self.segment_of(current.record));
            self.lower(entry + hashmere_format::segment::at::EXPIRE_MIN, deadline);
            self.raise(entry + hashmere_format::segment::at::EXPIRE_MAX, deadline);
            self.lower(hashmere_format::header::at::NEXT_EXPIRY, deadline);
        }
    }

    /// Writes a value again with an expiry, if it still has this version; it keeps the version.
    pub fn refresh(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        item: &Item,
        deadline: Option<u64>,
    ) -> Result<bool, WriteError> {
        let attributes =
            Attributes { flags: item.metadata.flags, ttl: deadline.map_or(Ttl::Never, Ttl::At), ..Attributes::NONE };
        let draft = self.begin_marked(writer, (key, kh), item.value.len() as u64, attributes, item.metadata.marks)?;
        self.mem.write(draft.value, &item.value);
        self.seal(&draft);
        let outcome = self.mutate(writer, key, kh, |current| {
            let same = current.is_some_and(|c| self.meta_of_found(c).is_same_but_expiry(&item.metadata));
            Ok(if same { Decision::Refresh(draft) } else { Decision::Keep })
        });
        if !matches!(outcome, Ok(Outcome::Stored)) {
            self.abandon(writer, &draft);
        }
        Ok(outcome? == Outcome::Stored)
    }

    /// Whether there may be something under a key that has expired: a look without the lock, which only the lock can
    /// confirm.
    pub fn may_be_expired(&self, key: &[u8], kh: KeyHash) -> bool {
        let Ok(Some(path)) = self.path_of(self.root(), Tree::First, kh.hash) else { return false };
        let place = self.place(path.leaf, kh.hash);
        match self.look(key, kh, kh.hash, place, Tree::First) {
            Ok(Some(found)) => self.has_expired(&found),
            Ok(None) => LockWord(self.mem.load(place.first + LOCK_WORD, Ordering::Relaxed)).has_overflow(),
            Err(_) => false,
        }
    }
}
