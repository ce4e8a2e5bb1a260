//! Behind a commit, with its keys locked: the entry that says what happened.

use crate::engine::client::writer_state::FeedCursor;
use crate::engine::feed::publish::GAP;
use crate::engine::feed::Place;
use crate::engine::{Engine, Writer};
use crate::fault::{self, Fault};
use hashmere_format::feed::{bit, ChangeHead, EntryHead, FeedIntent, Operation, ENTRY_HEAD};
use hashmere_format::header::RootWord;
use hashmere_format::record::{field, RecordHeader};
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// A change that took place.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Happened {
    pub(in crate::engine) operation: Operation,
    /// The record that the key has now; of a removal, the one that it had.
    pub(in crate::engine) record: u64,
    /// The version that it gave the key; `None`: that of the record.
    pub(in crate::engine) version: Option<u64>,
}

/// Bytes of a key and of a value that lies before it.
const SHORT: usize = 127 + 8;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Before a commit: what a repair has to report if this client crashes behind it.
    #[inline(always)]
    pub(in crate::engine) fn note_feed(&self, row: u64, intent: FeedIntent) {
        if !fault::is(Fault::FeedUnsaid) {
            // SYNC(intent): in force with the intent of the commit, or with this store where there is none.
            self.mem.store(row + row::at::FEED, intent.0, Ordering::Release);
        }
    }

    /// Behind a commit.
    #[inline(never)]
    pub(in crate::engine) fn report(&self, writer: &mut Writer, root: u64, happened: Happened) {
        if !self.report_short(writer, root, &happened) {
            self.report_all(writer.slot, &mut writer.feed, root, std::iter::once(happened));
        }
        // Release: not before the entry is published.
        self.mem.store(writer.row + row::at::FEED, 0, Ordering::Release);
    }

    /// Most entries, straight through: one change, and room in the writer's chunk. `false`: nothing was done.
    #[inline(always)]
    fn report_short(&self, writer: &mut Writer, root: u64, happened: &Happened) -> bool {
        let Some(place) = self.feed_place_for(&writer.feed) else { return false };
        let Some((head, header)) = self.change_head(happened, place.geometry.values) else { return false };
        let bytes = ENTRY_HEAD + head.bytes();
        // Of another feed it has no room.
        let entry = writer.feed.next;
        let fits = entry + bytes <= writer.feed.end && bytes <= place.geometry.entry_max();
        if writer.feed.place.word != place.word || !fits {
            return false;
        }
        writer.feed.next = entry + bytes;
        let at = place.base + entry;
        self.write_entry_head(at, self.entry_head(root, bytes, 1));
        self.write_change(at + ENTRY_HEAD, happened.record, header, &head);
        self.publish_entry(&place, entry);
        true
    }

    /// One entry for all of them.
    #[inline(always)]
    pub(in crate::engine) fn report_all(
        &self,
        slot: u32,
        cursor: &mut FeedCursor,
        root: u64,
        happened: impl Iterator<Item = Happened> + Clone,
    ) {
        let Some(place) = self.feed_place() else { return };
        let mut values = place.geometry.values;
        loop {
            let (mut bytes, mut changes) = (ENTRY_HEAD, 0);
            for change in happened.clone() {
                let Some((head, _)) = self.change_head(&change, values) else { continue };
                bytes += head.bytes();
                changes += 1;
            }
            if bytes > place.geometry.entry_max() {
                if std::mem::take(&mut values) {
                    continue;
                }
                return self.publish_entry(&place, GAP);
            }
            let Some(entry) = self.feed_room(&place, slot, cursor, bytes) else {
                return self.publish_entry(&place, GAP);
            };
            self.write_changes(&place, entry, self.entry_head(root, bytes, changes), happened, values);
            return self.publish_entry(&place, entry);
        }
    }

    #[inline(always)]
    fn entry_head(&self, root: u64, bytes: u64, changes: u64) -> EntryHead {
        EntryHead {
            words: bytes / 8,
            changes,
            ts_ms: self.host.coarse_ms(),
            generation: RootWord::unpack(root).generation as u32,
            origin: self.access.origin,
        }
    }

    #[inline(always)]
    fn write_entry_head(&self, at: u64, head: EntryHead) {
        for (index, word) in head.pack().into_iter().enumerate() {
            self.mem.store(at + 8 * index as u64, word, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn write_change(&self, at: u64, record: u64, header: RecordHeader, head: &ChangeHead) {
        head.write(|index, word| self.mem.store(at + 8 * index, word, Ordering::Relaxed));
        self.copy_payload(record, header, head, at + 8 * head.words());
    }

    fn write_changes(
        &self,
        place: &Place,
        entry: u64,
        head: EntryHead,
        happened: impl Iterator<Item = Happened>,
        values: bool,
    ) {
        let mut at = place.base + entry;
        let end = at + 8 * head.words;
        self.write_entry_head(at, head);
        at += ENTRY_HEAD;
        for change in happened {
            let Some((head, header)) = self.change_head(&change, values) else { continue };
            // As it was measured, or what is in the file changes under its locks.
            if at + head.bytes() > end {
                return;
            }
            self.write_change(at, change.record, header, &head);
            at += head.bytes();
        }
    }

    /// What is said of a change without key and value. `None`: the record cannot be one.
    #[inline(always)]
    fn change_head(&self, change: &Happened, values: bool) -> Option<(ChangeHead, RecordHeader)> {
        let header = self.header(change.record)?;
        let (mut expires, mut flags, mut hash) = (None, 0, None);
        if header.has(field::EXPIRES | field::FLAGS | field::HASHED) {
            let load = |at: u64| self.mem.load(change.record + at, Ordering::Relaxed);
            // All ones: none.
            expires = header.has(field::EXPIRES).then(|| load(header.expires_at())).filter(|at| *at != u64::MAX);
            flags = if header.has(field::FLAGS) { load(header.flags_at()) } else { 0 };
            hash = header.has(field::HASHED).then(|| load(header.hash_at()));
        }
        let has_value = !change.operation.removes();
        let bits = match (has_value, values) {
            (true, true) => bit::VALUE,
            (true, false) => bit::OMITTED,
            (false, _) => 0,
        };
        let head = ChangeHead {
            operation: change.operation,
            version: change.version.unwrap_or(header.version()),
            key_len: header.key_len as u32,
            value_len: if has_value { header.value_len as u32 } else { 0 },
            expires: expires.filter(|_| has_value),
            flags: if has_value { flags } else { 0 },
            hash,
            bits,
        };
        Some((head, header))
    }

    /// Key and value, one behind the other.
    #[inline(always)]
    fn copy_payload(&self, record: u64, header: RecordHeader, head: &ChangeHead, to: u64) {
        if !header.is_value_first() {
            // The key begins at a word, and the record is padded.
            return self.mem.copy(record + header.key_at(), to, head.payload().next_multiple_of(8));
        }
        if header.value_len == 8 && header.key_len % 8 == 0 {
            self.mem.copy(record + header.key_at(), to, header.key_len);
            if head.payload() > header.key_len {
                let value = self.mem.load(record + header.value_at(), Ordering::Relaxed);
                self.mem.store(to + header.key_len, value, Ordering::Relaxed);
            }
            return;
        }
        let mut bytes = [0; SHORT];
        let (key, value) = bytes.split_at_mut((header.key_len as usize).min(SHORT));
        let value_len = (head.payload() as usize - key.len()).min(value.len());
        self.mem.read(record + header.key_at(), key);
        self.mem.read(record + header.value_at(), &mut value[..value_len]);
        let len = key.len() + value_len;
        self.mem.write(to, &bytes[..len]);
    }
}
