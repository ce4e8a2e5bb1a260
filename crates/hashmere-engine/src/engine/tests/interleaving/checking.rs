//! Checks that are interrupted: what another client changes during one is no damage.

use super::{churn, churn_large, clear_and_refill, filled, filled_more, many, set, with_large, Act, Case};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{strict, Client, Fixture, Geometry};

type Setup = fn(&Fixture, &Client, &Client, &mut State);

fn run(name: &'static str, geometry: Geometry, setup: Setup, concurrent: Act, exact: bool) {
    let act = |c: &Client, _: &mut State| match c.check().problems.first() {
        Some(problem) => Err(format!("{}: {}", problem.code, problem.text)),
        None => Ok(()),
    };
    Case { name, geometry, setup, act, concurrent, exact }.run();
}

/// Catches a count of segments that is compared with what was added since.
#[test]
fn check_while_the_file_grows() {
    let grow = |c: &Client, state: &mut State| (0..3).try_for_each(|i| set(c, state, &format!("g{i}"), vec![i; 9000]));
    run("check/grow", strict(24), with_large, grow, true);
}

/// Catches a segment that is judged by what it was in its last life.
#[test]
fn check_while_everything_is_recycled() {
    run("check/churn", strict(12), filled, churn, true);
    run("check/large", strict(16), with_large, churn_large, true);
}

/// Catches an entry of the index that is judged by a directory or a leaf of before.
#[test]
fn check_while_the_index_changes() {
    run("check/split", strict(24).small_leaves(), filled, many, true);
    run("check/clear", strict(12), filled_more, clear_and_refill, false);
}
