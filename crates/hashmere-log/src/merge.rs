//! Merging: lines go from the rings into the history, oldest first. Cut off anywhere, it has happened as a whole or not
//! at all.

use crate::error::LogError;
use crate::fault::{self, Fault};
use crate::layout::{at, flag, line, row, Head, LogCore, COMMITTED, NOTE, POSITION};
use crate::loss::Loss;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// A ring that is being merged.
#[derive(Debug)]
struct Source {
    ring: u64,
    /// Next line, and where the lines end that were there when this began.
    at: u64,
    tail: u64,
    /// Number of the line that comes next if none was lost.
    number: u32,
    head: Head,
    stamp: u64,
}

/// Where lines go to.
#[derive(Debug)]
struct Into {
    /// In the history.
    end: u64,
    last_ns: u64,
    lost: u64,
    merged: Merged,
}

/// What a merge came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    /// Lines that are in the history now.
    pub(crate) lines: u64,
    /// Notes of lines that were lost, told alone.
    pub(crate) notes: u64,
    /// There are more: they are too young, or the history is full of what was not delivered.
    pub(crate) more: bool,
}

/// Ticks as wall clock time.
pub(crate) trait Times {
    /// Nanoseconds since 1970.
    fn ns(&self, stamp: u64) -> u64;
}

