//! Copying a snapshot into another store: first what the index leads to, then what was kept.

use crate::engine::backup::retained::Take;
use crate::engine::backup::snapshot::HeldSnapshot;
use crate::engine::read::fetch::PIN_FROM;
use crate::engine::{corrupt, Engine, Writer};
use crate::error::{BackupError, WriteError};
use crate::fault::{self, Fault};
use hashmere_format::header::RootWord;
use hashmere_format::leaf::Slot;
use hashmere_format::record::{Head, VERSION_MAX, VERSION_SHIFT};
use hashmere_format::row;
use hashmere_format::snapshot::Snapshot;
use hashmere_format::uid::Scan;
use hashmere_mem::{Host, Mem};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Attempts at one entry: each failure means that it changed while it was read.
const ATTEMPTS: u32 = 100_000;
/// Bytes of a long value copied at a time.
const CHUNK: u64 = 1 << 20;
/// Steps of the scan between two loads of the snapshot word, and between two reports of progress.
const REPORT: u64 = if cfg!(test) { 16 } else { 4096 };

/// The result of a copy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copied {
    /// Keys in it.
    pub(crate) items: u64,
    /// A cache that was full dropped some of what the snapshot had.
    pub(crate) thinned: bool,
}

/// What one look at an entry of the index said.
enum Look {
    /// It is dealt with.
    Done,
    /// It changed while it was read.
    Again,
}

/// Where the records go.
struct Sink<'a, M: Mem, H: Host> {
    engine: &'a Engine<M, H>,
    writer: &'a mut Writer,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<M: Mem, H: Host> HeldSnapshot<'_, M, H> {
    /// Copies everything that was there at the moment of the snapshot into `target`, which is empty and not shared, and
    /// ends the snapshot. `progress` is called with the number of keys copied and the estimated total.
    pub(crate) fn copy_to<N: Mem, I: Host>(
        self,
        writer: &mut Writer,
        target: &Engine<N, I>,
        to: &mut Writer,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Copied, BackupError> {
        let source = self.engine;
        // A record has two words at least: a count that says more is damaged, and would make the copy's index as large.
        let expected = source.items().min(source.segments() * source.segment_bytes() / 16);
        progress(0, expected);
        target.log.lift_maximum(true);
        target.rise_to(self.floor).map_err(BackupError::Target)?;
        target.presize(to, expected).map_err(BackupError::Target)?;
        let mut sink = Sink { engine: target, writer: to, key: Vec::new(), value: Vec::new() };
        self.copy_index(writer, &mut sink, &mut |done| progress(done, expected))?;
        self.copy_retained(writer, &mut sink)?;
        target.log.lift_maximum(false);
        let items = target.items();
        progress(items, items);
        let thinned = Cell::new(false);
        source.turn_snapshot(
            self.slot,
            |_| true,
            |seen| {
                thinned.set(seen.is_thinned());
                seen.ended(false)
            },
        )?;
        Ok(Copied { items, thinned: thinned.get() })
    }

    fn copy_index<N: Mem, I: Host>(
        &self,
        writer: &Writer,
        sink: &mut Sink<'_, N, I>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), BackupError> {
        let source = self.engine;
        let (mut at, mut steps, mut attempts) = (Scan::START, 0, 0);
        while at.tree < 2 {
            let step = source.scan_step(self.root, at, &mut { usize::MAX })?;
            let look = match step.entry {
                Some((_, slot_offset, slot)) => self.copy_entry(writer, slot_offset, slot, sink)?,
                None if step.next == at => Look::Again,
                None => Look::Done,
            };
            if let Look::Again = look {
                attempts += 1;
                if attempts == ATTEMPTS {
                    return Err(WriteError::from(corrupt("an index entry never came to rest", 0)).into());
                }
                continue;
            }
            (at, attempts, steps) = (step.next, 0, steps + 1);
            if steps % REPORT == 0 {
                // Given up already? Then the rest is in vain.
                source.turn_snapshot(self.slot, |_| false, |seen| seen)?;
                progress(sink.engine.items());
            }
        }
        Ok(())
    }

    /// Copies the record of one entry, if it is from before the snapshot.
    fn copy_entry<N: Mem, I: Host>(
        &self,
        writer: &Writer,
        slot_offset: u64,
        slot: Slot,
        sink: &mut Sink<'_, N, I>,
    ) -> Result<Look, BackupError> {
        let source = self.engine;
        let record = slot.offset();
        let inside = source.is_inside(record, 8);
        let generation = if inside { source.generation(source.segment_of(record)) } else { 0 };
        if source.effective(slot_offset) != slot {
            return Ok(Look::Again);
        }
        let parsed = if inside { source.parse(record) } else { None };
        let wanted = parsed.filter(|(head, _)| head.version <= self.floor && !source.is_over(head));
        let short = wanted.filter(|(head, _)| head.key_len + head.value_len <= PIN_FROM);
        if let Some((head, key)) = &short {
            sink.load(source, head, *key);
        }
        // SYNC(recycle): as in `read`.
        source.mem.fence(Ordering::Acquire);
        if inside && source.generation(source.segment_of(record)) != generation {
            return Ok(Look::Again);
        }
        if parsed.is_none() {
            return Err(WriteError::from(source.outside("a slot points at something that is no record", record)).into());
        }
        match (wanted, short) {
            (None, _) => Ok(Look::Done),
            (_, Some((head, _))) => sink.put_loaded(&head).map(|()| Look::Done),
            (Some(_), None) => self.copy_long(writer, slot_offset, slot, sink),
        }
    }

    /// The same for a long one, which does not change while it is pinned.
    fn copy_long<N: Mem, I: Host>(
        &self,
        writer: &Writer,
        slot_offset: u64,
        slot: Slot,
        sink: &mut Sink<'_, N, I>,
    ) -> Result<Look, BackupError> {
        let source = self.engine;
        let Some(pin) = source.raise_pin(writer.row, source.segment_of(slot.offset())) else {
            return Err(WriteError::InvalidState("this thread holds too many views to make a backup").into());
        };
        // SYNC(pin): as a view does.
        source.mem.fence(Ordering::SeqCst);
        let same = source.effective(slot_offset) == slot;
        let copied = match source.parse(slot.offset()).filter(|_| same) {
            Some((head, key)) if head.version <= self.floor => sink.put_long(source, &head, key).map(|()| Look::Done),
            Some(_) => Ok(Look::Done),
            None => Ok(Look::Again),
        };
        source.unpin(pin);
        copied
    }

    /// Copies what was superseded since the snapshot, and takes the marks off.
    fn copy_retained<N: Mem, I: Host>(
        &self,
        writer: &mut Writer,
        sink: &mut Sink<'_, N, I>,
    ) -> Result<(), BackupError> {
        let source = self.engine;
        // What is superseded from here on was copied already.
        if !source.turn_snapshot(self.slot, Snapshot::is_marking, Snapshot::plain)? {
            return Err(BackupError::Abandoned);
        }
        source.mem.store(writer.row + row::at::ACTIVE, 0, Ordering::Release);
        if !fault::is(Fault::MarksUnawaited) {
            source.wait_for_writers(self.slot)?;
        }
        let mut steps = 0u64;
        let take: &mut Take<'_> = &mut |_, head, key| {
            steps += 1;
            if steps % REPORT == 0 {
                source.turn_snapshot(self.slot, |_| false, |seen| seen)?;
            }
            if head.version > self.floor || source.is_over(head) {
                return Ok(());
            }
            if head.key_len + head.value_len > PIN_FROM {
                return sink.put_long(source, head, key);
            }
            sink.load(source, head, key);
            sink.put_loaded(head)
        };
        source.take_marks(writer, take)
    }
}

