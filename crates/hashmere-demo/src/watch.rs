//! The reader process: opens the store read-only and shows how the numbers grow. All it knows it reads there.

use crate::failure::{Failure, Outcome};
use crate::job::{self, Chunk, State, WordCount};
use crate::screen::{Frame, Screen};
use crate::worker::number;
use clap::Args;
use hashmere::{Cursor, Filter, Options, Store};
use std::os::unix::process::parent_id;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between two frames on a terminal, and in a pipe.
const FRAME: Duration = Duration::from_millis(125);
const LINE: Duration = Duration::from_millis(1000);
/// Words shorter than this ("the", "of") are not listed among the top ones.
const SHORT: usize = 6;

/// The arguments of the reader.
#[derive(Args, Debug)]
pub struct Watch {
    store: PathBuf,
}

impl Watch {
    /// Runs it until the job is over.
    pub fn run(self) -> Outcome {
        let store = Options::new().read_only().open(&self.store)?;
        let parent = parent_id();
        let mut screen = Screen::new();
        let mut reader = Reader::new(&store)?;
        let period = if screen.is_terminal() { FRAME } else { LINE };
        let mut next = Instant::now();
        loop {
            let over = store.contains_key(job::JOB_OVER)? || parent_id() != parent;
            let events = reader.events(&store)?;
            let due = over || Instant::now() >= next;
            if due {
                screen.show(&reader.frame(&store)?, &events)?;
                next = Instant::now() + period;
            } else if !events.is_empty() {
                screen.tell(&events)?;
            }
            if over {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What stays the same from frame to frame, and what rates are computed from.
struct Reader {
    started_ms: u64,
    files: u64,
    bytes: u64,
    slots: usize,
    events: u64,
    last: (f64, u64),
}

impl Reader {
    fn new(store: &Store) -> Result<Reader, Failure> {
        Ok(Reader {
            started_ms: number(store, job::JOB_STARTED)?,
            files: number(store, job::JOB_FILES)?,
            bytes: number(store, job::JOB_BYTES)?,
            slots: usize::try_from(number(store, job::JOB_SLOTS)?).unwrap_or(0),
            events: 0,
            last: (0.0, 0),
        })
    }

    /// The messages that are new.
    fn events(&mut self, store: &Store) -> Result<Vec<String>, Failure> {
        let mut events = Vec::new();
        while let Some(text) = store.get(&event_key(self.events))? {
            events.push(String::from_utf8_lossy(&text).into_owned());
            self.events += 1;
        }
        Ok(events)
    }

    fn frame(&mut self, store: &Store) -> Result<Frame, Failure> {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
        let seconds = now_ms.saturating_sub(self.started_ms) as f64 / 1000.0;
        let updates = number(store, job::LIVE_UPDATES)?;
        let (last_seconds, last_updates) = self.last;
        let elapsed = (seconds - last_seconds).max(0.001);
        let rate = updates.saturating_sub(last_updates) as f64 / elapsed;
        self.last = (seconds, updates);
        let mut frame = Frame {
            seconds,
            files: self.files,
            bytes_total: self.bytes,
            bytes: 0,
            words: number(store, job::LIVE_WORDS)?,
            distinct: 0,
            updates_per_second: rate,
            slots: Vec::new(),
            top: Vec::new(),
        };
        for slot in 0..self.slots {
            let text = store.get(&job::slot_key(slot))?.unwrap_or_default();
            frame.slots.push(String::from_utf8_lossy(&text).into_owned());
        }
        survey(store, &mut frame)?;
        Ok(frame)
    }
}

/// The key of a message. They are numbered from 0.
pub fn event_key(number: u64) -> Vec<u8> {
    [job::EVENT_PREFIX, format!("{number:04}").as_bytes()].concat()
}

/// One scan over the whole table while the workers write: what is done, how many words, which are the most frequent.
fn survey(store: &Store, frame: &mut Frame) -> Outcome {
    const TOP: usize = 8;
    let mut top: Vec<(u64, Vec<u8>)> = Vec::new();
    for pair in store.scan(Cursor::START, Filter::all()) {
        let pair = pair?;
        if let Some(word) = pair.key.strip_prefix(job::WORD_PREFIX) {
            frame.distinct += 1;
            let total = WordCount::decode(&pair.value)?.total;
            if word.len() >= SHORT && (top.len() < TOP || top.last().is_some_and(|(least, _)| total > *least)) {
                let place = top.partition_point(|(other, _)| *other >= total);
                top.insert(place, (total, word.to_vec()));
                top.truncate(TOP);
            }
        } else if pair.key.starts_with(job::CHUNK_PREFIX) {
            let chunk = Chunk::decode(&pair.value)?;
            if matches!(chunk.state, State::Done { .. }) {
                frame.bytes += chunk.piece.len;
            }
        }
    }
    frame.top = top.into_iter().map(|(total, word)| (String::from_utf8_lossy(&word).into_owned(), total)).collect();
    Ok(())
}
