//! A store that a server streams: the same events as of a local one, over links that come and go.

use super::address::Served;
use super::failed::Failed;
use super::line::{Beat, Line};
use super::link::Link;
use super::start_at;
use crate::apply::ends_unit;
use crate::error::ReplicaError;
use crate::keys::Keys;
use crate::sweep::sweep;
use crate::two_way::Stamped;
use hashmere::{Cursor, Filter, Store};
use hashmere_feed::{Change, Event, Token};
use hashmere_os::clock;
use std::time::{Duration, Instant};

/// The first and the longest time between two attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The served store.
#[derive(Debug)]
pub(crate) struct Remote {
    served: Served,
    /// Whether events are to come with stamps.
    is_stamped: bool,
    link: Option<Link>,
    /// Behind what was given; `None`: at the start.
    at: Option<Token>,
    /// The beginning of a transaction.
    part: Vec<Stamped>,
    beat: Option<Beat>,
    /// What its clock is behind ours, and the longest of its ways to here.
    offset_ms: i64,
    /// When it was heard last, if it was, and when it was looked for first.
    heard: Instant,
    /// Why there is no link.
    trouble: Option<String>,
    /// An error that is to be returned when what came before it has been given.
    refusal: Option<String>,
    retry_at: Instant,
    backoff: Duration,
    /// The question whose answer says that everything was given.
    asked: Option<u64>,
    /// The keys that a first copy brought, if the target had some before it.
    copied: Option<Keys>,
}

impl Remote {
    /// Follows it behind this; a first copy that was interrupted begins again, for which keys it brought is not known.
    pub fn new(served: Served, done: Option<Token>) -> Remote {
        let now = Instant::now();
        Remote {
            served,
            is_stamped: false,
            link: None,
            at: done.filter(|done| !done.is_copying()),
            part: Vec::new(),
            beat: None,
            offset_ms: 0,
            heard: now,
            trouble: None,
            refusal: None,
            retry_at: now,
            backoff: BACKOFF.0,
            asked: None,
            copied: None,
        }
    }

    /// The same of one of two sites, whose events have stamps.
    pub fn stamped(served: Served, done: Option<Token>) -> Remote {
        Remote { is_stamped: true, ..Remote::new(served, done) }
    }

    pub fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Stamped>, ReplicaError> {
        if let Some(why) = self.refusal.take() {
            return Err(self.refused(why));
        }
        let deadline = Instant::now() + timeout;
        if self.link.is_none() && !self.connect(deadline)? {
            return Ok(Vec::new());
        }
        let mut batch = Vec::new();
        while batch.len() < max {
            let Some(link) = &mut self.link else { break };
            let deadline = if batch.is_empty() { deadline } else { Instant::now() };
            let line = link.next(deadline);
            self.heard = link.heard();
            match line {
                Ok(Some(Line::Event(event))) => self.take(event, &mut batch),
                Ok(Some(Line::Beat(beat))) => {
                    self.note(beat);
                    // It may be what the caller waits for.
                    if batch.is_empty() && self.asked == Some(beat.answers) {
                        break;
                    }
                }
                Ok(Some(Line::Over(why))) => self.lose(why),
                Ok(None) => break,
                Err(Failed::Passing(why)) => self.lose(why),
                Err(Failed::Final(why)) => {
                    self.lose(why.clone());
                    if batch.is_empty() {
                        return Err(self.refused(why));
                    }
                    self.refusal = Some(why);
                }
            }
        }
        Ok(batch)
    }

    /// An event goes into the batch, and one within a transaction when that is whole.
    fn take(&mut self, stamped: Stamped, batch: &mut Vec<Stamped>) {
        let is_whole = match &stamped.event {
            Event::Change(change) => ends_unit(change),
            _ => true,
        };
        self.part.push(stamped);
        if !is_whole {
            return;
        }
        match self.part.last().map(|stamped| stamped.event.token()) {
            Some(Some(token)) => self.at = Some(*token),
            // What was given does not count any more.
            Some(None) => self.at = None,
            None => {}
        }
        batch.append(&mut self.part);
    }

