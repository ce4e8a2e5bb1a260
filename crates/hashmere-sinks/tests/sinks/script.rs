//! A source whose every event follows from its position: so a test knows what a sink must have.

use hashmere::Version;
use hashmere_feed::{Change, Event, Operation, ResetReason, Token, TransactionPart, Value};
use hashmere_sinks::{Position, Source, SourceError};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Keys of the first copy.
const READS: u64 = 20;

pub fn token(position: u64, cursor: Option<u64>) -> Token {
    let cursor = cursor.map_or(String::new(), |cursor| format!("-{cursor}"));
    format!("hm1-0001020304050607ffffffffffffffff-1795000000000-3-{position}{cursor}").parse().unwrap()
}

/// Key `n`, of which every seventh is not text.
pub fn key(n: u64) -> Vec<u8> {
    let mut key = format!("kind{}:{n}", n % 3).into_bytes();
    if n % 7 == 6 {
        key.extend_from_slice(&[0, 0xff, b'\n']);
    }
    key
}

fn change(operation: Operation, n: u64, version: u64, token: Token) -> Change {
    let mut change = Change::new(operation, key(n), Version(version), token);
    change.ts_ms = 1_795_000_000_000 + version;
    if !operation.removes() {
        let value = format!("value {version} of {n}").into_bytes();
        change.value_len = value.len() as u32;
        change.value = Value::Bytes(value);
    }
    change
}

/// The events of the entry at a position; the version of each is its position and a little.
fn entry(position: u64) -> Vec<Event> {
    let behind = token(position + 1, None);
    let (n, version) = (position * 7 % 50, position * 10 + 100);
    match position % 11 {
        // A transaction.
        3 => (0..3)
            .map(|index| {
                let token = if index == 2 { behind } else { token(position, None) };
                let mut change = change(Operation::Set, (n + index) % 50, version + index, token);
                change.transaction = Some(TransactionPart { id: position, index: index as u32, len: 3 });
                Event::Change(change)
            })
            .collect(),
        5 => vec![Event::Change(change(Operation::Delete, n, version, behind))],
        7 => vec![Event::Change(change(Operation::Touch, n, version, behind))],
        // What a repair has published once more.
        9 => vec![Event::Change(change(Operation::Set, (position - 1) * 7 % 50, version - 10, behind))],
        _ => vec![Event::Change(change(Operation::Set, n, version, behind))],
    }
}

/// Whether the event is the second of its change.
pub fn is_repetition(event: &Event) -> bool {
    matches!(event, Event::Change(change) if change.operation == Operation::Set
        && change.transaction.is_none()
        && (change.token.position() - 1) % 11 == 9)
}

/// All events that a consumer gets that begins with nothing.
pub fn all(entries: u64) -> Vec<Event> {
    let mut source = Script::open(entries, None);
    source.next_batch(usize::MAX, Duration::ZERO).unwrap()
}

pub struct Script {
    entries: u64,
    next: u64,
    ready: VecDeque<Event>,
    /// Pause before each batch, and how many events it has at most.
    pub slow: Option<(Duration, usize)>,
    /// Ends no sooner than this is set: its last events come only then.
    pub not_before: Option<Arc<AtomicBool>>,
}

impl Script {
    pub fn open(entries: u64, from: Option<&Position>) -> Script {
        let mut ready = VecDeque::new();
        let mut next = 0;
        let reads =
            |from: u64| (from..READS).map(|n| Event::Read(change(Operation::Read, n, n + 1, token(0, Some(n + 1)))));
        match from.map(|from| from.token) {
            None => {
                ready.push_back(Event::Reset { reason: ResetReason::Asked });
                ready.extend(reads(0));
            }
            // The cursor is the last number.
            Some(token) if token.is_copying() => {
                ready.extend(reads(token.to_string().rsplit('-').next().unwrap().parse().unwrap()));
            }
            Some(token) => next = token.position(),
        }
        if from.is_none_or(|from| from.token.is_copying()) {
            ready.push_back(Event::Synced { token: token(0, None) });
        }
        Script { entries, next, ready, slow: None, not_before: None }
    }
}

impl Source for Script {
    fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Event>, SourceError> {
        let max = self.slow.map_or(max, |(pause, most)| {
            std::thread::sleep(pause);
            max.min(most)
        });
        while self.ready.len() < max && self.next < self.entries {
            self.ready.extend(entry(self.next));
            self.next += 1;
        }
        if let (true, Some(may_end)) = (self.next == self.entries, &self.not_before) {
            while !may_end.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if self.ready.is_empty() {
            std::thread::sleep(timeout.min(Duration::from_millis(5)));
        }
        let len = self.ready.len().min(max);
        Ok(self.ready.drain(..len).collect())
    }
}
