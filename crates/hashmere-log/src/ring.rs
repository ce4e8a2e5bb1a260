//! Rings: claimed, written to, recovered after a death. Generic over memory: the tests cut each operation off at every
//! store.

use crate::fault::{self, Fault};
use crate::layout::{at, flag, line, name, row, Head, LogCore, Span, BUSY, POSITION};
use hashmere_engine::{ClientId, WriteError};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Who can say whether a client is gone.
pub(crate) trait Liveness {
    /// Whether it is, for certain.
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError>;
}

/// What a writer sleeps on that waits for room.
#[derive(Debug)]
pub(crate) struct Waiter {
    event: u64,
    seen: u32,
}

impl Waiter {
    pub(crate) fn wait<M: Mem>(&self, mem: &M, timeout: Duration) {
        mem.wait(self.event, self.seen, timeout);
    }
}

/// A ring as its writer has it.
#[derive(Debug)]
pub(crate) struct Cursor {
    row: u64,
    span: Span,
    tail: u64,
    /// Nothing before this is needed any more: not older than `head` and `low`, perhaps behind them.
    floor: u64,
    number: u32,
    who: u64,
}

impl Cursor {
    /// Bytes that a line takes, and those that are left unused at the end of the ring before it.
    #[inline(always)]
    fn need(&self, payload: u64) -> (u64, u64) {
        let len = line::PAYLOAD + payload.next_multiple_of(8);
        let rest = self.span.rest(self.tail);
        (len, if len > rest { rest } else { 0 })
    }

    /// Whether there is room for a line, as far as is known without looking at what the drainer writes.
    #[inline(always)]
    pub(crate) fn has_room(&self, payload: u64) -> bool {
        let (len, skip) = self.need(payload);
        self.tail + skip + len - self.floor <= self.span.bytes
    }

    /// Looks how far the drainer is; returns how many bytes it has not taken yet.
    #[cold]
    pub(crate) fn look<M: Mem>(&mut self, mem: &M) -> u64 {
        // SYNC(ring head): what it has taken was read before the head was moved: it may be written over.
        let head = mem.load(self.row + row::HEAD, Ordering::Acquire) & POSITION;
        let low = mem.load(self.row + row::LOW, Ordering::Relaxed) & POSITION;
        self.floor = self.floor.max(head.max(low).min(self.tail));
        self.tail - self.floor
    }

    /// Bytes that the drainer has not taken, or had not when this was last looked at.
    pub(crate) fn used(&self) -> u64 {
        self.tail - self.floor
    }

    pub(crate) fn is_half_full(&self) -> bool {
        self.used() > self.span.bytes / 2
    }

    /// Says that this writer is about to sleep until there is room for a line. `None`: there is.
    pub(crate) fn before_waiting<M: Mem>(&mut self, mem: &M, payload: u64) -> Option<Waiter> {
        let event = self.row + row::EVENT;
        let seen = mem.load(event, Ordering::Acquire) as u32;
        if fault::is(Fault::WaitingLate) {
            self.look(mem);
        }
        // SYNC(waiting): our flag is there before the last look; see `wake_writer`.
        mem.swap(self.row + row::WAITING, 1, Ordering::SeqCst);
        if !fault::is(Fault::WaitingLate) {
            self.look(mem);
        }
        (!self.has_room(payload)).then_some(Waiter { event, seen })
    }

    /// Gives up the oldest lines until there is room. The caller looked before.
    pub(crate) fn make_room<M: Mem>(&mut self, mem: &M, payload: u64) {
        while !self.has_room(payload) {
            let head = Head::unpack(mem.load(self.span.at(self.floor), Ordering::Relaxed));
            let rest = self.span.rest(self.floor);
            let len = if head.is_filler() { rest } else { line::PAYLOAD + head.payload.next_multiple_of(8) };
            self.floor = (self.floor + len.min(rest)).min(self.tail);
        }
        if !fault::is(Fault::LowOmitted) {
            mem.store(self.row + row::LOW, self.floor, Ordering::Relaxed);
        }
        // SYNC(low): a thread that reads what is written from here on sees the new low as well.
        mem.fence(Ordering::Release);
    }

    /// Counts a line that is not written.
    pub(crate) fn skip_line<M: Mem>(&mut self, mem: &M) {
        self.number = self.number.wrapping_add(1);
        // SYNC(tried): a thread that sees the number sees the lines before it in the ring.
        mem.store(self.row + row::TRIED, self.number.into(), Ordering::Release);
    }

