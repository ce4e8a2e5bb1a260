//! Each canary is switched on, and a test of this folder must notice.

use super::{crash, moves};
use crate::canary::{with, Canary};
use std::panic::{catch_unwind, resume_unwind};

/// A fault, what shows it, and its name there.
type Hunt = (Canary, fn(), &'static str);

const DEATHS: &str = "deaths of the owner and of who clears up";
const BESIDE: &str = "deaths beside another hand";

const HUNTS: &[Hunt] = &[
    (Canary::HandUnsaid, crash::death_at_every_store_and_of_whoever_clears_up, DEATHS),
    (Canary::SuccessUntold, crash::death_at_every_store_beside_another_hand_at_every_access, BESIDE),
    (Canary::HeadStored, crash::death_at_every_store_beside_another_hand_at_every_access, BESIDE),
    (Canary::CellBelieved, crash::death_at_every_store_beside_another_hand_at_every_access, BESIDE),
    (Canary::HeldLate, crash::death_at_every_store_and_of_whoever_clears_up, DEATHS),
    (Canary::EndEarly, crash::death_at_every_store_and_of_whoever_clears_up, DEATHS),
    (Canary::SlotEarly, crash::death_at_every_store_and_of_whoever_clears_up, DEATHS),
    (Canary::PushUndone, crash::death_at_every_store_and_of_whoever_clears_up, DEATHS),
    (Canary::HandEarly, crash::death_at_every_store_and_of_whoever_clears_up, DEATHS),
    (Canary::RolesKept, crash::death_at_every_store_and_of_whoever_clears_up, DEATHS),
    (Canary::LivingRobbed, moves::nobody_takes_the_hand_of_the_living, "recovery beside the living"),
];

/// Those that take two at a time: `models` hunts them.
const MODELLED: [Canary; 6] = [
    Canary::TailStored,
    Canary::PeekBelieved,
    Canary::HandRobbed,
    Canary::LookEarly,
    Canary::EventLate,
    Canary::FlagLate,
];

/// Where all of them are named.
const PUBLISHED: &str = include_str!("../../../../docs/testing.md");

#[test]
#[cfg_attr(miri, ignore)]
fn canaries_are_noticed() {
    let mut missed = Vec::new();
    for (canary, run, by) in HUNTS {
        match with(*canary, || catch_unwind(run)) {
            Err(payload) => match payload.downcast::<String>() {
                Ok(text) => println!("canary {canary:?} | queues: {by} | {}", text.replace('\n', " ")),
                Err(other) => match other.downcast::<&str>() {
                    Ok(text) => println!("canary {canary:?} | queues: {by} | {text}"),
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
