//! Each canary is switched on, and a test of this folder must notice.

use super::{crash, past};
use crate::canary::{with, Canary};
use std::panic::{catch_unwind, resume_unwind};

/// A fault, what shows it, and its name there.
type Hunt = (Canary, fn(), &'static str);

const DRAINERS: &str = "deaths of two drainers";

const HUNTS: &[Hunt] = &[
    (Canary::HalfTwice, crash::a_writer_dies_at_every_store, "deaths of a writer and of who settles"),
    (Canary::HeirUnsaid, past::the_next_owner_of_a_ring_is_not_blamed, "owners of a ring one after another"),
    (Canary::MergeUndone, crash::drainers_die_at_every_store_one_after_the_other, DRAINERS),
    (Canary::HeadsEarly, crash::drainers_die_at_every_store_one_after_the_other, DRAINERS),
    (Canary::ChunkEarly, crash::drainers_die_at_every_store_one_after_the_other, DRAINERS),
    (Canary::SentEarly, crash::drainers_die_at_every_store_one_after_the_other, DRAINERS),
    (Canary::ProgressForgotten, crash::drainers_die_at_every_store_one_after_the_other, DRAINERS),
];

/// Those that take two at a time: `models` hunts them.
const MODELLED: [Canary; 13] = [
    Canary::BusyUnsaid,
    Canary::ClockEarly,
    Canary::LineEarly,
    Canary::LowUnsaid,
    Canary::GivenUpBelieved,
    Canary::RingRobbed,
    Canary::RingEarly,
    Canary::OldestBelieved,
    Canary::DrainerRobbed,
    Canary::RoleStored,
    Canary::BellBelieved,
    Canary::WaitingLate,
    Canary::NewsBelieved,
];

/// Where all of them are named.
const PUBLISHED: &str = include_str!("../../../../docs/testing.md");

#[test]
fn canaries_are_noticed() {
    let mut missed = Vec::new();
    for (canary, run, by) in HUNTS {
        match with(*canary, || catch_unwind(run)) {
            Err(payload) => match payload.downcast::<String>() {
                Ok(text) => println!("canary {canary:?} | log: {by} | {}", text.replace('\n', " ")),
                Err(other) => match other.downcast::<&str>() {
                    Ok(text) => println!("canary {canary:?} | log: {by} | {text}"),
                    Err(other) => resume_unwind(other),
                },
            },
            Ok(()) => missed.push(canary),
        }
    }
    assert!(missed.is_empty(), "nobody noticed {missed:?}");
}

#[test]
fn every_canary_is_hunted() {
    for (canary, name, _) in Canary::ALL {
        let is_hunted = HUNTS.iter().any(|(hunted, _, _)| hunted == canary) || MODELLED.contains(canary);
        assert!(is_hunted, "nobody hunts {name}");
        assert!(PUBLISHED.contains(&format!("| `{name}` |")), "docs/testing.md does not name {name}");
    }
}
