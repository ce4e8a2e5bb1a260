//! A store follows another one: a first copy, then every change.

use crate::apply::{steps, Piece, Step};
use crate::error::{At, ReplicaError};
use crate::file::is_same;
use crate::place::{Place, Record};
use crate::source::{Local, Remote, Served, Source};
use crate::status::{ReplicaPhase, ReplicaStatus};
use hashmere::{Store, WriteBatch, WriteError};
use hashmere_feed::{Change, Event, Token};
use hashmere_os::clock;
use std::time::Duration;

/// With this [`origin`](hashmere::Options::origin) the targets of replicators are opened ("REPL").
pub const ORIGIN: u32 = u32::from_be_bytes(*b"REPL");

/// Events that are taken from the feed at once.
const EVENTS: usize = 1024;

/// Copies one store to another and then applies its changes. Dropped or killed, the next one resumes.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("hashmere-replica-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// use hashmere::Options;
/// use hashmere_replica::{Replicator, ORIGIN};
/// use std::time::Duration;
///
/// let from = Options::new().feed(8 << 20).feed_values(true).open(dir.join("from.mere"))?;
/// let to = Options::new().origin(ORIGIN).open(dir.join("to.mere"))?;
/// from.set("key", b"value")?;
/// let mut replicator = Replicator::open(&from, &to)?;
/// while replicator.step(Duration::ZERO)? {}
/// assert_eq!(to.get("key")?.as_deref(), Some(&b"value"[..]));
/// # drop((replicator, from, to));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replicator {
    source: Source,
    to: Store,
    /// The beginning of a batch that was begun before, the rest of which has not come yet.
    held: Vec<Event>,
    place: Place,
    at: Record,
    status: ReplicaStatus,
    batch: WriteBatch,
}

impl Replicator {
    /// Resumes where the target's place says; begins with a first copy where it has none, or it is gone.
    ///
    /// # Errors
    /// [`ReplicaError::Taken`], [`ReplicaError::SameStore`], [`Feed`](ReplicaError::Feed): the source keeps no changes.
    pub fn open(from: &Store, to: &Store) -> Result<Replicator, ReplicaError> {
        if is_same(from, to) {
            return Err(ReplicaError::SameStore { path: to.path().into() });
        }
        let place = Place::take(to)?;
        let source = Source::Local(Box::new(Local::open(from, place.read().done)?));
        Ok(Replicator::with(source, to, place))
    }

    /// The same for a store that is served. It is connected to by [`step`](Self::step), which waits where it is not
    /// there.
    ///
    /// # Errors
    /// [`ReplicaError::Taken`].
    pub fn open_served(from: &Served, to: &Store) -> Result<Replicator, ReplicaError> {
        let place = Place::take(to)?;
        let source = Source::Remote(Box::new(Remote::new(from.clone(), place.read().done)));
        Ok(Replicator::with(source, to, place))
    }

    fn with(source: Source, to: &Store, place: Place) -> Replicator {
        let at = place.read();
        let is_live = at.done.is_some_and(|token| !token.is_copying());
        let phase = if is_live { ReplicaPhase::Live } else { ReplicaPhase::Copying };
        let (changes, copied) = place.counts();
        let status = ReplicaStatus { phase, changes, copied, pid: Some(std::process::id()), ..Default::default() };
        Replicator { source, to: to.clone(), held: Vec::new(), place, at, status, batch: WriteBatch::new() }
    }

