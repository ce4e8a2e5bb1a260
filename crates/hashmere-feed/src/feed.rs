//! Following: a first copy where there must be one, then the changes.
//!
//! A first copy reads the keys and the changes in turns, so that no change is lost to the ring while the keys are read.
//! Until all keys are read, a change that its key has passed already is left out: what superseded it has an entry of
//! its own, or is what was read. So at the event *synced* nothing that was delivered is older than what was delivered
//! before it.

use crate::entry::{change_of, read_of};
use crate::error::FeedError;
use crate::event::{Change, Event, ResetReason, Value};
use crate::options::{FeedOptions, FeedStart};
use crate::token::{Token, ALL_READ};
use hashmere::{Cursor, Filter, Item, Key, Store};
use hashmere_engine::{FeedInfo, FeedStep, SharedEngine, StoreHandle};
use hashmere_format::feed::{bit, decode, Decoded, EntryHead};
use hashmere_os::clock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keys that a first copy reads before it looks at the changes again.
const KEYS_AT_ONCE: usize = 256;
/// Places of the index that it passes at most for them.
const PLACES_AT_ONCE: usize = 1 << 16;
/// Entries that are read at once.
const ENTRIES_AT_ONCE: usize = 256;

/// What a consumer does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It begins again.
    Reset(ResetReason),
    /// It reads the keys from here on.
    Copying(Cursor),
    /// All keys are read; the changes up to this position are from before the end.
    Catching(u64),
    /// It follows.
    Live,
}

/// A consumer of a store's changes.
///
/// It is an iterator that waits without end; [`next_within`](Feed::next_within) waits for a time.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("hashmere-feed-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// use hashmere::Options;
/// use hashmere_feed::{Event, Feed, FeedOptions, FeedStart};
/// use std::time::Duration;
///
/// let store = Options::new().feed(8 << 20).open(dir.join("store.mere"))?;
/// let mut feed = Feed::open(&store, FeedStart::Now, FeedOptions::new().values(true))?;
/// store.set(b"key", b"value")?;
/// let Some(Event::Change(change)) = feed.next_within(Duration::from_secs(5))? else { panic!() };
/// assert_eq!((change.key.as_slice(), change.value.bytes()), (b"key".as_slice(), Some(b"value".as_slice())));
///
/// // In another process, or after a restart: behind what was dealt with.
/// let mut feed = Feed::open(&store, FeedStart::At(change.token), FeedOptions::new())?;
/// assert_eq!(feed.next_within(Duration::ZERO)?, None);
/// # drop((feed, store));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Feed {
    store: Store,
    options: FeedOptions,
    /// Where it is: behind everything that is in `ready`.
    at: Token,
    /// Where what was given ends.
    given: Token,
    phase: Phase,
    ready: VecDeque<Event>,
    words: Vec<u64>,
}

impl Feed {
    /// Follows the changes of a store.
    ///
    /// # Errors
    /// [`FeedError::Off`]: the store keeps none. Those of reading.
    pub fn open(store: &Store, start: FeedStart, options: FeedOptions) -> Result<Feed, FeedError> {
        let engine = store.shared().engine();
        let info = engine.feed_info().ok_or(FeedError::Off)?;
        let now = Token {
            store: engine.uuid(),
            feed: info.number,
            generation: engine.root_generation(),
            position: info.position,
            cursor: None,
        };
        let (at, phase) = match start {
            // Until the reset is given, the place is one that is refused: of no feed.
            FeedStart::Start => (Token { feed: 0, ..now }, Phase::Reset(ResetReason::Asked)),
            FeedStart::Now => (now, Phase::Live),
            FeedStart::At(token) => match refusal(&token, &now, &info) {
                Some(reason) => (token, Phase::Reset(reason)),
                None => (token, phase_of(&token, &info)),
            },
        };
        Ok(Feed { store: store.clone(), options, at, given: at, phase, ready: VecDeque::new(), words: Vec::new() })
    }

