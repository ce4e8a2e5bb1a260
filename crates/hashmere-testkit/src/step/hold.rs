//! A process is stopped inside a critical section for as long as one likes. Readers must not notice, writers of other
//! keys go on, a writer of its key gets an error that names the stopped process, and when it goes on it is still the
//! only owner.

use super::run::of_keys;
use super::scenario::Scenario;
use super::trace::Stopped;
use super::verify::{dump, State};
use crate::limits::now_ns;
use crate::rng::Rng;
use hashmere::{Options, Store, WriteError};
use std::time::Duration;

/// Keys that the operation is not about.
const OTHERS: u64 = 300;
/// How long a writer waits for a lock before it gets the error.
const BUSY: Duration = Duration::from_millis(4);
/// Places that are tried until one is inside a critical section.
const TRIES: u64 = 300;

/// After this number of them the operation is followed again.
const FOLLOWED_AGAIN: u64 = 25;

/// What a stop was like.
#[derive(Debug)]
pub struct Held {
    /// The error that the writer of the key got.
    pub refusal: String,
    /// Reads while it was stopped: how many, median and longest in nanoseconds; and the same without a stopped process.
    pub reads: [(usize, u64, u64); 2],
    /// Writes of other keys while it was stopped, and how many of them were refused.
    pub writes: (u64, u64),
}

/// Stops one operation inside a critical section for so long.
///
/// # Errors
/// Which promise is broken.
pub fn hold(program: &str, scenario: &Scenario, time: Duration, rng: &mut Rng) -> Result<Held, String> {
    let case = of_keys(program, scenario, OTHERS);
    let (mut route, mut length) = case.follow();
    let path = case.scratch.store("held");
    for attempt in 1..=TRIES {
        if attempt % FOLLOWED_AGAIN == 0 {
            // One that was followed while it did more than usual has its places behind the end of the others.
            (route, length) = case.follow();
        }
        case.before.write(&path);
        let live = Options::new().create(false).busy_timeout(BUSY).open(&path).map_err(|error| error.to_string())?;
        let tracee = case.start(&path);
        route.lead(&tracee, rng.below(length));
        let stopped = tracee.leave_stopped();
        let key = case.judge.key.as_ref().ok_or("an operation without a key")?;
        if let Some(refusal) = probe(&live, key, &stopped)? {
            // Where it is stopped as it makes the file grow, and nothing is free or garbage, a writer that needs a
            // segment waits for it (`docs/internals/concurrency.md`). Such a stop is not what this is about.
            let stats = live.stats();
            let has_room = stats.segments_free != 0 || stats.bytes_dead != 0;
            let (other, value) = others(&case.judge.before).next().ok_or("a store without other keys")?;
            if !has_room && live.set(other, value).is_err() {
                stopped.finish();
                continue;
            }
            let outcome = read_and_write_beside(&live, &case.judge.before, time, refusal);
            stopped.finish();
            let now = dump(&live)?;
            if now != case.judge.after {
                return Err("after it went on, the store is not what both of us wrote".into());
            }
            return outcome;
        }
        stopped.finish();
    }
    Err(format!("none of {TRIES} places was inside a critical section"))
}

/// Writes the key of the operation. What the refusal says, if it is refused.
fn probe(live: &Store, key: &[u8], stopped: &Stopped) -> Result<Option<String>, String> {
    let text = match live.set(key, b"100") {
        Ok(_) => return Ok(None),
        Err(error @ WriteError::Busy { .. }) => error.to_string(),
        Err(error) => return Err(error.to_string()),
    };
    let who = format!("pid {} (hashmere-testki) holds the lock", stopped.pid());
    if text.contains(&who) && text.contains("and is stopped") {
        return Ok(Some(text));
    }
    Err(format!("a refusal that does not name the stopped process: {text}"))
}

/// The keys that the operation is not about.
fn others(state: &State) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
    state.iter().filter(|(key, _)| key.starts_with(b"other"))
}

/// Reads and writes while it is stopped.
fn read_and_write_beside(live: &Store, state: &State, time: Duration, refusal: String) -> Result<Held, String> {
    let end = now_ns() + time.as_nanos() as u64;
    let (mut waits, mut writes, mut refused, mut first) = (Vec::new(), 0, 0, None);
    while now_ns() < end {
        read_all(live, state, &mut waits)?;
        for (key, value) in others(state) {
            writes += 1;
            match live.set(key, value) {
                Ok(_) => {}
                Err(error @ WriteError::Busy { .. }) => {
                    refused += 1;
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    // Of all leaves one may be locked, and the keys that share its locks.
    if refused * 5 > writes {
        let first = first.map_or_else(String::new, |error| error.to_string());
        return Err(format!("{refused} of {writes} writes of other keys were refused; the first: {first}"));
    }
    let reads = waits.len();
    let beside = summary(waits);
    let mut alone = Vec::new();
    // A few are enough for a median.
    while alone.len() < reads.div_ceil(8) {
        read_all(live, state, &mut alone)?;
    }
    Ok(Held { refusal, reads: [beside, summary(alone)], writes: (writes, refused) })
}

fn read_all(live: &Store, state: &State, waits: &mut Vec<u64>) -> Result<(), String> {
    for (key, value) in state {
        let begin = now_ns();
        let got = live.get(key).map_err(|error| error.to_string())?;
        waits.push(now_ns() - begin);
        // The operation may have committed before it was stopped.
        if got.as_ref() != Some(value) && key.starts_with(b"other") {
            return Err(format!("{} is not what it was", key.escape_ascii()));
        }
    }
    Ok(())
}

fn summary(mut waits: Vec<u64>) -> (usize, u64, u64) {
    waits.sort_unstable();
    let longest = waits.last().copied().unwrap_or(0);
    (waits.len(), waits.get(waits.len() / 2).copied().unwrap_or(0), longest)
}
