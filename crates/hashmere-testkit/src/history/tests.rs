//! The checker itself: it rejects what cannot have been, and accepts what can.

use super::*;
use crate::rng::Rng;

/// An operation of worker 0 on key 0.
fn op(called: u64, returned: u64, call: Call, reply: Reply) -> Operation {
    Operation { key: 0, worker: 0, call, reply: Some(reply), version: 0, called, returned }
}

fn killed(called: u64, call: Call) -> Operation {
    Operation { key: 0, worker: 9, call, reply: None, version: 0, called, returned: u64::MAX }
}

fn good(operations: &[Operation]) {
    assert_eq!(check(None, operations), Verdict::Linearizable, "{operations:#?}");
}

fn bad(operations: &[Operation]) {
    assert!(matches!(check(None, operations), Verdict::Violated { .. }), "{operations:#?}");
}

use Call::{Add, Cas, Delete, Get, Incr, Set, Take};
use Reply::{Found, No, NotFound, Yes};

#[test]
fn rejects_a_lost_update() {
    bad(&[
        op(0, 1, Set(10), Yes),
        op(2, 5, Incr { by: 1, initial: None }, Found(Some(11))),
        op(3, 6, Incr { by: 1, initial: None }, Found(Some(11))),
    ]);
    bad(&[op(0, 1, Set(1), Yes), op(2, 3, Set(2), Yes), op(4, 5, Get, Found(Some(1)))]);
}

#[test]
fn rejects_a_stale_read() {
    bad(&[op(0, 1, Set(1), Yes), op(2, 3, Delete, Yes), op(4, 5, Get, Found(Some(1)))]);
    // Two readers must not see two overlapping writes in opposite order.
    bad(&[
        op(0, 20, Set(1), Yes),
        op(0, 20, Set(2), Yes),
        op(1, 2, Get, Found(Some(1))),
        op(3, 4, Get, Found(Some(2))),
        op(5, 6, Get, Found(Some(1))),
    ]);
}

#[test]
fn rejects_a_duplicate_add_and_a_double_take() {
    bad(&[op(0, 5, Add(1), Yes), op(1, 6, Add(2), Yes)]);
    bad(&[op(0, 1, Set(7), Yes), op(2, 5, Take, Found(Some(7))), op(3, 6, Take, Found(Some(7)))]);
    bad(&[op(0, 1, Set(7), Yes), op(2, 5, Delete, Yes), op(3, 6, Delete, Yes)]);
}

#[test]
fn rejects_a_gap_and_a_value_out_of_nowhere() {
    bad(&[op(0, 1, Set(1), Yes), op(2, 9, Set(2), Yes), op(3, 4, Get, Found(None))]);
    bad(&[op(0, 1, Set(1), Yes), op(2, 3, Get, Found(Some(3)))]);
}

#[test]
fn rejects_a_wrong_cas() {
    let cas = Cas { expected: Some(1), new: Some(2) };
    bad(&[op(0, 1, Set(1), Yes), op(2, 5, cas, Yes), op(3, 6, cas, Yes)]);
    bad(&[op(0, 1, Set(1), Yes), op(2, 3, cas, No)]);
    bad(&[op(0, 1, Set(1), Yes), op(2, 3, cas, NotFound)]);
}

#[test]
fn accepts_overlap_in_any_order() {
    good(&[op(0, 9, Set(1), Yes), op(1, 2, Get, Found(None)), op(3, 4, Get, Found(Some(1)))]);
    good(&[op(0, 9, Set(1), Yes), op(0, 9, Set(2), Yes), op(10, 11, Get, Found(Some(1)))]);
    let cas = Cas { expected: None, new: Some(2) };
    good(&[op(0, 5, cas, No), op(1, 6, Set(1), Yes)]);
    good(&[op(0, 5, Set(1), Yes), op(0, 5, Add(2), No), op(0, 5, Delete, Yes), op(6, 7, Get, Found(None))]);
    good(&[op(0, 1, Set(1), Reply::Refused), op(2, 3, Get, Found(None))]);
}

