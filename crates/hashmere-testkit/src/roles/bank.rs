//! `bank STORE ACCOUNTS SEED`: moves money between accounts that it chooses, by transactions of every kind, until
//! standard input is closed. The sum of all accounts never changes. An account that is empty is deleted.

use super::{input_closed, Arguments};
use crate::rng::Rng;
use hashmere::{Attributes, Condition, Counter, Store, WriteBatch, WriteError};
use std::sync::atomic::Ordering;

/// The key of an account.
pub fn account(number: u64) -> String {
    format!("account {number}")
}

/// What is in it.
///
/// # Panics
/// If that is no number.
pub fn balance(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |text| String::from_utf8_lossy(text).parse().expect("a number"))
}

/// Moves up to `most` from one account to another, by a function; how much was moved.
///
/// # Errors
/// See [`WriteError`].
pub fn transfer(store: &Store, from: &str, to: &str, most: u64) -> Result<u64, WriteError> {
    store.transaction(|t| {
        let (have, there) = (balance(t.get(from)?.as_deref()), balance(t.get(to)?.as_deref()));
        let amount = most.min(have);
        if amount == have {
            t.delete(from)?;
        } else {
            t.set(from, (have - amount).to_string())?;
        }
        t.set(to, (there + amount).to_string())?;
        Ok(amount)
    })
}

/// The same with conditions, one attempt.
fn transfer_if(store: &Store, from: &str, to: &str) -> Result<(), WriteError> {
    let items = store.get_many_snapshot(&[from, to])?;
    let [Some(a), Some(b)] = &items[..] else { return Ok(()) };
    let (have, there) = (balance(Some(&a.value)), balance(Some(&b.value)));
    if have < 2 {
        return Ok(());
    }
    let (mut then, mut otherwise) = (WriteBatch::new(), WriteBatch::new());
    then.set_with(from, (have - 1).to_string(), Attributes::NONE.flags(7)).set(to, (there + 1).to_string());
    otherwise.get(from).get(to);
    let conditions =
        [Condition::Version(from.as_bytes(), a.metadata.version), Condition::Value(to.as_bytes(), &b.value)];
    let branch = store.write_batch_if(&conditions, &then, &otherwise)?;
    assert_eq!(branch.results.len(), 2);
    Ok(())
}

/// The same for two that surely have something: by counting. (It moves one there and one back.)
fn circle(store: &Store, from: &str, to: &str) -> Result<(), WriteError> {
    let mut batch = WriteBatch::new();
    batch.incr(from, 1, Counter::or_create(1)).incr(to, 1, Counter::or_create(1));
    batch.incr(to, -1, Counter::EXISTING).incr(from, -1, Counter::EXISTING);
    store.write_batch(&batch).map(drop)
}

pub(super) fn run(arguments: &mut Arguments) {
    let (store, accounts): (Store, u64) = (arguments.store(), arguments.next());
    let mut rng = Rng::from_seed(arguments.next());
    let closed = input_closed();
    println!("ready");
    while !closed.load(Ordering::Relaxed) {
        let (from, to) = (rng.below(accounts), rng.below(accounts));
        if from == to {
            continue;
        }
        let (from, to) = (account(from), account(to));
        let done = match rng.below(4) {
            0 => transfer_if(&store, &from, &to),
            1 => circle(&store, &from, &to),
            _ => transfer(&store, &from, &to, 1 + rng.below(5)).map(drop),
        };
        match done {
            // A stopped process has one of the two: that is said, and nothing has changed.
            Ok(()) | Err(WriteError::Busy { .. } | WriteError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    println!("ended");
}
