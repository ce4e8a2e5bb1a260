//! Writes that are interrupted: neither they nor what others write during them is lost.

use super::{apart, churn, churn_large, clear_and_refill, delete, filled, many, set, wide, with_large, Case};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{cache, strict, Client, Fixture};
use crate::engine::When;
use crate::types::{Attributes, Ttl};
use hashmere_format::row;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

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

/// Catches a set that looks at the record which it had found, after that record was deleted and its memory given back:
/// on a full file system such a load ends in a signal.
#[test]
fn a_set_loads_nothing_of_a_record_that_is_gone() {
    const OTHERS: [&[u8]; 6] = [b"1", b"2", b"3", b"4", b"5", b"6"];
    let prepared = || {
        let fixture = Fixture::new(strict(64));
        let (actor, other) = (fixture.client(), fixture.client());
        fixture.peers.set_now_ms(1000);
        // A store keeps some free segments for the next writes: those of one value alone would be among them.
        OTHERS.iter().for_each(|key| other.t_set(key, &[b'l'; 9000]).unwrap());
        // Its expiry is in the record, and so long a value has segments of its own.
        let expiring = Attributes { ttl: Ttl::At(90_000), ..Attributes::NONE };
        other.t_put(b"key", &[b'l'; 9000], expiring, When::Always).unwrap();
        actor.t_set(b"beside", b"b").unwrap();
        (fixture, actor, other)
    };
    let (_fixture, actor, _) = prepared();
    actor.probe.record();
    actor.t_set(b"key", b"short").unwrap();
    let stores = actor.probe.recorded();
    let slot = actor.writer().unwrap().slot;
    let lock = stores.iter().position(|stored| stored.off == row::offset(slot) + row::at::LOCK);
    // The lock is taken behind the store that names it. Up to there the record may go.
    let lock = lock.expect("a set names the lock that it takes");
    let mut gone = 0;
    for stored in &stores[..=lock] {
        let (fixture, actor, other) = prepared();
        let before = fixture.heap.backed_bytes();
        let (heap, given) = (fixture.heap.clone(), Arc::new(AtomicBool::new(false)));
        let told = given.clone();
        actor.probe.interrupt(stored.access, move || {
            OTHERS.iter().chain([&&b"key"[..]]).for_each(|key| assert!(other.t_del(key).unwrap()));
            other.t_compact().unwrap();
            told.store(heap.backed_bytes() < before, Ordering::Relaxed);
        });
        // The probe panics where the actor loads what has no memory.
        actor.t_set(b"key", b"short").unwrap();
        assert_eq!(fixture.reader().t_get(b"key").unwrap().as_deref(), Some(&b"short"[..]));
        gone += u64::from(given.load(Ordering::Relaxed));
    }
    assert!(gone > 0, "the memory was never given back in between");
}