    /// Writes a line, for which there is room. The clock is read once other processes can see that this is going on.
    #[inline(always)]
    pub(crate) fn append<M: Mem>(&mut self, mem: &M, level: u64, flags: u64, text: &[u8], clock: impl FnOnce() -> u64) {
        let payload = text.len() as u64;
        let (len, skip) = self.need(payload);
        let early = if fault::is(Fault::ClockEarly) { Err(clock()) } else { Ok(clock) };
        // SYNC(busy): the drainer reads its clock and then this: a line older than that is there or is seen to be
        // coming.
        if !fault::is(Fault::BusyOmitted) {
            mem.store(self.row + row::TAIL, self.tail | BUSY, Ordering::Relaxed);
        }
        let stamp = early.map_or_else(|stamp| stamp, |clock| clock());
        if fault::is(Fault::LineEarly) {
            mem.store(self.row + row::TAIL, self.tail + skip + len, Ordering::Release);
        }
        if skip > 0 {
            let filler = Head { payload: 0, level: 0, flags: flag::FILLER, number: self.number };
            mem.store(self.span.at(self.tail), filler.pack(), Ordering::Relaxed);
        }
        let start = self.span.at(self.tail + skip);
        mem.store(start + line::HEAD, Head { payload, level, flags, number: self.number }.pack(), Ordering::Relaxed);
        mem.store(start + line::STAMP, stamp, Ordering::Relaxed);
        mem.store(start + line::WHO, self.who, Ordering::Relaxed);
        mem.write(start + line::PAYLOAD, text);
        self.tail += skip + len;
        self.number = self.number.wrapping_add(1);
        // SYNC(line): this is the point at which the line is in the log.
        mem.store(self.row + row::TAIL, self.tail, Ordering::Release);
    }
}

