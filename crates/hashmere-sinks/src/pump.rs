//! Moves events from a source to a sink.
//!
//! A batch is handed over while the one before is under way at the sink, so both work at a time. When the sink fails,
//! the events that may not be stored are still in memory. Its position says which of them are: the rest is sent again.
//! While the sink is away the source is not read: there are never more than two batches in memory.

use crate::sink::{Position, Sink, SinkError};
use crate::source::{Source, SourceError};
use hashmere_feed::Event;
use std::fmt;
use std::time::{Duration, Instant};

/// How events are moved.
#[derive(Clone, Debug)]
pub struct PumpOptions {
    /// Most events handed over at a time.
    pub batch_events: usize,
    /// Most bytes of keys and values handed over at a time; one event may have more.
    pub batch_bytes: usize,
    /// End when the source has no more for the moment.
    pub once: bool,
    /// How long a sink may be away before it is an error; `None`: forever.
    pub give_up: Option<Duration>,
    /// Longest pause between two attempts to reach the sink; the first is 50 ms, each is twice the one before.
    pub longest_pause: Duration,
}

impl Default for PumpOptions {
    fn default() -> PumpOptions {
        PumpOptions {
            batch_events: 4096,
            batch_bytes: 4 << 20,
            once: false,
            give_up: None,
            longest_pause: Duration::from_secs(5),
        }
    }
}

/// Why it ended.
#[derive(Debug)]
pub enum PumpError {
    /// The source has no more.
    Source(SourceError),
    /// The sink takes no more.
    Sink(SinkError),
}

impl fmt::Display for PumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PumpError::Source(error) => error.fmt(f),
            PumpError::Sink(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PumpError {}

impl From<SourceError> for PumpError {
    fn from(error: SourceError) -> PumpError {
        PumpError::Source(error)
    }
}

/// How long the source is waited for at a time: a stop is noticed as soon.
const WAIT: Duration = Duration::from_millis(100);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// How often a sink may want its position looked at again, before that counts as a failure.
const AGAINS: u32 = 3;

/// Moves events until `stop` says so. `open` opens the source at the sink's position; it is called again if the sink
/// has lost what it had. `report` is called with each failure after which it tries again. Returns how many events the
/// sink has got.
///
/// # Errors
/// [`PumpError`]: the source ended, or the sink refused.
pub fn pump(
    sink: &mut dyn Sink,
    mut open: impl FnMut(Option<&Position>) -> Result<Box<dyn Source>, SourceError>,
    options: &PumpOptions,
    stop: &dyn Fn() -> bool,
    report: &mut dyn FnMut(&SinkError),
) -> Result<u64, PumpError> {
    let mut pump = Pump { sink, options, stop, report, at: None, pending: Vec::new(), sent: 0 };
    let Some(mut at) = pump.patiently(|sink| sink.position())? else { return Ok(0) };
    loop {
        pump.at = at;
        pump.pending.clear();
        let mut source = open(at.as_ref())?;
        match pump.run(source.as_mut(), at)? {
            Ended::Stopped => return Ok(pump.sent),
            Ended::Vanished => at = None,
        }
    }
}

enum Ended {
    Stopped,
    /// What the sink had is gone: it gets every key again.
    Vanished,
}

struct Pump<'a> {
    sink: &'a mut dyn Sink,
    options: &'a PumpOptions,
    stop: &'a dyn Fn() -> bool,
    report: &'a mut dyn FnMut(&SinkError),
    /// The last position that the sink is known to have stored.
    at: Option<Position>,
    /// Handed over, and perhaps not stored.
    pending: Vec<Event>,
    sent: u64,
}

