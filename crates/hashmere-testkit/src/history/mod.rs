//! Was there an order? Checks that what several processes saw of one key could have come from operations that
//! each took place at one moment between call and return (linearizability).
//!
//! A key is a register that is absent or holds a number. [`check`] looks for an order of all the operations on it
//! which agrees with every reply and with real time. An operation whose process was killed has no reply; it may
//! have taken place at any moment after its call, or never.

mod search;
#[cfg(test)]
mod tests;
mod versions;

pub use search::{check, Verdict};
pub use versions::check_versions;

use std::collections::BTreeMap;

/// What a register holds: nothing, or a number.
pub type State = Option<u64>;

/// An operation on a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Read it.
    Get,
    /// Write it.
    Set(u64),
    /// Write it if absent.
    Add(u64),
    /// Write it if present.
    Replace(u64),
    /// Make it absent.
    Delete,
    /// Read it and make it absent.
    Take,
    /// If it is as expected, make it so.
    Cas {
        /// What it is expected to be.
        expected: State,
        /// What it then becomes.
        new: State,
    },
    /// Add to it, wrapping; if absent, create it with a value where one is given.
    Incr {
        /// How much.
        by: u64,
        /// What an absent one becomes.
        initial: Option<u64>,
    },
}

/// What the operation returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// What it held (get, take), or what it holds now (incr).
    Found(State),
    /// It took place: set; add, replace, delete and cas whose condition held.
    Yes,
    /// The condition did not hold (add: present; replace, delete: absent; cas: another value).
    No,
    /// Cas only: the key is absent but was expected to hold something.
    NotFound,
    /// An error which promises that nothing was changed.
    Refused,
}

/// One operation in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Number of the key.
    pub key: u32,
    /// Number of the worker.
    pub worker: u32,
    /// What was asked.
    pub call: Call,
    /// What was answered; `None`: killed before the answer.
    pub reply: Option<Reply>,
    /// Version that the write gave the key; zero where the call tells none.
    pub version: u64,
    /// Monotonic nanoseconds just before the call.
    pub called: u64,
    /// Monotonic nanoseconds just after the return; `u64::MAX` if it did not return.
    pub returned: u64,
}

/// The state after the operation, if its reply (any, if it has none) is right in this state.
pub fn step(state: State, call: Call, reply: Option<Reply>) -> Option<State> {
    if reply == Some(Reply::Refused) {
        return Some(state);
    }
    let yes_if = |condition: bool| if condition { Reply::Yes } else { Reply::No };
    let (expected, after) = match call {
        Call::Get => (Reply::Found(state), state),
        Call::Set(value) => (Reply::Yes, Some(value)),
        Call::Add(value) => (yes_if(state.is_none()), state.or(Some(value))),
        Call::Replace(value) => (yes_if(state.is_some()), state.map(|_| value)),
        Call::Delete => (yes_if(state.is_some()), None),
        Call::Take => (Reply::Found(state), None),
        Call::Cas { expected, new } if expected == state => (Reply::Yes, new),
        Call::Cas { .. } if state.is_none() => (Reply::NotFound, state),
        Call::Cas { .. } => (Reply::No, state),
        Call::Incr { by, initial } => {
            let after = state.map(|value| value.wrapping_add(by)).or(initial);
            (Reply::Found(after), after)
        }
    };
    (reply.is_none() || reply == Some(expected)).then_some(after)
}

/// Sorts operations by key.
pub fn by_key(operations: impl IntoIterator<Item = Operation>) -> BTreeMap<u32, Vec<Operation>> {
    let mut keys: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for operation in operations {
        keys.entry(operation.key).or_default().push(operation);
    }
    keys
}

/// Checks every key of a history (absent at the start) and the versions, and says how much that was.
///
/// # Panics
/// If a key has no valid order, with its operations around the point where none fits.
pub fn assert_linearizable(operations: Vec<Operation>) {
    let total = operations.len();
    let pending = operations.iter().filter(|operation| operation.reply.is_none()).count();
    let keys = by_key(operations);
    let count = keys.len();
    for (key, operations) in keys {
        if let Err(problem) = check_versions(&operations) {
            panic!("key {key}: versions: {problem}");
        }
        match check(None, &operations) {
            Verdict::Linearizable => {}
            Verdict::Undecided => panic!("key {key}: {} operations are too many to decide", operations.len()),
            Verdict::Violated { context } => {
                panic!("key {key}: no order explains its {} operations; around:\n{context}", operations.len())
            }
        }
    }
    println!("history: {total} operations ({pending} without reply) on {count} keys have a valid order");
}
