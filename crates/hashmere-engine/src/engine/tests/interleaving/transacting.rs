//! Transactions that are interrupted, and those that interrupt: they happen whole or not at all.

use super::{apart, churn, clear_and_refill, filled, many, set, wide, Case};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{cache, strict, Client, Fixture};
use crate::engine::tests::transact::{Op, Parts};
use crate::engine::transact::Outcome;
use crate::error::WriteError;

/// The keys of these transactions: two that are there, with other locks than `a0`, and one that comes and goes.
fn keys(c: &Client) -> [String; 3] {
    [apart(c, "a", 0), apart(c, "a", 1), apart(c, "t", 0)]
}

fn commit(c: &Client, state: &mut State, ops: &[Op<'_>]) -> Result<bool, String> {
    let mut writer = c.writer().map_err(|e| e.to_string())?;
    match Parts::of(&**c, ops).commit(c, &mut writer) {
        Ok(Outcome::Committed) => {}
        Ok(Outcome::Conflict(_)) | Err(WriteError::Busy { .. } | WriteError::Full { .. }) => return Ok(false),
        Err(error) => return Err(format!("transact: {error}")),
    }
    for op in ops {
        match op {
            Op::Set(key, value) | Op::Absent(key, value) => drop(state.insert(key.to_vec(), value.to_vec())),
            Op::Delete(key) => drop(state.remove(*key)),
            Op::Look(_) | Op::Touch(..) => {}
        }
    }
    Ok(true)
}

/// Two are replaced, and one is there or not as they say.
fn toggle(c: &Client, state: &mut State, text: &str, there: bool) -> Result<bool, String> {
    let [a, b, t] = keys(c);
    let value = wide(text);
    let third = if there { Op::Set(t.as_bytes(), &value) } else { Op::Delete(t.as_bytes()) };
    commit(c, state, &[Op::Set(a.as_bytes(), &value), third, Op::Set(b.as_bytes(), &value)])
}

fn transact(c: &Client, state: &mut State) -> Result<(), String> {
    toggle(c, state, "first there", true).map(drop)
}

fn several(c: &Client, state: &mut State) -> Result<(), String> {
    for (text, there) in [("second", false), ("third there", true), ("fourth", false), ("fifth there", true)] {
        toggle(c, state, text, there)?;
    }
    Ok(())
}

/// Catches a transaction whose drafts or superseded records are in a segment that is freed under it.
#[test]
fn transaction_while_everything_is_recycled() {
    // The other one writes none of these.
    let act = |c: &Client, state: &mut State| {
        let value = wide("replaced");
        let ops = [Op::Set(b"a0", &value), Op::Delete(b"actor"), Op::Set(b"never before", &value)];
        commit(c, state, &ops).map(drop)
    };
    Case { name: "transaction/churn", geometry: strict(16), setup: filled, act, concurrent: churn, exact: true }.run();
}

/// Catches one that stores into a leaf that was split.
#[test]
fn transaction_while_the_index_grows() {
    let act = |c: &Client, state: &mut State| {
        let names: Vec<String> = (0..8).map(|i| format!("n{i}")).collect();
        let ops: Vec<_> = names.iter().map(|name| Op::Set(name.as_bytes(), b"new")).collect();
        commit(c, state, &ops).map(drop)
    };
    let geometry = strict(24).small_leaves();
    Case { name: "transaction/split", geometry, setup: filled, act, concurrent: many, exact: true }.run();
}

/// Catches one that takes place partly before a clear and partly after it.
#[test]
fn transaction_while_the_store_is_cleared() {
    let concurrent = |c: &Client, state: &mut State| {
        clear_and_refill(c, state)?;
        let [a, b, t] = keys(c).map(|key| c.t_get(key.as_bytes()).unwrap());
        (a == b && b == t && a.is_none()).then_some(()).ok_or("half a transaction after a clear".into())
    };
    let geometry = strict(24).small_leaves();
    Case { name: "transaction/clear", geometry, setup: filled, act: transact, concurrent, exact: false }.run();
}

/// Catches two that get in each other's way.
#[test]
fn transaction_beside_transactions() {
    let setup = |fixture: &Fixture, actor: &Client, other: &Client, state: &mut State| {
        filled(fixture, actor, other, state);
        toggle(other, state, "begin", false).unwrap();
    };
    // What both of them write is as one of them says: the keys change together.
    let act = |c: &Client, state: &mut State| {
        toggle(c, state, "first there", true)?;
        snapshot(c)
    };
    Case { name: "transaction/transactions", geometry: strict(24), setup, act, concurrent: several, exact: false }
        .run();
}

/// Catches an eviction that frees what a transaction supersedes.
#[test]
fn transaction_while_others_evict() {
    let concurrent =
        |c: &Client, state: &mut State| (0..60).try_for_each(|i| set(c, state, &format!("y{i}"), wide("theirs")));
    Case { name: "transaction/evict", geometry: cache(12), setup: filled, act: transact, concurrent, exact: false }
        .run();
}

/// A scan or a snapshot: what it returns of the keys of a transaction.
fn is_one(values: [Option<Vec<u8>>; 3]) -> Result<(), String> {
    let [a, b, t] = values;
    let there = a.as_ref().is_some_and(|value| value.windows(5).any(|part| part == b"there"));
    (a == b && t.is_some() == there).then_some(()).ok_or("a snapshot of no moment".into())
}

fn snapshot(c: &Client) -> Result<(), String> {
    let keys = keys(c);
    let names: Vec<_> = keys.iter().map(|key| (key.as_bytes(), c.hash(key.as_bytes()))).collect();
    let items = c.snapshot_of(&names, &|key, kh| c.t_item(key, kh)).map_err(|e| e.to_string())?;
    let mut items = items.map_err(|_| "no snapshot")?.into_iter().map(|item| item.map(|item| item.value));
    is_one(std::array::from_fn(|_| items.next().flatten()))
}

/// Catches a snapshot that takes keys of different transactions.
#[test]
fn snapshot_while_transactions_are_made() {
    let setup = |fixture: &Fixture, actor: &Client, other: &Client, state: &mut State| {
        filled(fixture, actor, other, state);
        toggle(other, state, "begin", false).unwrap();
    };
    let act = |c: &Client, _: &mut State| snapshot(c);
    Case { name: "snapshot/transactions", geometry: strict(24), setup, act, concurrent: several, exact: true }.run();
}

/// Catches readers that meet a cell and do not find what it says: a scan, a look-up, a view, a look by UID, a check.
#[test]
fn readers_in_the_middle_of_a_transaction() {
    let setup = |fixture: &Fixture, actor: &Client, other: &Client, state: &mut State| {
        filled(fixture, actor, other, state);
        toggle(other, state, "begin", false).unwrap();
    };
    let concurrent = |c: &Client, _: &mut State| {
        let keys = keys(c);
        let got: [_; 3] = std::array::from_fn(|i| c.t_get(keys[i].as_bytes()).unwrap());
        is_one(got.clone())?;
        let scanned: State = c.t_scan().map_err(|e| e.to_string())?.into_iter().collect();
        for (key, got) in keys.iter().zip(&got) {
            let kh = c.hash(key.as_bytes());
            let viewed = c.t_view(key.as_bytes(), kh).map_err(|e| e.to_string())?.map(|item| item.value);
            if scanned.get(key.as_bytes()) != got.as_ref() || viewed != *got {
                return Err(format!("{key} is not the same for a scan, a view and a get"));
            }
            let Some(meta) = c.peek(key.as_bytes(), kh).map_err(|e| e.to_string())? else { continue };
            let root = c.root_word();
            let Some((slot_offset, slot)) = c.slot_of_uid(root, meta.uid.0).map_err(|e| e.to_string())? else {
                return Err(format!("{key} is not there by its UID"));
            };
            let len = c.read_slot(root, meta.uid.0, slot_offset, slot, |found| Ok(found.value_len()));
            if len.map_err(|e| e.to_string())? != got.as_ref().map(Vec::len) {
                return Err(format!("{key} is another one by its UID"));
            }
        }
        c.check().problems.first().map_or(Ok(()), |problem| Err(format!("check: {} {}", problem.code, problem.text)))
    };
    Case { name: "transaction/readers", geometry: strict(24), setup, act: transact, concurrent, exact: true }.run();
}
