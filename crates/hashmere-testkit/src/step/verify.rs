//! What must hold after the death of the traced process.

use super::image::Image;
use crate::limits::now_ns;
use hashmere::{Options, Store};
use std::collections::BTreeMap;
use std::path::Path;

/// What a store holds: each key with its value.
pub type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// A survivor may not wait longer than this for what a dead process had locked. The machine may be busy.
pub(super) const QUICKLY_NS: u64 = 1_000_000_000;

/// The states that may be seen, and the key that the operation is about.
#[derive(Debug)]
pub struct Frame {
    /// Before the operation.
    pub before: State,
    /// After it.
    pub after: State,
    /// The key, if it is about one.
    pub key: Option<Vec<u8>>,
}

impl Frame {
    /// Looks at the file from a client that was there all the time, and from one that opens a copy. `returned`: the
    /// operation was over, so it must be there. The longest wait of a survivor, in nanoseconds.
    ///
    /// # Errors
    /// What is wrong.
    pub fn verify_live(&self, live: &Store, copy: &Path, returned: bool) -> Result<u64, String> {
        let seen = self.look(live)?;
        if returned && seen != self.after {
            return Err("the operation was over, and is not there".into());
        }
        let waited = self.verify_copied(live.path(), copy)?.max(self.go_on(live, &seen)?);
        // An open of a store repairs what crashed processes left.
        is_sound(&open(live.path())?, seen.len() + usize::from(self.is_new(&seen)))?;
        Ok(waited)
    }

    /// Looks at a copy of the file, to which every client of the file is dead.
    ///
    /// # Errors
    /// What is wrong.
    pub fn verify_copied(&self, path: &Path, copy: &Path) -> Result<u64, String> {
        Image::of(path).write(copy);
        let newcomer = open(copy)?;
        let seen = self.look(&newcomer)?;
        is_sound(&newcomer, seen.len())?;
        self.go_on(&newcomer, &seen)
    }

    /// What is there: the operation as a whole or not at all.
    fn look(&self, store: &Store) -> Result<State, String> {
        let seen = dump(store)?;
        if seen == self.before || seen == self.after {
            return Ok(seen);
        }
        Err(format!("seen is neither before nor after: {}", difference(&seen, &self.before)))
    }

    /// Whether the write that follows creates its key.
    fn is_new(&self, seen: &State) -> bool {
        self.key.as_ref().is_some_and(|key| !seen.contains_key(key))
    }

    /// Writes the key of the operation, and all others are still there.
    fn go_on(&self, store: &Store, seen: &State) -> Result<u64, String> {
        let Some(key) = &self.key else { return Ok(0) };
        let begin = now_ns();
        store.set(key, b"afterwards").map_err(|error| format!("the write that follows: {error}"))?;
        let waited = now_ns() - begin;
        if waited > QUICKLY_NS {
            return Err(format!("the write that follows took {} ms", waited / 1_000_000));
        }
        let mut expected = seen.clone();
        expected.insert(key.clone(), b"afterwards".to_vec());
        let now = dump(store)?;
        if now != expected {
            return Err(format!("after the write that follows: {}", difference(&now, &expected)));
        }
        Ok(waited)
    }
}

fn open(path: &Path) -> Result<Store, String> {
    Options::new().create(false).open(path).map_err(|error| format!("reopening: {error}"))
}

/// `check` finds nothing, not even a lock of a crashed process: after a repair there is none.
pub(super) fn is_clean(store: &Store) -> Result<(), String> {
    let report = store.check();
    match report.problems.first() {
        Some(problem) => Err(format!("check: {} {}", problem.code, problem.text)),
        None if report.dead_locks != 0 => Err(format!("check: {} locks of crashed processes", report.dead_locks)),
        None => Ok(()),
    }
}

/// `check` finds nothing and the count is right.
fn is_sound(store: &Store, keys: usize) -> Result<(), String> {
    is_clean(store)?;
    if store.len() != keys as u64 {
        return Err(format!("count says {}, there are {keys}", store.len()));
    }
    Ok(())
}

/// Everything, by scan and by key.
pub fn dump(store: &Store) -> Result<State, String> {
    let pairs = store.iter().collect::<Result<Vec<_>, _>>().map_err(|error| format!("scan: {error}"))?;
    let many = pairs.len();
    let state: State = pairs.into_iter().map(|pair| (pair.key, pair.value)).collect();
    if state.len() != many {
        return Err(format!("the scan returned {many} pairs of {} keys", state.len()));
    }
    for (key, value) in &state {
        let got = store.get(key).map_err(|error| format!("get: {error}"))?;
        if got.as_ref() != Some(value) {
            return Err(format!("get and scan differ about {}", key.escape_ascii()));
        }
    }
    Ok(state)
}

pub(super) fn difference(seen: &State, expected: &State) -> String {
    let differs = seen.keys().chain(expected.keys()).find(|key| seen.get(*key) != expected.get(*key));
    let Some(key) = differs else { return "nothing differs".into() };
    let text = |value: Option<&Vec<u8>>| {
        value.map_or("nothing".into(), |value| value[..value.len().min(40)].escape_ascii().to_string())
    };
    format!("{} is {}, not {}", key.escape_ascii(), text(seen.get(key)), text(expected.get(key)))
}