#[test]
fn killed_operations_may_or_may_not_have_been() {
    good(&[op(0, 1, Set(1), Yes), killed(2, Set(2)), op(3, 4, Get, Found(Some(1)))]);
    good(&[op(0, 1, Set(1), Yes), killed(2, Set(2)), op(3, 4, Get, Found(Some(2)))]);
    // Late: it takes effect after a read that did not see it.
    good(&[op(0, 1, Set(1), Yes), killed(2, Set(2)), op(3, 4, Get, Found(Some(1))), op(5, 6, Get, Found(Some(2)))]);
    // But only once, not before its call, and not undone.
    bad(&[op(0, 1, Set(1), Yes), op(2, 3, Get, Found(Some(2))), killed(4, Set(2))]);
    bad(&[op(0, 1, Set(1), Yes), killed(2, Incr { by: 1, initial: None }), op(3, 4, Get, Found(Some(3)))]);
    bad(&[op(0, 1, Set(1), Yes), killed(2, Set(2)), op(3, 4, Get, Found(Some(2))), op(5, 6, Get, Found(Some(1)))]);
}

#[test]
fn versions_must_rise_and_differ() {
    let write = |called, returned, version| Operation { version, ..op(called, returned, Set(1), Yes) };
    assert!(check_versions(&[write(0, 1, 5), write(2, 3, 6), write(2, 9, 7), write(4, 5, 8)]).is_ok());
    assert!(check_versions(&[write(0, 4, 6), write(2, 3, 5)]).is_ok());
    assert!(check_versions(&[write(0, 1, 6), write(2, 3, 5)]).is_err());
    assert!(check_versions(&[write(0, 4, 5), write(2, 3, 5)]).is_err());
}

/// A history that a real register produced, with every interval widened at random.
fn simulated(rng: &mut Rng, count: u64, workers: u64, killed_percent: u64) -> Vec<Operation> {
    let mut state: State = None;
    let mut free_at = vec![0; workers as usize];
    let mut operations = Vec::new();
    for moment in 1..=count {
        let at = moment * 10;
        let worker = rng.index(free_at.len());
        if free_at[worker] >= at {
            continue;
        }
        let called = (at - rng.below(at.min(40))).max(free_at[worker] + 1);
        let returned = at + rng.below(40);
        free_at[worker] = returned;
        let call = match rng.below(8) {
            0..=2 => Get,
            3 => Set(moment),
            4 => Add(moment),
            5 => Delete,
            6 => Cas { expected: state, new: Some(moment) },
            _ => Incr { by: 1, initial: Some(moment) },
        };
        let reply = [Yes, No, NotFound, Found(state)]
            .into_iter()
            .chain([1, 0].map(|by| Found(state.map(|value| value.wrapping_add(by)).or(Some(moment)))));
        let (reply, after) = reply.filter_map(|reply| Some((reply, step(state, call, Some(reply))?))).next().unwrap();
        state = after;
        let reply = (!rng.chance(killed_percent)).then_some(reply);
        let returned = if reply.is_some() { returned } else { u64::MAX };
        let worker = worker as u32;
        operations.push(Operation { key: 0, worker, call, reply, version: 0, called, returned });
    }
    operations
}

#[test]
fn accepts_long_real_histories_and_notices_one_wrong_reply() {
    let mut rng = Rng::for_test("history");
    for round in 0..30 {
        let mut operations = simulated(&mut rng, 600, 4, 2);
        assert_eq!(check(None, &operations), Verdict::Linearizable, "round {round}");
        let reads: Vec<usize> =
            (0..operations.len()).filter(|&i| operations[i].call == Get && operations[i].reply.is_some()).collect();
        let changed = *rng.pick(&reads);
        operations[changed].reply = Some(Found(Some(u64::MAX)));
        assert!(matches!(check(None, &operations), Verdict::Violated { .. }), "round {round}");
    }
}

/// What was killed may have been, each for itself: all combinations are too many, so the search must leave most of them
/// out.
#[test]
fn decides_about_many_killed_operations() {
    let mut rng = Rng::for_test("killed");
    for round in 0..10 {
        let mut operations = simulated(&mut rng, 300, 4, 4);
        assert_eq!(check(None, &operations), Verdict::Linearizable, "round {round}");
        let last = operations.iter().rposition(|o| o.call == Get && o.reply.is_some()).unwrap();
        operations[last].reply = Some(Found(Some(u64::MAX)));
        assert!(matches!(check(None, &operations), Verdict::Violated { .. }), "round {round}");
    }
}
