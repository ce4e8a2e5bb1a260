//! Each canary is switched on, and a test of this folder must notice.

use super::{crash, transfer};
use crate::canary::{assert_hunted, hunt, Canary, Hunt};

const DEATHS: &str = "queues: deaths of the owner and of who clears up";
const BESIDE: &str = "queues: deaths beside another endpoint";

const HUNTS: &[Hunt] = &[
    (Canary::IntentOmitted, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::SuccessUnconfirmed, BESIDE, crash::death_at_every_store_beside_another_endpoint_at_every_access),
    (Canary::HeadStored, BESIDE, crash::death_at_every_store_beside_another_endpoint_at_every_access),
    (Canary::CellUnchecked, BESIDE, crash::death_at_every_store_beside_another_endpoint_at_every_access),
    (Canary::HeldLate, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::EndEarly, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::SlotEarly, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::PushUndone, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::EndpointFreedEarly, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (Canary::RolesRetained, DEATHS, crash::death_at_every_store_and_of_whoever_clears_up),
    (
        Canary::LiveOwnerRecovered,
        "queues: recovery beside the living",
        transfer::nobody_takes_the_endpoint_of_the_living,
    ),
];

/// Those that take two at a time: `models` hunts them.
const MODELLED: [Canary; 6] = [
    Canary::TailStored,
    Canary::PeekUnchecked,
    Canary::OwnerOverwritten,
    Canary::CheckedEarly,
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