impl<M: Mem, H: Host> Sink<'_, M, H> {
    /// Takes key and value of a short record.
    fn load<N: Mem, I: Host>(&mut self, source: &Engine<N, I>, head: &Head, key: u64) {
        self.key.clear();
        self.value.clear();
        source.mem.append_to(key, head.key_len as usize, &mut self.key);
        source.mem.append_to(source.value_of_key(head, key), head.value_len as usize, &mut self.value);
    }

    fn put_loaded(&mut self, head: &Head) -> Result<(), BackupError> {
        let value = &self.value;
        let put = self.engine.import(self.writer, &self.key, head, &mut |at| self.engine.mem.write(at, value));
        put.map_err(BackupError::Target)
    }

    /// Copies a long record that cannot change.
    fn put_long<N: Mem, I: Host>(&mut self, source: &Engine<N, I>, head: &Head, key: u64) -> Result<(), BackupError> {
        self.key.clear();
        source.mem.append_to(key, head.key_len as usize, &mut self.key);
        let (from, buffer) = (source.value_of_key(head, key), &mut self.value);
        let put = self.engine.import(self.writer, &self.key, head, &mut |at| {
            for done in (0..head.value_len).step_by(CHUNK as usize) {
                buffer.clear();
                source.mem.append_to(from + done, (head.value_len - done).min(CHUNK) as usize, buffer);
                self.engine.mem.write(at + done, buffer);
            }
        });
        put.map_err(BackupError::Target)
    }
}

/// The side of the copy.
impl<M: Mem, H: Host> Engine<M, H> {
    /// Whether a record has expired.
    fn is_over(&self, head: &Head) -> bool {
        head.expires.is_some_and(|at| at <= self.host.now_ms())
    }

    /// Makes an empty store give versions above `version`.
    fn rise_to(&self, version: u64) -> Result<(), WriteError> {
        let root = RootWord::unpack(self.root());
        self.plant(root, self.host.now_ms().max(version) & VERSION_MAX, 0)
    }

    /// Stores a record of another store with the version that it had there, unless a later one of its key is here.
    fn import(
        &self,
        writer: &mut Writer,
        key: &[u8],
        head: &Head,
        fill: &mut dyn FnMut(u64),
    ) -> Result<(), WriteError> {
        let kh = self.hash_of(head, key);
        let fresh = Head { version: 0, dead: 0, member: None, ..*head };
        let draft = self.draft(writer, key, kh, fresh, head.value_len)?;
        fill(draft.value);
        self.seal(&draft);
        self.mem.store(draft.offset, draft.word | head.version << VERSION_SHIFT, Ordering::Relaxed);
        if self.layout.is_durable() {
            self.finish_checksum(draft.offset);
        }
        let root = self.enter(writer);
        self.advance(writer, &draft);
        let won = self.adopt_by_name(writer, draft.offset, &Head { dead: 0, member: None, ..*head }, key);
        self.mem.store(writer.row + row::at::ACTIVE, 0, Ordering::Release);
        match (won?, draft.is_large()) {
            (true, true) => self.finish_large(&draft, root),
            (false, true) => self.abandon(writer, &draft),
            (false, false) => {
                if self.layout.is_durable() {
                    self.stamp(draft.offset);
                }
                self.count_dead(draft.offset, draft.bytes);
            }
            (true, false) => {}
        }
        if let Some(segment) = writer.dead_large.take() {
            self.reclaim_large(segment, writer.slot)?;
        }
        Ok(())
    }
}
