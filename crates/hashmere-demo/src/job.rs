//! The job in the store: its keys, what they hold, and why the count is exact.
//!
//! # The keys
//! | key | value |
//! |---|---|
//! | `chunk:<id>` | a piece of work and its state: `todo`, `taken` by a slot, `done` by a slot |
//! | `word:<word>` | the total, then for each slot the id of the last chunk that it applied to this word |
//! | `live:words`, `live:bytes`, `live:updates` | plain atomic counters for the display, approximate after a kill |
//! | `slot:<n>`, `event:<n>`, `resumed:<id>`, `job:*` | what the watcher and the report show |
//!
//! # Why nothing is lost or counted twice
//! A *slot* is the role of a worker process. A slot has one process at a time: the parent starts the next one only
//! after it has waited for the end of the killed one, which writes nothing more. There are no transactions over several
//! keys; each of these steps changes one key atomically:
//!
//! 1. *claim*: `cas` of `chunk:<id>` by its version, from `todo` to `taken(slot)`;
//! 2. *apply*, for each distinct word of the chunk: `update` of `word:<w>`: if its mark of this slot is below the id
//!    of the chunk, add the count *and* set the mark to the id; otherwise leave it as it is;
//! 3. *finish*: `cas` of `chunk:<id>` by its version, from `taken(slot)` to `done(slot)`.
//!
//! A process walks over the chunks from the first id to the last: it claims what is `todo`, does steps 2 and 3 for
//! what is `taken` by its own slot, and passes over everything else.
//!
//! *The ids that a slot applies only increase*, through all its processes. A state never goes back, and the slot passed
//! over an id only when that chunk was `taken` by or `done` by a slot. So when it claims a chunk, no lower id is
//! `todo`. (A chunk that a killed process left `taken` is the last one that it claimed: there was at most one, because
//! it claims the next only after step 3.) Therefore `mark < id` says exactly: this slot has not applied this chunk
//! to this word.
//!
//! A kill may come between any two steps, or within one, which the store makes to have happened or not:
//! - before or within 1, not happened: the chunk is still `todo`, and any slot claims it;
//! - behind 1, within 2, or before 3: the chunk is `taken` by the slot; its next process finds it on its walk, counts
//!   its words again (the file is the same), and applies those that are not marked yet: each word exactly once;
//! - behind 3: all words were applied, and no worker touches the chunk again.
//!
//! At the end every chunk is `done`, so every word of it was added once. Bytes, lines and words of the input are summed
//! from the `done` records, which are written once, so these sums are exact too. The `live:` counters are changed by
//! plain `incr` at steps of their own: a kill between an update and its `incr` leaves them a little too low.

use crate::failure::Failure;
use crate::input::Piece;
use std::path::PathBuf;

/// The most slots there can be.
pub const MAX_SLOTS: usize = 16;
/// Where the words are.
pub const WORD_PREFIX: &[u8] = b"word:";
/// Where the chunks are.
pub const CHUNK_PREFIX: &[u8] = b"chunk:";
/// Where the messages are.
pub const EVENT_PREFIX: &[u8] = b"event:";
/// Words seen.
pub const LIVE_WORDS: &[u8] = b"live:words";
/// Bytes of input seen.
pub const LIVE_BYTES: &[u8] = b"live:bytes";
/// Updates of words.
pub const LIVE_UPDATES: &[u8] = b"live:updates";
/// Number of chunks.
pub const JOB_CHUNKS: &[u8] = b"job:chunks";
/// Number of bytes.
pub const JOB_BYTES: &[u8] = b"job:bytes";
/// Number of files.
pub const JOB_FILES: &[u8] = b"job:files";
/// Number of slots.
pub const JOB_SLOTS: &[u8] = b"job:slots";
/// When it started, in milliseconds since 1970.
pub const JOB_STARTED: &[u8] = b"job:started";
/// Process that runs the demo.
pub const JOB_PID: &[u8] = b"job:pid";
/// Present when it is over.
pub const JOB_OVER: &[u8] = b"job:over";

/// The key of a chunk. Ids start at 1.
pub fn chunk_key(id: u64) -> Vec<u8> {
    format!("chunk:{id:06}").into_bytes()
}

/// The key of what a slot shows. Slots start at 0; people count from 1.
pub fn slot_key(slot: usize) -> Vec<u8> {
    format!("slot:{}", slot + 1).into_bytes()
}

/// The key of a word.
pub fn word_key(word: &[u8]) -> Vec<u8> {
    [WORD_PREFIX, word].concat()
}

