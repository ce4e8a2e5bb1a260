//! The change feed beside a reader, a writer, and one who switches it on and off.

use super::{set, wide, Case};
use crate::engine::tests::crash::State;
use crate::engine::tests::feed::{entries, tells};
use crate::engine::tests::fixture::{strict, Client, Fixture, Geometry};
use crate::engine::FeedStep;
use crate::error::WriteError;
use hashmere_format::feed::{self, decode};

/// A feed that goes round every dozen writes.
const BRIEF: Geometry = strict(48).feed_of(feed::Geometry { ring_shift: 4, chunk_shift: 10, chunks: 3, values: true });

fn some(_: &Fixture, actor: &Client, other: &Client, state: &mut State) {
    set(actor, state, "actor", b"a".to_vec()).unwrap();
    (0..9u8).for_each(|i| set(other, state, "k", vec![b'0' + i; 90]).unwrap());
}

/// Reads whatever is kept: each entry is one that was written, whole, or gone.
fn follow(c: &Client, _: &mut State) -> Result<(), String> {
    let info = c.feed_info().ok_or("it is off")?;
    let mut words = Vec::new();
    for position in info.oldest..info.position {
        match c.read_feed(info.number, position, &mut words).map_err(|e| e.to_string())? {
            FeedStep::Gone | FeedStep::Gap => {}
            FeedStep::Entry => {
                let (_, changes) = decode(&words).ok_or_else(|| format!("no entry: {words:x?}"))?;
                for change in changes.iter().filter(|change| change.key == b"k") {
                    let value = change.value.as_deref().unwrap_or_default();
                    let first = value.first().copied().unwrap_or_default();
                    if value.len() != 90 || value.iter().any(|byte| *byte != first) {
                        return Err(format!("a mixture: {}", value.escape_ascii()));
                    }
                }
            }
            step => return Err(format!("{step:?} at {position}")),
        }
    }
    Ok(())
}

fn go_round(c: &Client, state: &mut State) -> Result<(), String> {
    (0..60u8).try_for_each(|i| set(c, state, "k", vec![b'A' + i % 40; 90]))
}

/// Catches a reader that takes a copy of two entries for one.
#[test]
pub(in crate::engine::tests) fn follow_while_it_goes_round() {
    Case { name: "follow/go round", geometry: BRIEF, setup: some, act: follow, concurrent: go_round, exact: true }
        .run();
}

/// Catches two writers that get one position, or a writer whose position another one has passed.
#[test]
fn write_while_it_goes_round() {
    let act = |c: &Client, state: &mut State| {
        set(c, state, "actor", b"once".to_vec())?;
        // There is one interruption: what was gone the first time is there the second time.
        let told = |c: &Client| {
            let info = c.feed_info().ok_or("it is off")?;
            let told = entries(c, info.oldest)?;
            let positions: Vec<u64> = told.iter().map(|(position, ..)| *position).collect();
            (positions == (info.oldest..info.position).collect::<Vec<_>>()).then_some(()).ok_or(format!("{told:?}"))
        };
        told(c).or_else(|_| told(c))
    };
    Case { name: "set/go round", geometry: BRIEF, setup: some, act, concurrent: go_round, exact: true }.run();
}

fn switch_off_and_write(c: &Client, state: &mut State) -> Result<(), String> {
    match c.disable_feed(&mut *c.writer().map_err(|e| e.to_string())?) {
        Ok(_) | Err(WriteError::Busy { .. }) => {}
        Err(error) => return Err(error.to_string()),
    }
    // In what was the feed, if it is gone: until the store is full.
    (0..500).try_for_each(|i| set(c, state, &format!("over{i}"), wide("where the feed was")))
}

/// Catches a feed whose memory is used again while a writer writes an entry there.
#[test]
pub(in crate::engine::tests) fn write_while_it_is_switched_off() {
    let act = |c: &Client, state: &mut State| set(c, state, "actor", b"once more".to_vec());
    let case = Case {
        name: "set/switch off",
        geometry: BRIEF,
        setup: some,
        act,
        concurrent: switch_off_and_write,
        exact: true,
    };
    case.run();
}

/// Every write that ends after it was switched on has its entry.
#[test]
fn write_while_it_is_switched_on() {
    let act = |c: &Client, state: &mut State| {
        let was_on = c.feed_info().is_some();
        set(c, state, "actor", b"the first".to_vec())?;
        let before = c.feed_info().map(|info| info.position);
        set(c, state, "actor", b"the second".to_vec())?;
        match (was_on, before) {
            (false, None) => Ok(()),
            // It was switched on within the first, which may have been committed before.
            (_, Some(position)) => {
                let told = entries(c, position)?;
                (told.len() == 1 && told[0].2[0].value.as_deref() == Some(b"the second"))
                    .then_some(())
                    .ok_or(format!("{told:?}"))
            }
            (true, None) => Err("it was switched off".into()),
        }
    };
    let concurrent = |c: &Client, state: &mut State| {
        let small = feed::Geometry { ring_shift: 6, chunk_shift: 10, chunks: 12, values: true };
        match c.make_feed(&mut *c.writer().map_err(|e| e.to_string())?, small) {
            Ok(()) => {
                set(c, state, "k", b"told".to_vec())?;
                let told = entries(c, 0)?;
                (told.last().map(|(.., changes)| changes[0].key.as_slice()) == Some(b"k"))
                    .then_some(())
                    .ok_or(format!("{told:?}"))
            }
            // Who is in the middle of a write has not seen it.
            Err(WriteError::Busy { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    let case = Case { name: "set/switch on", geometry: strict(48), setup: some, act, concurrent, exact: true };
    case.run();
}

/// A whole story, with one interruption: what all entries tell is what the store holds.
#[test]
fn writes_beside_writes_are_told_in_order() {
    let act = |c: &Client, state: &mut State| {
        set(c, state, "k", b"of the one".to_vec())?;
        set(c, state, "actor", b"12345678".to_vec())?;
        set(c, state, "actor", b"87654321".to_vec())?;
        super::delete(c, state, "k")?;
        // There is one interruption: if it was in the first look, none is in the second.
        let told = |c: &Client| tells(c, &c.t_scan().map_err(|e| e.to_string())?.into_iter().collect());
        told(c).or_else(|_| told(c))
    };
    let concurrent = |c: &Client, state: &mut State| {
        set(c, state, "k", b"of the other".to_vec())?;
        set(c, state, "other", b"1".to_vec())
    };
    let case =
        Case { name: "set/set, told", geometry: strict(48).with_feed(), setup: some, act, concurrent, exact: false };
    case.run();
}