    fn note(&mut self, beat: Beat) {
        let offset = clock::now_ms() as i64 - beat.ms as i64;
        // The shortest way is nearest to the truth.
        self.offset_ms = if self.beat.is_some() { self.offset_ms.min(offset) } else { offset };
        self.beat = Some(beat);
    }

    /// `true`: there is a link now.
    fn connect(&mut self, deadline: Instant) -> Result<bool, ReplicaError> {
        let wait = self.retry_at.min(deadline).saturating_duration_since(Instant::now());
        std::thread::sleep(wait);
        if Instant::now() < self.retry_at {
            return Ok(false);
        }
        match Link::open(&self.served, start_at(self.at), self.is_stamped) {
            Ok(link) => {
                self.heard = link.heard();
                (self.link, self.trouble, self.backoff) = (Some(link), None, BACKOFF.0);
                Ok(true)
            }
            Err(Failed::Passing(why)) => {
                self.lose(why);
                Ok(false)
            }
            Err(Failed::Final(why)) => {
                self.lose(why.clone());
                Err(self.refused(why))
            }
        }
    }

    fn lose(&mut self, why: String) {
        (self.link, self.asked, self.beat) = (None, None, None);
        // The token before a transaction brings all of it again.
        self.part.clear();
        self.trouble = Some(why);
        self.retry_at = Instant::now() + self.backoff;
        self.backoff = (2 * self.backoff).min(BACKOFF.1);
    }

    fn refused(&self, why: String) -> ReplicaError {
        ReplicaError::Refused { address: self.served.to_string(), why }
    }

    pub fn rewind(&mut self, done: Option<Token>) {
        (self.link, self.asked, self.beat) = (None, None, None);
        self.part.clear();
        self.at = done;
    }

    pub fn has_given(&self, position: u64) -> bool {
        self.beat.is_some_and(|beat| beat.token.position() >= position)
    }

    pub fn end(&self) -> Option<u64> {
        self.beat.map(|beat| beat.end)
    }

    pub fn age_ms(&self, ts_ms: u64) -> u64 {
        let here = clock::now_ms() as i64 - self.offset_ms;
        u64::try_from(here - ts_ms as i64).unwrap_or(0)
    }

    pub fn silent_ms(&self) -> u64 {
        match &self.link {
            // It says something each second.
            Some(_) if self.heard.elapsed() < Duration::from_secs(2) => 0,
            _ => self.heard.elapsed().as_millis() as u64,
        }
    }

    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    pub fn is_drained(&mut self) -> bool {
        let Some(link) = &mut self.link else { return false };
        let answer = self.beat.filter(|beat| Some(beat.answers) == self.asked);
        if answer.is_some_and(|beat| beat.token.position() >= beat.end) {
            self.asked = None;
            return true;
        }
        if answer.is_some() || self.asked.is_none() {
            match link.ask() {
                Ok(asked) => self.asked = Some(asked),
                Err(Failed::Passing(why) | Failed::Final(why)) => self.lose(why),
            }
        }
        false
    }

    pub fn begin_copy(&mut self, to: &Store) {
        let has_keys = to.scan(Cursor::START, Filter::all().keys_only()).next().is_some();
        self.copied = has_keys.then(Keys::default);
    }

    pub fn applied(&mut self, changes: &[&Change]) {
        if let Some(copied) = &mut self.copied {
            for change in changes.iter().filter(|change| !change.operation.removes()) {
                copied.add(&change.key, change.supplied_hash);
            }
        }
    }

    pub fn sweep(&mut self, to: &Store) -> Result<(), ReplicaError> {
        if let Some(copied) = &self.copied {
            sweep(to, |pair| Ok(copied.has(&pair.key, pair.supplied_hash)))?;
        }
        self.copied = None;
        Ok(())
    }
}