/// The key under which a process that took over a chunk tells how much of it was done.
pub fn resumed_key(id: u64) -> Vec<u8> {
    format!("resumed:{id:06}").into_bytes()
}

/// How far a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No slot has it.
    Todo,
    /// This slot works on it.
    Taken(usize),
    /// This slot has applied it.
    Done {
        /// Who.
        slot: usize,
        /// The line ends in it.
        lines: u64,
        /// The words in it.
        words: u64,
    },
}

/// The value of a chunk's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How far it is.
    pub state: State,
    /// The work.
    pub piece: Piece,
}

impl Chunk {
    /// As the store has it: fields with tabs between.
    pub fn encode(&self) -> Vec<u8> {
        let state = match self.state {
            State::Todo => "todo\t0\t0\t0".to_string(),
            State::Taken(slot) => format!("taken\t{}\t0\t0", slot + 1),
            State::Done { slot, lines, words } => format!("done\t{}\t{lines}\t{words}", slot + 1),
        };
        let piece = &self.piece;
        format!("{state}\t{}\t{}\t{}", piece.offset, piece.len, piece.path.display()).into_bytes()
    }

    /// From the store.
    pub fn decode(value: &[u8]) -> Result<Chunk, Failure> {
        Chunk::parse(value).ok_or_else(|| strange("chunk", value))
    }

    fn parse(value: &[u8]) -> Option<Chunk> {
        let mut fields = std::str::from_utf8(value).ok()?.splitn(7, '\t');
        let state = fields.next()?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (slot, lines, words, offset, len) = (number()?, number()?, number()?, number()?, number()?);
        let state = match state {
            "todo" => State::Todo,
            "taken" => State::Taken(usize::try_from(slot).ok()?.checked_sub(1)?),
            "done" => State::Done { slot: usize::try_from(slot).ok()?.checked_sub(1)?, lines, words },
            _ => return None,
        };
        Some(Chunk { state, piece: Piece { path: PathBuf::from(fields.next()?), offset, len } })
    }
}

/// The value of a word's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordCount {
    /// How often the word was counted.
    pub total: u64,
    /// For each slot the last chunk that it applied to this word.
    pub marks: [u64; MAX_SLOTS],
}

impl WordCount {
    /// As the store has it: decimal numbers with spaces between; slots behind the last that took part are left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = self.total.to_string();
        let slots = self.marks.iter().rposition(|mark| *mark != 0).map_or(0, |last| last + 1);
        for mark in &self.marks[..slots] {
            text.push(' ');
            text.push_str(&mark.to_string());
        }
        text.into_bytes()
    }

    /// From the store.
    pub fn decode(value: &[u8]) -> Result<WordCount, Failure> {
        WordCount::parse(value).ok_or_else(|| strange("word", value))
    }

    fn parse(value: &[u8]) -> Option<WordCount> {
        let mut fields = std::str::from_utf8(value).ok()?.split(' ').map(|field| field.parse::<u64>().ok());
        let mut count_of_word = WordCount { total: fields.next()??, marks: [0; MAX_SLOTS] };
        for (slot, mark) in fields.enumerate() {
            *count_of_word.marks.get_mut(slot)? = mark?;
        }
        Some(count_of_word)
    }
}

fn strange(what: &str, value: &[u8]) -> Failure {
    Failure::new(format!("a {what} of the demo's store holds `{}`", value.escape_ascii()))
}

/// The failure for a key of the job that is not there.
pub fn missing(key: &[u8]) -> Failure {
    Failure::new(format!("the demo's store has no key `{}`", key.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_word_counts_survive() {
        let piece = Piece { path: "/a b".into(), offset: 5, len: 6 };
        for state in [State::Todo, State::Taken(0), State::Done { slot: 15, lines: 3, words: 4 }] {
            let chunk = Chunk { state, piece: piece.clone() };
            assert_eq!(Chunk::decode(&chunk.encode()).unwrap(), chunk);
        }
        let mut count_of_word = WordCount { total: 7, ..WordCount::default() };
        assert_eq!(count_of_word.encode(), b"7");
        count_of_word.marks[2] = 9;
        assert_eq!(count_of_word.encode(), b"7 0 0 9");
        assert_eq!(WordCount::decode(b"7 0 0 9").unwrap(), count_of_word);
        for bad in [&b""[..], b"x", b"1 ", b"1  2", b"-1"] {
            assert!(WordCount::decode(bad).is_err());
            assert!(Chunk::decode(bad).is_err());
        }
    }
}