    /// The next event; `None` if there is none within this time.
    ///
    /// # Errors
    /// [`FeedError::Off`]: the feed was switched off. Those of reading. The consumer may try again: nothing is passed
    /// over.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Event>, FeedError> {
        self.peek_within(timeout)?;
        Ok(self.take_ready())
    }

    /// The next event, which stays the next one; `None` if there is none within this time.
    ///
    /// # Errors
    /// As [`next_within`](Self::next_within).
    pub fn peek_within(&mut self, timeout: Duration) -> Result<Option<&Event>, FeedError> {
        let start = Instant::now();
        while self.ready.is_empty() {
            if self.advance()? {
                continue;
            }
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
                return Ok(None);
            };
            let Token { feed, position, generation, .. } = self.at;
            self.engine().wait_for_feed(feed, position, generation, left);
        }
        Ok(self.ready.front())
    }

    fn take_ready(&mut self) -> Option<Event> {
        let event = self.ready.pop_front()?;
        // A reset has no place: what comes is read from the beginning.
        self.given = event.token().copied().unwrap_or(self.at);
        Some(event)
    }

    /// What is there, at most about `max` events (a transaction is not divided); waits for the first one for as long as
    /// this.
    ///
    /// # Errors
    /// As [`next_within`](Self::next_within).
    pub fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Event>, FeedError> {
        let mut batch: Vec<Event> = self.next_within(timeout)?.into_iter().collect();
        while !batch.is_empty() && (batch.len() < max || self.is_within_transaction(&batch)) {
            if let Some(event) = self.take_ready() {
                batch.push(event);
            } else if !matches!(self.advance(), Ok(true)) {
                // An error is for the next call, which meets it again.
                break;
            }
        }
        Ok(batch)
    }

    fn is_within_transaction(&self, batch: &[Event]) -> bool {
        let of = |event: &Event| match event {
            Event::Change(change) => change.transaction.map(|part| part.id),
            _ => None,
        };
        let last = batch.last().and_then(of);
        last.is_some() && last == self.ready.front().and_then(of)
    }

    /// Where a consumer resumes that has dealt with every event that it got, and does not want those that its options
    /// leave out. (Where the next event is a part of a transaction: before that.)
    pub fn token(&self) -> Token {
        if self.ready.is_empty() {
            self.at
        } else {
            self.given
        }
    }

    /// How far behind the newest change it is, in positions.
    pub fn lag(&self) -> u64 {
        self.engine().feed_info().map_or(0, |info| info.position.saturating_sub(self.token().position))
    }

    pub(crate) fn shared(&self) -> &Arc<SharedEngine> {
        self.store.shared()
    }

    fn engine(&self) -> &hashmere_engine::FileEngine {
        self.store.shared().engine()
    }

    pub(crate) fn waits_at(&self) -> (u64, u64, u64) {
        let Token { feed, position, generation, .. } = self.at;
        // Where there is something to do already, no position is at the end.
        let is_idle = self.ready.is_empty() && self.phase == Phase::Live;
        (if is_idle { feed } else { 0 }, position, generation)
    }

    /// Does a piece of work, where nothing is ready. `false`: there is nothing to do now.
    fn advance(&mut self) -> Result<bool, FeedError> {
        // Also of what was left out.
        self.given = self.at;
        match self.phase {
            Phase::Reset(reason) => {
                self.begin()?;
                self.ready.push_back(Event::Reset { reason });
            }
            Phase::Copying(cursor) => {
                self.read_changes()?;
                if self.phase == Phase::Copying(cursor) {
                    self.read_keys(cursor)?;
                }
            }
            Phase::Catching(end) if self.at.position >= end => {
                self.set_phase(Phase::Live);
                self.ready.push_back(Event::Synced { token: self.at });
            }
            // A writer that crashed may have left a position behind the end, which another process is about to take.
            Phase::Catching(_) | Phase::Live => return self.read_changes(),
        }
        Ok(true)
    }

    fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
        self.at.cursor = match phase {
            Phase::Copying(cursor) => Some(cursor.0),
            Phase::Catching(_) => Some(ALL_READ),
            Phase::Reset(_) | Phase::Live => None,
        };
    }

    /// The changes first, then the keys: what is not among these has an entry behind that position.
    fn begin(&mut self) -> Result<(), FeedError> {
        let engine = self.store.shared().engine();
        let info = engine.feed_info().ok_or(FeedError::Off)?;
        let (feed, position, generation) = (info.number, info.position, engine.root_generation());
        self.at = Token { store: engine.uuid(), feed, position, generation, cursor: None };
        self.set_phase(Phase::Copying(Cursor::START));
        Ok(())
    }

    fn read_keys(&mut self, cursor: Cursor) -> Result<(), FeedError> {
        let mut filter = Filter::all().prefix(self.options.prefix.clone());
        if !self.options.values {
            filter = filter.keys_only();
        }
        let mut scan = self.store.scan(cursor, filter);
        let mut places = PLACES_AT_ONCE;
        let mut found = Vec::new();
        while found.len() < KEYS_AT_ONCE {
            match scan.next_within(&mut places) {
                Some(pair) => found.push((pair?, scan.cursor())),
                None => break,
            }
        }
        let next = scan.cursor();
        let ts_ms = clock::now_ms();
        for (pair, cursor) in found {
            let token = Token { cursor: Some(cursor.map_or(ALL_READ, |cursor| cursor.0)), ..self.at };
            self.ready.push_back(Event::Read(read_of(pair, self.options.values, ts_ms, token)));
        }
        match next {
            Some(cursor) => self.set_phase(Phase::Copying(cursor)),
            None => {
                let end = self.engine().feed_info().ok_or(FeedError::Off)?.position;
                self.set_phase(Phase::Catching(end));
            }
        }
        Ok(())
    }

    /// `false`: there is nothing behind its place.
    fn read_changes(&mut self) -> Result<bool, FeedError> {
        for read in 0..ENTRIES_AT_ONCE {
            let mut words = std::mem::take(&mut self.words);
            let step = self.engine().read_feed(self.at.feed, self.at.position, &mut words);
            self.words = words;
            match step? {
                FeedStep::Entry => match decode(&self.words) {
                    Some((head, changes)) => self.take(head, changes)?,
                    // Its writer published something else: damage, which a consumer survives as it does a gap.
                    None => return self.reset(ResetReason::Gap),
                },
                FeedStep::Gap => return self.reset(ResetReason::Gap),
                FeedStep::Gone => return self.reset(ResetReason::Gone),
                FeedStep::Off => {
                    self.engine().feed_info().ok_or(FeedError::Off)?;
                    return self.reset(ResetReason::OtherFeed);
                }
                FeedStep::End => {
                    let generation = self.engine().root_generation();
                    if generation != self.at.generation {
                        self.clear(generation, clock::now_ms());
                        return Ok(true);
                    }
                    return Ok(read > 0);
                }
            }
            if self.ready.len() >= ENTRIES_AT_ONCE {
                break;
            }
        }
        Ok(true)
    }

    fn reset(&mut self, reason: ResetReason) -> Result<bool, FeedError> {
        self.set_phase(Phase::Reset(reason));
        Ok(true)
    }

    fn clear(&mut self, generation: u64, ts_ms: u64) {
        self.at.generation = generation;
        self.ready.push_back(Event::Clear { ts_ms, token: self.at });
    }

    /// An entry: its changes, unless they are of an index that was cleared.
    fn take(&mut self, head: EntryHead, changes: Vec<Decoded>) -> Result<(), FeedError> {
        let ahead = head.generation.wrapping_sub(self.at.generation as u32) as i32;
        if ahead > 0 {
            self.clear(self.at.generation + u64::from(ahead.unsigned_abs()), head.ts_ms);
        }
        let here = self.at;
        let mut events = Vec::new();
        let (id, len) = (here.position, changes.len() as u32);
        for (index, change) in changes.into_iter().enumerate().filter(|_| ahead >= 0) {
            if !change.key.starts_with(&self.options.prefix) {
                continue;
            }
            let hash = change.head.hash.map(|hash| self.engine().as_supplied(hash));
            let is_copying = matches!(self.phase, Phase::Copying(_) | Phase::Catching(_));
            let (value, is_current) = self.value_of(&change, hash, is_copying)?;
            if !is_current {
                continue;
            }
            let at = (id, index as u32, len);
            events.push(Event::Change(change_of(&head, change, hash, value, at, here)));
        }
        self.at.position += 1;
        // A consumer that has dealt with the last of them has dealt with all.
        if let Some(Event::Change(last)) = events.last_mut() {
            last.token = self.at;
        }
        self.ready.extend(events);
        Ok(())
    }

    /// The value of a change, and whether it is what the key has; `true` where that is not asked.
    fn value_of(&self, change: &Decoded, hash: Option<u64>, current_only: bool) -> Result<(Value, bool), FeedError> {
        let is_gone = change.head.operation.removes();
        let wants_value = self.options.values && !is_gone;
        let is_here = change.head.bits & bit::VALUE != 0;
        let value = match change.value.as_ref().filter(|_| is_here && wants_value) {
            Some(bytes) => Value::Bytes(bytes.clone()),
            None if is_gone => Value::Absent,
            None => Value::NotKept,
        };
        if !current_only && (!wants_value || is_here) {
            return Ok((value, true));
        }
        let key = hash.map_or(Key::Bytes(&change.key), |hash| Key::Hashed(&change.key, hash));
        let now: Option<Item> = match wants_value && !is_here {
            true => self.store.get_item(key)?,
            false => self.store.metadata(key)?.map(|metadata| Item { value: Vec::new(), metadata }),
        };
        let same = now.as_ref().is_some_and(|item| item.metadata.version.0 == change.head.version);
        let is_current = !current_only || if is_gone { now.is_none() } else { same };
        Ok(match now.filter(|_| same && wants_value && !is_here) {
            Some(item) => (Value::Bytes(item.value), is_current),
            None if wants_value && !is_here => (Value::Superseded, is_current),
            None => (value, is_current),
        })
    }
}

/// Why a token cannot be resumed from.
fn refusal(token: &Token, now: &Token, info: &FeedInfo) -> Option<ResetReason> {
    if token.store != now.store || token.feed != now.feed || token.generation > now.generation {
        return Some(ResetReason::OtherFeed);
    }
    let is_there = (info.oldest..=info.position).contains(&token.position);
    (!is_there).then_some(ResetReason::Gone)
}

fn phase_of(token: &Token, info: &FeedInfo) -> Phase {
    match token.cursor {
        None => Phase::Live,
        Some(ALL_READ) => Phase::Catching(info.position),
        Some(cursor) => Phase::Copying(Cursor(cursor)),
    }
}

impl Iterator for Feed {
    type Item = Result<Event, FeedError>;

    /// Waits until there is an event.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_within(Duration::from_secs(3600)) {
                Ok(None) => {}
                done => return done.transpose(),
            }
        }
    }
}

impl Event {
    /// The change, if it is one.
    pub fn change(&self) -> Option<&Change> {
        match self {
            Event::Read(change) | Event::Change(change) => Some(change),
            _ => None,
        }
    }
}