impl Pump<'_> {
    fn run(&mut self, source: &mut dyn Source, from: Option<Position>) -> Result<Ended, PumpError> {
        // Until the transaction at the position is over.
        let mut has = from.filter(|from| from.part.is_some());
        while !(self.stop)() {
            let wait = if self.pending.is_empty() && !self.options.once { WAIT } else { Duration::ZERO };
            let mut batch = source.next_batch(self.options.batch_events, wait)?;
            if let Some(from) = has {
                let len = batch.len();
                batch.retain(|event| !from.has(event));
                has = has.filter(|_| batch.is_empty() || len == 0);
                if batch.is_empty() && len != 0 {
                    continue;
                }
            }
            let is_end = batch.is_empty();
            if let Some(ended) = self.pass_on(batch)? {
                return Ok(ended);
            }
            if is_end && self.options.once {
                break;
            }
        }
        Ok(self.pass_on(Vec::new())?.unwrap_or(Ended::Stopped))
    }

    /// Hands a batch over, in pieces if it has many bytes; an empty one waits until everything is stored.
    fn pass_on(&mut self, batch: Vec<Event>) -> Result<Option<Ended>, PumpError> {
        if batch.is_empty() {
            return match self.sink.flush() {
                Ok(()) => {
                    self.all_stored();
                    Ok(None)
                }
                Err(error) => self.recover(error),
            };
        }
        let mut rest = batch;
        while !rest.is_empty() {
            let later = rest.split_off(piece(&rest, self.options.batch_bytes));
            match self.sink.send(&rest) {
                Ok(()) => {
                    self.all_stored();
                    self.pending = rest;
                }
                Err(error) => {
                    self.pending.append(&mut rest);
                    if let Some(ended) = self.recover(error)? {
                        return Ok(Some(ended));
                    }
                }
            }
            rest = later;
        }
        Ok(None)
    }

    fn all_stored(&mut self) {
        if let Some(last) = self.pending.last() {
            self.at = Position::behind(last);
            self.sent += self.pending.len() as u64;
            self.pending.clear();
        }
    }

    /// Sends what is pending again, until it is stored.
    fn recover(&mut self, error: SinkError) -> Result<Option<Ended>, PumpError> {
        let mut first = Some(error);
        let (mut at, mut pending, mut sent) = (self.at, std::mem::take(&mut self.pending), self.sent);
        let recovered = self.patiently(|sink| {
            if let Some(error) = first.take() {
                return Err(error);
            }
            let position = sink.position()?;
            let Some(stored) = stored(&pending, position, at)? else { return Ok(Some(Ended::Vanished)) };
            sent += stored as u64;
            pending.drain(..stored);
            at = position;
            if !pending.is_empty() {
                sink.send(&pending)?;
            }
            sink.flush()?;
            at = pending.last().map_or(at, Position::behind);
            sent += pending.len() as u64;
            pending.clear();
            Ok(None)
        })?;
        (self.at, self.pending, self.sent) = (at, pending, sent);
        // Stopped before it was there again.
        Ok(recovered.unwrap_or(Some(Ended::Stopped)))
    }

    /// Does something with the sink until it succeeds; `None`: asked to stop.
    fn patiently<T>(
        &mut self,
        mut attempt: impl FnMut(&mut dyn Sink) -> Result<T, SinkError>,
    ) -> Result<Option<T>, PumpError> {
        let since = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut agains = 0;
        loop {
            let error = match attempt(self.sink) {
                Ok(done) => return Ok(Some(done)),
                Err(error) => error,
            };
            if error.is_again() && agains < AGAINS {
                agains += 1;
                continue;
            }
            let is_too_long = self.options.give_up.is_some_and(|most| since.elapsed() >= most);
            if !error.is_temporary() || is_too_long {
                return Err(PumpError::Sink(error));
            }
            (self.report)(&error);
            let end = Instant::now() + pause;
            while Instant::now() < end {
                if (self.stop)() {
                    return Ok(None);
                }
                std::thread::sleep(WAIT.min(end.saturating_duration_since(Instant::now())));
            }
            pause = (pause * 2).min(self.options.longest_pause);
        }
    }
}

/// How many of the pending events a sink has stored that says this position; `at` is what it had before them. `None`:
/// it has lost even that.
fn stored(pending: &[Event], position: Option<Position>, at: Option<Position>) -> Result<Option<usize>, SinkError> {
    if position == at {
        return Ok(Some(0));
    }
    let Some(now) = position else { return Ok(None) };
    // Of reads of one place the first: sent twice they do no harm.
    if let Some(found) = pending.iter().position(|event| Position::behind(event) == position) {
        return Ok(Some(found + 1));
    }
    // A repetition that the sink has passed over is acknowledged, but moves nothing.
    let is_before = at.is_some_and(|at| {
        let same_feed = at.token.store_uuid() == now.token.store_uuid() && !now.token.is_copying();
        same_feed && now.token.position() <= at.token.position()
    });
    if is_before {
        return Ok(Some(0));
    }
    Err(SinkError::Foreign(format!("it is at {now}, which this one has not sent")))
}

/// How many of the events together have at most this many bytes; at least one.
fn piece(events: &[Event], bytes: usize) -> usize {
    let mut sum = 0usize;
    let len = |event: &Event| match event {
        Event::Read(change) | Event::Change(change) => change.key.len() + change.value.bytes().map_or(0, <[u8]>::len),
        _ => 0,
    };
    let fits = events.iter().take_while(|event| {
        sum = sum.saturating_add(len(event));
        sum <= bytes
    });
    fits.count().max(1)
}
