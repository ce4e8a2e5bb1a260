//! A worker process: walks over the chunks, claims, applies and finishes them (see [`job`]).

use crate::failure::{Failure, Outcome};
use crate::job::{self, Chunk, State, WordCount};
use crate::words::{count_lines, count_words, Counts};
use clap::Args;
use hashmere::{CasOutcome, Change, Counter, Expected, Options, Store, Update, Updated, Version};
use std::os::unix::process::parent_id;
use std::path::PathBuf;

/// Updates that are added to the live counter at once.
const AT_ONCE: u64 = 64;

/// The arguments of a worker.
#[derive(Args, Debug)]
pub struct Worker {
    store: PathBuf,
    slot: usize,
}

impl Worker {
    /// Runs it until no chunk is left to claim.
    pub fn run(self) -> Outcome {
        if self.slot >= job::MAX_SLOTS {
            return Err(Failure::new("no such slot"));
        }
        let store = Options::new().create(false).open(&self.store)?;
        let chunks = number(&store, job::JOB_CHUNKS)?;
        let parent = parent_id();
        for id in 1..=chunks {
            if parent_id() != parent {
                return Err(Failure::new("the demo is gone; its worker ends"));
            }
            let key = job::chunk_key(id);
            let item = store.get_item(&key)?.ok_or_else(|| job::missing(&key))?;
            let chunk = Chunk::decode(&item.value)?;
            match chunk.state {
                State::Todo => {
                    if let Some(version) = self.claim(&store, &key, &chunk, item.metadata.version)? {
                        self.work(&store, id, &chunk, version, false)?;
                    }
                }
                // Left by a process of this slot that was killed.
                State::Taken(slot) if slot == self.slot => {
                    self.work(&store, id, &chunk, item.metadata.version, true)?
                }
                State::Taken(_) | State::Done { .. } => {}
            }
        }
        Ok(store.set(&job::slot_key(self.slot), b"done\t0\t")?).map(|_| ())
    }

    /// Step 1. `None`: another slot was faster.
    fn claim(&self, store: &Store, key: &[u8], chunk: &Chunk, seen: Version) -> Result<Option<Version>, Failure> {
        let taken = Chunk { state: State::Taken(self.slot), piece: chunk.piece.clone() };
        let claimed = store.cas(key, Expected::Version(seen), Change::Set(&taken.encode()))?;
        Ok(match claimed {
            CasOutcome::Stored(stored) => Some(stored.version),
            _ => None,
        })
    }

    /// Steps 2 and 3 for a chunk that this slot has taken; `resumed`: by a process before this one.
    fn work(&self, store: &Store, id: u64, chunk: &Chunk, version: Version, resumed: bool) -> Outcome {
        let pid = std::process::id();
        let shown = format!("{pid}\t{id}\t{}", chunk.piece.path.display());
        store.set(&job::slot_key(self.slot), shown.as_bytes())?;
        let text = chunk.piece.read()?;
        let mut counts = Counts::new();
        let words = count_words(&text, &mut counts);
        let mut meter = Meter { store, words: 0, updates: 0 };
        let mut skipped = 0;
        for (word, count) in &counts {
            if self.apply(store, id, word, *count)? {
                meter.add(*count)?;
            } else {
                skipped += 1;
            }
        }
        meter.flush()?;
        if resumed {
            store.set(&job::resumed_key(id), skipped.to_string().as_bytes())?;
        }
        let done = State::Done { slot: self.slot, lines: count_lines(&text), words };
        let done = Chunk { state: done, piece: chunk.piece.clone() };
        let key = job::chunk_key(id);
        match store.cas(&key, Expected::Version(version), Change::Set(&done.encode()))? {
            CasOutcome::Stored(_) => {}
            other => {
                let text = format!("chunk {id} of worker {} was changed by another: {other:?}", self.slot + 1);
                return Err(Failure::new(text));
            }
        }
        store.incr(job::LIVE_BYTES, chunk.piece.len, Counter::EXISTING)?;
        Ok(())
    }

    /// Step 2 for one word. `false`: the word had it already.
    fn apply(&self, store: &Store, id: u64, word: &[u8], count: u64) -> Result<bool, Failure> {
        let mut bad = None;
        let updated = store.update_with(&job::word_key(word), |item| {
            let decoded = item.map_or(Ok(WordCount::default()), |item| WordCount::decode(&item.value));
            let mut count_of_word = match decoded {
                Ok(count_of_word) => count_of_word,
                Err(failure) => {
                    bad = Some(failure);
                    return Update::Keep;
                }
            };
            if count_of_word.marks[self.slot] >= id {
                return Update::Keep;
            }
            count_of_word.total += count;
            count_of_word.marks[self.slot] = id;
            Update::Set(count_of_word.encode())
        })?;
        bad.map_or(Ok(updated != Updated::Unchanged), Err)
    }
}

/// Adds to the live counters, some updates at a time.
struct Meter<'a> {
    store: &'a Store,
    words: u64,
    updates: u64,
}

impl Meter<'_> {
    fn add(&mut self, words: u64) -> Outcome {
        self.words += words;
        self.updates += 1;
        if self.updates >= AT_ONCE {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Outcome {
        self.store.incr(job::LIVE_WORDS, self.words, Counter::EXISTING)?;
        self.store.incr(job::LIVE_UPDATES, self.updates, Counter::EXISTING)?;
        (self.words, self.updates) = (0, 0);
        Ok(())
    }
}

/// A key that holds a number.
pub fn number(store: &Store, key: &[u8]) -> Result<u64, Failure> {
    let value = store.get(key)?.ok_or_else(|| job::missing(key))?;
    let number = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Failure::new(format!("`{}` is no number", value.escape_ascii())))
}
