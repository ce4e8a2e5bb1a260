//! Writes that are interrupted: neither they nor what others write during them is lost.

use super::{apart, churn, churn_large, clear_and_refill, delete, filled, many, set, wide, with_large, Case};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{cache, strict, Client};

/// Catches a writer that still counts in a segment which the cleaner is already done with: the count then frees the
/// segment's next life.
#[test]
fn replace_while_its_segment_is_cleaned() {
    let act = |c: &Client, state: &mut State| set(c, state, "a0", wide("replaced"));
    Case { name: "replace/churn", geometry: strict(12), setup: filled, act, concurrent: churn, exact: true }.run();
}

/// The same for a deletion.
#[test]
fn delete_while_its_segment_is_cleaned() {
    let act = |c: &Client, state: &mut State| delete(c, state, "a0");
    Case { name: "delete/churn", geometry: strict(12), setup: filled, act, concurrent: churn, exact: true }.run();
}

/// Catches an insertion that loses its place to the other's, or to a split.
#[test]
fn insert_while_the_index_grows() {
    let act = |c: &Client, state: &mut State| set(c, state, "new", b"inserted".to_vec());
    Case {
        name: "insert/split",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act,
        concurrent: many,
        exact: true,
    }
    .run();
}

/// Catches two splits of one leaf that get in each other's way.
#[test]
fn split_while_the_index_grows() {
    let act =
        |c: &Client, state: &mut State| (0..40).try_for_each(|i| set(c, state, &format!("s{i}"), b"split".to_vec()));
    Case {
        name: "split/split",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act,
        concurrent: many,
        exact: true,
    }
    .run();
}

/// Catches a large write that meets others of the same kind on its way through claiming, filling and reclaiming.
#[test]
fn large_writes_beside_large_writes() {
    let act = |c: &Client, state: &mut State| {
        set(c, state, "actor", vec![b'A'; 2500])?;
        set(c, state, "actor", vec![b'B'; 2600])
    };
    Case { name: "large/large", geometry: strict(16), setup: with_large, act, concurrent: churn_large, exact: true }
        .run();
}

/// Catches a writer that commits into an index or a segment that a clear has freed.
#[test]
fn writes_while_the_store_is_cleared() {
    let act = |c: &Client, state: &mut State| {
        set(c, state, "a0", wide("replaced"))?;
        set(c, state, "large", vec![b'L'; 5000])?;
        (0..30).try_for_each(|i| set(c, state, &format!("s{i}"), b"split".to_vec()))
    };
    Case {
        name: "set/clear",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act,
        concurrent: clear_and_refill,
        exact: false,
    }
    .run();
}

/// Catches a writer from before a clear that holds back what was first written after it.
#[test]
fn overwriting_for_ever_beside_a_writer_from_before_a_clear() {
    fn concurrent(c: &Client, state: &mut State) -> Result<(), String> {
        c.t_clear().map_err(|e| format!("clear: {e}"))?;
        state.clear();
        for round in 0..300 {
            let key = apart(c, "o", round % 3);
            c.t_set(key.as_bytes(), &wide("again")).map_err(|e| format!("round {round}: {e}"))?;
            state.insert(key.into_bytes(), wide("again"));
        }
        Ok(())
    }
    let act = |c: &Client, state: &mut State| set(c, state, "a0", wide("replaced"));
    Case { name: "set/clear, forever", geometry: strict(16), setup: filled, act, concurrent, exact: false }.run();
}

/// Catches an eviction that frees a segment in which another client writes.
#[test]
fn writes_while_others_evict() {
    let act = |c: &Client, state: &mut State| (0..12).try_for_each(|i| set(c, state, &format!("x{i}"), wide("mine")));
    let concurrent =
        |c: &Client, state: &mut State| (0..60).try_for_each(|i| set(c, state, &format!("y{i}"), wide("theirs")));
    Case { name: "set/evict", geometry: cache(10), setup: filled, act, concurrent, exact: false }.run();
}
