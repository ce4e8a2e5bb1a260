//! Running a function until its transaction commits.

use crate::engine::{Engine, Rounds};
use crate::error::WriteError;
use crate::transaction::{Reader, Transaction};
use hashmere_mem::{Host, Mem};
use std::time::{Duration, Instant};

/// How often a transaction is tried at least, before a conflict is an error,
const TRIED_MOST: u32 = 1000;
/// and for how long.
const TRIED_FOR: Duration = Duration::from_secs(5);
/// From when on its time is taken.
const TRIED_OFTEN: u32 = 16;

/// Waits a little longer each time.
#[derive(Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn wait<M: Mem>(&mut self, mem: &M) {
        self.0 += 1;
        match self.0 {
            // The other one is done in less than a system call takes.
            ..=4 => (0..1 << self.0).for_each(|_| mem.relax()),
            // In a model nothing sleeps.
            n if !M::STEPPED => std::thread::sleep(Duration::from_micros(1 << n.min(10))),
            _ => mem.relax(),
        }
    }
}

/// Runs `f` with a new transaction and commits it; again if what it read has changed by then, also if it failed.
pub(crate) fn run<M: Mem, H: Host, R, S, E: From<WriteError>>(
    engine: &Engine<M, H>,
    read: &Reader<'_>,
    mut f: impl FnMut(&mut Transaction<'_, M, H>) -> Result<R, E>,
    mut after: impl FnMut(&Transaction<'_, M, H>, R) -> S,
) -> Result<S, E> {
    let (mut rounds, mut backoff) = (Rounds::default(), Backoff::default());
    let (mut tried, mut since) = (0u32, None);
    let mut asks: Option<Vec<u8>> = None;
    loop {
        if let Some(key) = &asks {
            engine.begin_round(rounds, key, engine.hash(key))?;
        }
        let mut transaction = Transaction::new(engine, read);
        match f(&mut transaction) {
            Ok(result) => {
                if transaction.commit(&mut rounds)? {
                    return Ok(after(&transaction, result));
                }
            }
            // What it saw may never have been together: then its error means nothing.
            Err(error) => {
                if transaction.conflict.is_none() && transaction.validate().map_err(WriteError::from)? {
                    return Err(error);
                }
                rounds.lose();
            }
        }
        let conflict = transaction.conflict.unwrap_or(0);
        tried += 1;
        let is_long = tried >= TRIED_OFTEN && since.get_or_insert_with(Instant::now).elapsed() >= TRIED_FOR;
        if is_long && tried >= TRIED_MOST {
            return Err(transaction.conflict_at(conflict).into());
        }
        asks = (!transaction.entries.is_empty()).then(|| transaction.key(conflict).to_vec());
        backoff.wait(&engine.mem);
    }
}
