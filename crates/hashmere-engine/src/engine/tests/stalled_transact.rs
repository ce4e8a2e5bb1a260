//! A client stops inside a transaction, or another one goes on by transactions: only what needs a lock of the stopped
//! one is refused, and a transaction that is refused has changed nothing.

use super::fixture::Client;
use super::stalled::{grow, some, Case, Other, IMPATIENT, MANY, WIDE};
use super::transact::{apply, Op, Parts};
use crate::engine::transact::Outcome;

impl Other {
    /// Two keys at one moment, or none of them.
    fn set_both(&mut self, keys: [String; 2], value: &[u8]) -> Result<(), String> {
        let keys = keys.map(String::into_bytes);
        let get = |other: &Other| keys.each_ref().map(|key| other.client.t_get(key).map_err(|e| e.to_string()));
        let (held, before) = (keys.iter().any(|key| self.is_held(key)), get(self));
        let ops = keys.each_ref().map(|key| Op::Set(key, value));
        let writer = self.client.writer();
        let done = writer.and_then(|mut writer| Parts::of(&*self.client, &ops).commit(&self.client, &mut writer));
        match self.told(&keys[0], held, done)? {
            Some(Outcome::Committed) => keys.into_iter().for_each(|key| drop(self.state.insert(key, value.to_vec()))),
            Some(Outcome::Conflict(_)) => return Err("a conflict of what was not read".into()),
            None if get(self) != before => return Err("a transaction that was refused has changed something".into()),
            None => {}
        }
        Ok(())
    }
}

/// New keys and keys that change, two at a time; none that the stopped one writes when it goes on.
fn grow_in_pairs(other: &mut Other) -> Result<(), String> {
    for i in 0..MANY / 20 {
        other.set_both([format!("new{i}"), format!("pair{i}")], b"of a transaction")?;
        other.set_both([format!("new{}", i / 2), format!("pair{i}")], b"changed")?;
    }
    other.client.check().sound()
}

fn transact(c: &mut Client) {
    apply(&**c, &[Op::Set(b"key3", b"replaced"), Op::Set(b"mine", b"new"), Op::Delete(b"key5")]);
}

/// It holds the buckets of all its keys, and slots name its cells.
#[test]
fn new_keys_beside_one_that_is_stopped_in_a_transaction() {
    let geometry = WIDE;
    Case { name: "transaction", geometry, setup: some, act: transact, concurrent: grow, step: 3, timeout: IMPATIENT }
        .run();
}

/// A transaction that meets a lock of the stopped one gives back those that it has.
#[test]
fn transactions_beside_one_that_is_stopped() {
    let case = |name, act| {
        Case { name, geometry: WIDE, setup: some, act, concurrent: grow_in_pairs, step: 2, timeout: IMPATIENT }.run()
    };
    assert!(case("pairs, replace", |c| c.t_set(b"key3", b"replaced").unwrap()) > 0);
    assert!(case("pairs, transaction", transact) > 0);
}
