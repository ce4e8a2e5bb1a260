//! A store follows another one: a first copy, then every change.

use crate::apply::{steps, Piece, Step};
use crate::error::{At, ReplicaError};
use crate::place::{Place, Record};
use crate::status::{ReplicaPhase, ReplicaStatus};
use crate::sweep::sweep;
use hashmere::{Store, WriteBatch, WriteError};
use hashmere_feed::{Change, Event, Feed, FeedOptions, FeedStart, Token};
use hashmere_os::clock;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
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
    from: Store,
    to: Store,
    /// Device and inode of the source.
    file: Option<(u64, u64)>,
    feed: Feed,
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
        let source = file_of(from.path());
        if is_same(from, to) {
            return Err(ReplicaError::SameStore { path: to.path().into() });
        }
        let place = Place::take(to)?;
        let at = place.read();
        let feed = follow(from, at)?;
        let is_live = at.done.is_some_and(|token| !token.is_copying());
        let phase = if is_live { ReplicaPhase::Live } else { ReplicaPhase::Copying };
        let (changes, copied) = place.counts();
        let status = ReplicaStatus { phase, changes, copied, pid: Some(std::process::id()), ..Default::default() };
        let (from, to, batch) = (from.clone(), to.clone(), WriteBatch::new());
        Ok(Replicator { from, to, file: source, feed, place, at, status, batch })
    }

    /// Applies what there is, some of it; waits for the first change for as long as this. `false`: there was nothing.
    ///
    /// # Errors
    /// Those of either store. The target's place is before what could not be applied: the call may be tried again.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, ReplicaError> {
        let mut events = self.feed.next_batch(EVENTS, timeout).at(&self.from)?;
        if events.is_empty() {
            self.show(None);
            return Ok(false);
        }
        let whole = self.unfinished();
        if let Some(whole) = whole {
            // What was one batch when it was begun is one again.
            while last_position(&events).is_some_and(|last| last < whole) {
                let more = self.feed.next_batch(EVENTS, Duration::ZERO).at(&self.from)?;
                if more.is_empty() {
                    break;
                }
                events.extend(more);
            }
        }
        let result = steps(&events, whole).into_iter().try_for_each(|step| self.take(step));
        if result.is_err() {
            // The feed is past what was not applied.
            self.feed = follow(&self.from, self.at)?;
        }
        result.map(|()| true)
    }

    /// How far it is.
    pub fn status(&self) -> ReplicaStatus {
        self.status
    }

    /// Whether the source's name has been removed, or leads to another file by now: this one goes on with the old file.
    pub fn is_source_replaced(&self) -> bool {
        self.file.is_some() && file_of(self.from.path()) != self.file
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
                self.status = ReplicaStatus { changes: 0, copied: 0, phase: ReplicaPhase::Copying, ..self.status };
            }
            Step::Changes(piece) => {
                self.apply(&piece)?;
                self.show(piece.changes.last().copied());
            }
            Step::Clear(token) => {
                self.note(Record { next: Some(token), ..self.at });
                self.to.clear().at(&self.to)?;
                self.note(Record { done: Some(token), next: Some(token) });
            }
            Step::Synced(token) => {
                sweep(&self.from, &self.to)?;
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
        let source_position = hashmere_feed::info(&self.from).map_or(position, |info| info.position);
        let now = clock::now_ms();
        let status = &mut self.status;
        (status.position, status.source_position, status.updated_ms) = (position, source_position, now);
        match last {
            _ if source_position <= position => status.lag_ms = 0,
            Some(change) => status.lag_ms = now.saturating_sub(change.ts_ms),
            None => {}
        }
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

/// The source's events behind what is done.
fn follow(from: &Store, at: Record) -> Result<Feed, ReplicaError> {
    let start = at.done.map_or(FeedStart::Start, FeedStart::At);
    Feed::open(from, start, FeedOptions::new().values(true)).at(from)
}

fn last_position(events: &[Event]) -> Option<u64> {
    events.iter().rev().find_map(Event::token).map(Token::position)
}

/// Whether two handles are of one file.
pub(crate) fn is_same(a: &Store, b: &Store) -> bool {
    file_of(a.path()).is_some_and(|file| file_of(b.path()) == Some(file))
}

/// Device and inode.
fn file_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}