impl<M: Mem> LogCore<'_, M> {
    /// Finishes or forgets the merge that a dead drainer was at.
    pub(crate) fn recover_merge(&self) {
        // SYNC(merge): pairs with the release store in `merge`: all that `apply` needs is there.
        if self.get(at::MERGE) != 0 {
            if !fault::is(Fault::MergeUndone) {
                return self.apply();
            }
            self.put(at::MERGE, 0);
        }
        for ring in 0..self.geometry.rings {
            let row = self.geometry.row(ring);
            self.put(row + row::NEXT_HEAD, self.get(row + row::HEAD));
            self.put(row + row::NEXT_LAST, self.get(row + row::LAST));
        }
    }

    /// What a merge comes to once it is committed. Each step may be done twice.
    fn apply(&self) {
        self.put(at::LINES, self.get(at::NEXT_LINES));
        self.put(at::LOST, self.get(at::NEXT_LOST));
        // SYNC(end): what comes before it is whole.
        self.put(at::END, self.get(at::MERGE) & !COMMITTED);
        for ring in 0..self.rings_used() {
            let row = self.geometry.row(ring);
            let (head, next) = (self.get(row + row::HEAD), self.get(row + row::NEXT_HEAD));
            let (last, next_last) = (self.get(row + row::LAST), self.get(row + row::NEXT_LAST));
            if last != next_last {
                self.put(row + row::LAST, next_last);
            }
            if head != next {
                // SYNC(ring head): pairs with the load in `look`: the lines before it were copied.
                self.put(row + row::HEAD, next);
                self.wake_writer(row);
            }
        }
        self.put(at::MERGE, 0);
    }

    fn wake_writer(&self, row: u64) {
        // SYNC(waiting): pairs with the exchange in `before_waiting`. A store buffer may hide the head from its last
        // look and its flag from us; it then looks again by itself.
        let (waiting, event) = (self.base + row + row::WAITING, self.base + row + row::EVENT);
        if self.mem.load(waiting, Ordering::Relaxed) != 0 && self.mem.swap(waiting, 0, Ordering::SeqCst) != 0 {
            self.mem.fetch_add(event, 1, Ordering::AcqRel);
            self.mem.wake(event);
        }
    }

    /// Moves lines that are not younger than `horizon` into the history. `tail_of` returns the tail of a ring as soon
    /// as no line from before the horizon can appear behind it any more.
    ///
    /// # Errors
    /// `Corrupt`: the words of the history contradict each other. Nothing has happened then.
    pub(crate) fn merge(
        &self,
        horizon: u64,
        times: &impl Times,
        mut tail_of: impl FnMut(u64) -> u64,
    ) -> Result<Merged, LogError> {
        self.check_history()?;
        let mut sources: Vec<Source> =
            (0..self.rings_used()).filter_map(|ring| self.source(ring, &mut tail_of)).collect();
        let (last_ns, end) = (self.get(at::LAST_NS), self.position(at::END));
        let mut into = Into { end, last_ns, lost: 0, merged: Merged::default() };
        while let Some(index) = (0..sources.len()).min_by_key(|index| sources[*index].stamp) {
            let source = &mut sources[index];
            if source.stamp > horizon || !self.take_next(source, &mut into, times) {
                into.merged.more = true;
                break;
            }
            if !self.peek(source) {
                self.note(source);
                sources.swap_remove(index);
            }
        }
        sources.iter().for_each(|source| self.note(source));
        if !into.merged.more {
            self.tell_of_left(&mut into);
        }
        let Into { end, last_ns, lost, merged } = into;
        if merged.lines + merged.notes > 0 {
            self.put(at::LAST_NS, last_ns);
            self.put(at::NEXT_LINES, self.get(at::LINES).wrapping_add(merged.lines));
            self.put(at::NEXT_LOST, self.get(at::LOST).wrapping_add(lost));
            // SYNC(merge): this is the point at which all of it has happened.
            self.put(at::MERGE, end | COMMITTED);
            self.apply();
            self.wake_followers();
        }
        Ok(merged)
    }

    /// Takes the next line of a ring, after telling what others who had the ring lost before it. `false`: there is no
    /// room.
    fn take_next(&self, source: &mut Source, into: &mut Into, times: &impl Times) -> bool {
        let ns = not_back(into.last_ns, times.ns(source.stamp));
        while let Some(loss) = self.loss_of_past(source.ring, source.number, source.head.number) {
            if !self.tell(loss, source.number, ns, into) {
                return false;
            }
            source.number = loss.until;
        }
        let Some(to) = self.room(into.end, source.head) else { return false };
        if let Some(gap) = self.take(source, to, ns) {
            into.end = to + line::MERGED_PAYLOAD + source.head.payload.next_multiple_of(8);
            into.last_ns = ns;
            into.lost += u64::from(gap);
            into.merged.lines += 1;
            source.at += line::PAYLOAD + source.head.payload.next_multiple_of(8);
            source.number = source.head.number.wrapping_add(1);
        }
        true
    }

    /// Puts a note into the history: these lines, from `first` on, were lost. `false`: there is no room.
    fn tell(&self, loss: Loss, first: u32, ns: u64, into: &mut Into) -> bool {
        let head = Head { payload: 0, level: NOTE, flags: 0, number: loss.until };
        let Some(to) = self.room(into.end, head) else { return false };
        let lost = loss.until.wrapping_sub(first);
        self.put_head(self.history().at(to), head, ns, loss.who, lost);
        into.end = to + line::MERGED_PAYLOAD;
        into.last_ns = ns;
        into.lost += u64::from(lost);
        into.merged.notes += 1;
        true
    }

    /// Reports what threads that have left dropped last. Its time is known only as after all that was reported before.
    fn tell_of_left(&self, into: &mut Into) {
        for ring in 0..self.rings_used() {
            let row = self.geometry.row(ring);
            loop {
                let (head, last) = (self.get(row + row::NEXT_HEAD), self.get(row + row::NEXT_LAST) as u32);
                let Some(loss) = self.loss_of_left(ring, head, last) else { break };
                if !self.tell(loss, last, into.last_ns, into) {
                    into.merged.more = true;
                    return;
                }
                self.put(row + row::NEXT_LAST, loss.until.into());
            }
        }
    }

    /// A ring with lines in it.
    fn source(&self, ring: u64, tail_of: &mut impl FnMut(u64) -> u64) -> Option<Source> {
        let row = self.geometry.row(ring);
        let head = self.position(row + row::HEAD);
        let tail = if self.get(row + row::TAIL) == head { head } else { tail_of(ring) & POSITION };
        let number = self.get(row + row::LAST) as u32;
        let mut source = Source { ring, at: head, tail, number, head: Head::unpack(0), stamp: 0 };
        self.peek(&mut source).then_some(source)
    }

    /// Looks at the next line of a ring. `false`: there is none.
    fn peek(&self, source: &mut Source) -> bool {
        let span = self.ring(source.ring);
        let low = self.base + self.geometry.row(source.ring) + row::LOW;
        let low = |order: Ordering| self.mem.load(low, order) & POSITION;
        loop {
            source.at = source.at.max(low(Ordering::Acquire));
            if source.at >= source.tail {
                return false;
            }
            let (start, rest) = (span.at(source.at), span.rest(source.at));
            source.head = Head::unpack(self.mem.load(start, Ordering::Relaxed));
            let len = line::PAYLOAD + source.head.payload.next_multiple_of(8);
            let is_whole = !source.head.is_filler() && len <= rest;
            if is_whole {
                source.stamp = self.mem.load(start + line::STAMP, Ordering::Relaxed);
            }
            // SYNC(low): unless the writer has given the line up it was whole.
            self.mem.fence(Ordering::Acquire);
            if low(Ordering::Relaxed) > source.at {
                continue;
            }
            if is_whole && len <= source.tail - source.at && source.head.payload <= self.geometry.line_max() {
                return true;
            }
            if source.head.is_filler() && source.tail - source.at <= span.bytes {
                source.at += rest;
            } else {
                // Damage: nothing in this ring can be told apart any more.
                source.at = source.tail;
            }
        }
    }

    /// Where a line can go in the history behind `end`. `None`: everything there has yet to be delivered.
    fn room(&self, end: u64, head: Head) -> Option<u64> {
        let span = self.history();
        let len = line::MERGED_PAYLOAD + head.payload.next_multiple_of(8);
        let rest = span.rest(end);
        let to = if len > rest { end + rest } else { end };
        // SYNC(sent): pairs with the release store in `send`: what was sent needs its room no longer.
        let (first, sent) = (self.position(at::OLDEST), self.position(at::SENT));
        let behind = |position: u64| (to + len).wrapping_sub(position);
        // They were looked at when the merge began; damaged since, there is no room, and the next merge says so.
        if behind(sent) > span.bytes || sent.wrapping_sub(first) > span.bytes {
            return None;
        }
        let mut oldest = first;
        while behind(oldest) > span.bytes {
            oldest = self.after(oldest);
        }
        if oldest != first {
            // SYNC(oldest): a follower that reads what is written from here on sees that as well.
            self.put(at::OLDEST, oldest);
            self.mem.fence(Ordering::Release);
        }
        if to != end {
            let filler = Head { payload: 0, level: 0, flags: flag::FILLER, number: 0 };
            self.mem.store(span.at(end), filler.pack(), Ordering::Relaxed);
        }
        Some(to)
    }

    /// Copies a line into the history, where no follower sees it yet. `None`: its writer gave it up.
    fn take(&self, source: &Source, to: u64, ns: u64) -> Option<u32> {
        let (span, history) = (self.ring(source.ring), self.history());
        let (from, to) = (span.at(source.at), history.at(to));
        let who = self.mem.load(from + line::WHO, Ordering::Relaxed);
        let payload = source.head.payload.next_multiple_of(8);
        self.mem.copy(from + line::PAYLOAD, to + line::MERGED_PAYLOAD, payload);
        let gap = source.head.number.wrapping_sub(source.number);
        self.put_head(to, source.head, ns, who, gap);
        // SYNC(low): as in `peek`.
        self.mem.fence(Ordering::Acquire);
        let low = self.base + self.geometry.row(source.ring) + row::LOW;
        (self.mem.load(low, Ordering::Relaxed) & POSITION <= source.at || fault::is(Fault::GivenUpUnchecked))
            .then_some(gap)
    }

    /// The part of a history entry before the payload.
    fn put_head(&self, to: u64, head: Head, ns: u64, who: u64, lost: u32) {
        let put = |at: u64, value: u64| self.mem.store(to + at, value, Ordering::Relaxed);
        put(line::HEAD, head.pack());
        put(line::STAMP, ns);
        put(line::WHO, who);
        let [first, second] = self.read_name(who);
        put(line::NAME, first);
        put(line::NAME + 8, second);
        put(line::LOST, lost.into());
    }

    fn note(&self, source: &Source) {
        let row = self.geometry.row(source.ring);
        self.put(row + row::NEXT_HEAD, source.at);
        if fault::is(Fault::HeadsEarly) {
            self.put(row + row::HEAD, source.at);
        }
        self.put(row + row::NEXT_LAST, source.number.into());
    }

    /// Whether there is a ring with whole lines in it, or a loss to report. A thread that is writing a line will look
    /// at the wake flag.
    pub(crate) fn has_lines(&self) -> bool {
        (0..self.rings_used()).any(|ring| {
            let row = self.geometry.row(ring);
            let tail = self.position(row + row::TAIL);
            let (head, last) = (self.position(row + row::HEAD), self.get(row + row::LAST) as u32);
            tail > head.max(self.position(row + row::LOW)) || self.loss_of_left(ring, head, last).is_some()
        })
    }

    pub(crate) fn wake_followers(&self) {
        // SYNC(followers): pairs with the exchange in `sleep_for_news`, as SYNC(waiting) does.
        let followers = self.base + at::FOLLOWERS;
        if self.mem.load(followers, Ordering::Relaxed) != 0 && self.mem.swap(followers, 0, Ordering::SeqCst) != 0 {
            self.mem.fetch_add(self.base + at::NEWS, 1, Ordering::AcqRel);
            self.mem.wake(self.base + at::NEWS);
        }
    }
}

/// The clock that ticks are converted by wavers a little from one merge to the next, which shall not show; a wall clock
/// that was set back shall.
fn not_back(last: u64, ns: u64) -> u64 {
    const WAVERS: u64 = 1_000_000;
    if ns < last && last - ns < WAVERS {
        last
    } else {
        ns
    }
}
