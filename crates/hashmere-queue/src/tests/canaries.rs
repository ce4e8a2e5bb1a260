//! Each canary is switched on, and a test of this folder must notice.

use super::{crash, moves};
use crate::canary::{assert_hunted, hunt, Canary, Hunt};

const DEATHS: &str = "queues: deaths of the owner and of who clears up";
const BESIDE: &str = "queues: deaths beside another hand";

const HUNTS: &[Hunt] = &[
    (Canary::HandUnsaid, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::SuccessUntold, BESIDE, crash::death_at_every_store_beside_another_hand_at_every_access),
    (Canary::HeadStored, BESIDE, crash::death_at_every_store_beside_another_hand_at_every_access),
    (Canary::CellBelieved, BESIDE, crash::death_at_every_store_beside_another_hand_at_every_access),
    (Canary::HeldLate, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::EndEarly, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::SlotEarly, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::PushUndone, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::HandEarly, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::RolesKept, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::LivingRobbed, "queues: recovery beside the living", moves::nobody_takes_the_hand_of_the_living),
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
const PUBLISHED: &str = include_str!("../../../../docs/internals/testing.md");

#[test]
#[cfg_attr(miri, ignore)]
fn canaries_are_noticed() {
    hunt(HUNTS);
}

#[test]
fn every_canary_is_hunted() {
    assert_hunted(HUNTS, |canary, _| MODELLED.contains(&canary), PUBLISHED);
}