impl<M: Mem> LogCore<'_, M> {
    /// How many rings there may be something in: the lowest free one is claimed, so there are no more than there were
    /// claims.
    pub(crate) fn rings_used(&self) -> u64 {
        self.get(at::THREADS).min(self.geometry.rings)
    }

    /// Claims a free ring, an empty one if there is one, for a thread of `me`. `None`: there is none.
    pub(crate) fn claim(&self, me: ClientId, pid: u32, process: &[u8]) -> Option<Cursor> {
        let load = |ring: u64, word: u64| self.mem.load(self.row(ring) + word, Ordering::Acquire);
        let is_empty = |ring: &u64| load(*ring, row::HEAD) == load(*ring, row::TAIL);
        let take = |ring: &u64| {
            let owner = self.row(*ring) + row::OWNER;
            // SYNC(ring): we see what its last owner left.
            self.mem.load(owner, Ordering::Relaxed) == 0 && self.mem.compare_exchange(owner, 0, me.pack()).is_ok()
        };
        // The count comes first: a drainer that does not know it does not look into our ring.
        let thread = self.mem.fetch_add(self.base + at::THREADS, 1, Ordering::AcqRel).wrapping_add(1);
        let all = 0..self.geometry.rings;
        let ring = all.clone().find(|ring| is_empty(ring) && take(ring)).or_else(|| all.clone().find(take))?;
        let who = thread << 32 | u64::from(pid);
        self.write_name(thread, who, process);
        Some(self.begin(ring, who))
    }

    /// Whether some ring is free.
    pub(crate) fn has_free_ring(&self) -> bool {
        (0..self.geometry.rings).any(|ring| self.mem.load(self.row(ring) + row::OWNER, Ordering::Relaxed) == 0)
    }

    pub(crate) fn write_name(&self, thread: u64, who: u64, process: &[u8]) {
        let entry = self.base + self.geometry.name(thread);
        let mut text = [0; name::TEXT_MAX];
        let len = process.len().min(text.len());
        text[..len].copy_from_slice(&process[..len]);
        self.mem.store(entry + name::WHO, 0, Ordering::Relaxed);
        // SYNC(name): pairs with the acquire fence in `read_name`: a reader that sees a byte of the new text sees that
        // the old number is gone.
        self.mem.fence(Ordering::Release);
        self.mem.write(entry + name::TEXT, &text);
        // A reader that finds the number finds the text.
        self.mem.store(entry + name::WHO, who, Ordering::Release);
    }

    /// The name of the process that a line is from, if it was not replaced by that of a later one.
    pub(crate) fn read_name(&self, who: u64) -> [u64; 2] {
        let entry = self.base + self.geometry.name(who >> 32);
        if self.mem.load(entry + name::WHO, Ordering::Acquire) != who {
            return [0; 2];
        }
        let text = [0, 8].map(|at| self.mem.load(entry + name::TEXT + at, Ordering::Relaxed));
        // SYNC(name): pairs with the release fence in `write_name`: if the number is still the same, the text was not
        // replaced.
        self.mem.fence(Ordering::Acquire);
        if self.mem.load(entry + name::WHO, Ordering::Relaxed) == who || fault::is(Fault::NameUnchecked) {
            text
        } else {
            [0; 2]
        }
    }

    /// The cursor of a ring that we have just claimed.
    fn begin(&self, ring: u64, who: u64) -> Cursor {
        self.recover(ring);
        let row = self.row(ring);
        let word = |at: u64| self.mem.load(row + at, Ordering::Acquire);
        let (span, head) = (self.ring(ring), word(row::HEAD) & POSITION);
        // The drainer is never ahead, or the tail is damaged: then what comes from here on is found all the same.
        let tail = (word(row::TAIL) & POSITION).max(head);
        let mut floor = head.max(word(row::LOW) & POSITION).min(tail);
        if tail - floor > span.bytes {
            // Damage: there cannot be so much in it.
            self.mem.store(row + row::LOW, tail, Ordering::Release);
            floor = tail;
        }
        let number = self.next_number(ring, floor, tail);
        self.succeed(ring, number, who);
        // Should we die in our first line, its half is another one than that of the owner before.
        self.mem.store(row + row::HALVES, word(row::HALVES) & 0xffff, Ordering::Release);
        self.mem.store(row + row::TRIED, number.into(), Ordering::Release);
        Cursor { row, span, tail, floor, number, who }
    }

    /// The number after the last line of a ring, and after those that were dropped behind it.
    fn next_number(&self, ring: u64, floor: u64, tail: u64) -> u32 {
        let mut number = self.mem.load(self.row(ring) + row::LAST, Ordering::Acquire) as u32;
        let mut raise = |to: u32| {
            if to.wrapping_sub(number) < 1 << 31 {
                number = to;
            }
        };
        raise(self.mem.load(self.row(ring) + row::TRIED, Ordering::Acquire) as u32);
        let (span, mut at) = (self.ring(ring), floor);
        while at < tail {
            let head = Head::unpack(self.mem.load(span.at(at), Ordering::Relaxed));
            if head.is_filler() {
                at += span.rest(at);
                continue;
            }
            raise(head.number.wrapping_add(1));
            at += line::PAYLOAD + head.payload.next_multiple_of(8);
        }
        number
    }

    /// Skips the half line that a dead writer left, and counts it, once however often this is cut off. The caller has
    /// put its own name in the place of the owner's, or is alone in some other way.
    pub(crate) fn recover(&self, ring: u64) {
        let row = self.row(ring);
        let tail = self.mem.load(row + row::TAIL, Ordering::Acquire);
        if tail & BUSY == 0 {
            return;
        }
        let tail = tail & POSITION;
        let (halves, mark) = (self.mem.load(row + row::HALVES, Ordering::Acquire), (tail >> 3) + 1);
        if halves >> 16 != mark & ((1 << 48) - 1) || fault::is(Fault::HalfTwice) {
            self.mem.store(row + row::HALVES, mark << 16 | ((halves & 0xffff) + 1), Ordering::Release);
        }
        self.mem.store(row + row::TAIL, tail, Ordering::Release);
    }

    /// Gives a ring back. What is in it stays there for the drainer.
    pub(crate) fn release(&self, cursor: &Cursor) {
        self.mem.store(cursor.row + row::TRIED, cursor.number.into(), Ordering::Release);
        // SYNC(ring): pairs with the compare-exchange in `claim`: the next owner sees what we left.
        self.mem.store(cursor.row + row::OWNER, 0, Ordering::Release);
    }

    /// Gives back the rings of crashed processes, after recovering them.
    pub(crate) fn recover_rings(&self, me: ClientId, peers: &impl Liveness) -> Result<(), WriteError> {
        for ring in 0..self.rings_used() {
            self.recover_ring(ring, me, peers)?;
        }
        Ok(())
    }

    /// Whether the owner of a ring is gone; then it is recovered and free.
    pub(crate) fn recover_ring(&self, ring: u64, me: ClientId, peers: &impl Liveness) -> Result<bool, WriteError> {
        let owner = self.row(ring) + row::OWNER;
        let word = self.mem.load(owner, Ordering::Acquire);
        if word == 0 || word == me.pack() {
            return Ok(false);
        }
        // A word that names no client can only be damage.
        let gone = match ClientId::unpack(word) {
            Some(client) => peers.is_gone(client)?,
            None => true,
        };
        let gone = gone || fault::is(Fault::RingStolen);
        if !gone || self.mem.compare_exchange(owner, word, me.pack()).is_err() {
            return Ok(false);
        }
        if fault::is(Fault::RingEarly) {
            self.mem.store(owner, 0, Ordering::Release);
        }
        self.recover(ring);
        self.mem.store(owner, 0, Ordering::Release);
        Ok(true)
    }

    /// Lines that were cut off by the death of their writers.
    pub(crate) fn halves(&self) -> u64 {
        (0..self.geometry.rings).map(|ring| self.get(self.geometry.row(ring) + row::HALVES) & 0xffff).sum()
    }
}