    /// Applies what there is, some of it; waits for the first change for as long as this. `false`: there was nothing.
    ///
    /// # Errors
    /// Those of either store. The target's place is before what could not be applied: the call may be tried again.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, ReplicaError> {
        let mut events = std::mem::take(&mut self.held);
        events.extend(self.source.next_batch(EVENTS, timeout)?);
        let whole = self.unfinished();
        if let Some(whole) = whole {
            // What was one batch when it was begun is one again.
            while is_before(&events, whole) {
                let more = self.source.next_batch(EVENTS, Duration::ZERO)?;
                if more.is_empty() {
                    break;
                }
                events.extend(more);
            }
            if is_before(&events, whole) && !self.source.has_given(whole) {
                self.held = events;
                self.show(None);
                return Ok(false);
            }
        }
        if events.is_empty() {
            self.show(None);
            return Ok(false);
        }
        let result = steps(&events, whole).into_iter().try_for_each(|step| self.take(step));
        if result.is_err() {
            // The source is past what was not applied.
            self.source.rewind(self.at.done)?;
        }
        result.map(|()| true)
    }

    /// How far it is.
    pub fn status(&self) -> ReplicaStatus {
        self.status
    }

    /// Whether the source's name has been removed, or leads to another file by now: this one goes on with the old file.
    pub fn is_source_replaced(&self) -> bool {
        self.source.is_replaced()
    }

    /// Why a served source cannot be followed at the moment; it is tried again. `None`: it is followed, or local.
    pub fn trouble(&self) -> Option<&str> {
        self.source.trouble()
    }

    /// To be called when [`step`](Self::step) had nothing, and again after each such step: whether everything is
    /// applied that had happened when this was called first.
    pub fn is_caught_up(&mut self) -> bool {
        let is_drained = self.held.is_empty() && self.source.is_drained();
        self.show(None);
        is_drained
    }

    /// The position up to which a batch was begun, if its end is not noted.
    fn unfinished(&self) -> Option<u64> {
        self.at.next.filter(|next| self.at.done != Some(*next) && !next.is_copying()).map(|next| next.position())
    }

    fn take(&mut self, step: Step<'_>) -> Result<(), ReplicaError> {
        match step {
            Step::Reset => {
                // What is done does not count any more, however this ends.
                self.note(Record::default());
                self.source.begin_copy(&self.to);
                self.status = ReplicaStatus { changes: 0, copied: 0, phase: ReplicaPhase::Copying, ..self.status };
            }
            Step::Changes(piece) => {
                self.apply(&piece)?;
                self.source.applied(&piece.changes);
                self.show(piece.changes.last().copied());
            }
            Step::Clear(token) => {
                self.note(Record { next: Some(token), ..self.at });
                self.to.clear().at(&self.to)?;
                self.note(Record { done: Some(token), next: Some(token) });
            }
            Step::Synced(token) => {
                self.source.sweep(&self.to)?;
                self.note(Record { done: Some(token), next: Some(token) });
                self.status.phase = ReplicaPhase::Live;
                self.show(None);
            }
        }
        Ok(())
    }

    fn note(&mut self, record: Record) {
        self.place.write(record);
        self.at = record;
    }

    fn apply(&mut self, piece: &Piece<'_>) -> Result<(), ReplicaError> {
        self.note(Record { next: Some(piece.end), ..self.at });
        match piece.apply(&self.to, &mut self.batch) {
            Ok(()) => {}
            Err(error) => match piece.halves().filter(|_| is_too_much(&error)) {
                Some(halves) => return halves.iter().try_for_each(|half| self.apply(half)),
                None if matches!(error, WriteError::TooManyKeys { .. }) => piece.apply_singly(&self.to).at(&self.to)?,
                None => return Err(error).at(&self.to),
            },
        }
        self.note(Record { done: Some(piece.end), next: Some(piece.end) });
        let is_copying = piece.end.is_copying();
        let counter = if is_copying { &mut self.status.copied } else { &mut self.status.changes };
        *counter += piece.changes.len() as u64;
        Ok(())
    }

    /// Renews the status that others see.
    fn show(&mut self, last: Option<&Change>) {
        let position = self.at.done.as_ref().map_or(0, Token::position);
        let source_position = self.source.end().unwrap_or(self.status.source_position).max(position);
        let now = clock::now_ms();
        let age_ms = last.map(|change| self.source.age_ms(change.ts_ms));
        let status = &mut self.status;
        (status.position, status.source_position, status.updated_ms) = (position, source_position, now);
        match age_ms {
            _ if source_position <= position => status.lag_ms = 0,
            Some(age_ms) => status.lag_ms = age_ms,
            None => {}
        }
        // What is not heard of may be behind by as much.
        status.lag_ms = status.lag_ms.max(self.source.silent_ms());
        self.place.show(status);
    }
}

/// Whether less of it may go.
fn is_too_much(error: &WriteError) -> bool {
    matches!(
        error,
        WriteError::TooManyKeys { .. } | WriteError::Full { .. } | WriteError::NoSpace(_) | WriteError::TooLarge { .. }
    )
}

/// Whether these are changes that end before this position.
fn is_before(events: &[Event], position: u64) -> bool {
    let is_reset = events.iter().any(|event| matches!(event, Event::Reset { .. }));
    let last = events.iter().rev().find_map(Event::token).map(Token::position);
    !is_reset && last.is_some_and(|last| last < position)
}
