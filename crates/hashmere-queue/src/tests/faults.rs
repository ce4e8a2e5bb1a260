//! Each seeded fault is switched on, and a test of this folder must notice.

use super::{crash, transfer};
use crate::fault::{assert_hunted, hunt, Fault, Hunt};

const DEATHS: &str = "queues: deaths of the owner and of who clears up";
const BESIDE: &str = "queues: deaths beside another endpoint";

const HUNTS: &[Hunt] = &[
    (Fault::IntentOmitted, DEATHS, crash::death_at_every_store_and_during_its_repair),
    (Fault::SuccessUnconfirmed, BESIDE, crash::death_at_every_store_beside_another_endpoint_at_every_access),
    (Fault::HeadStored, BESIDE, crash::death_at_every_store_beside_another_endpoint_at_every_access),
    (Fault::CellUnchecked, BESIDE, crash::death_at_every_store_beside_another_endpoint_at_every_access),
    (Fault::HeldLate, DEATHS, crash::death_at_every_store_and_during_its_repair),
    (Fault::EndEarly, DEATHS, crash::death_at_every_store_and_during_its_repair),
    (Fault::SlotEarly, DEATHS, crash::death_at_every_store_and_during_its_repair),
    (Fault::PushUndone, DEATHS, crash::death_at_every_store_and_during_its_repair),
    (Fault::EndpointFreedEarly, DEATHS, crash::death_at_every_store_and_during_its_repair),
    (Fault::RolesRetained, DEATHS, crash::death_at_every_store_and_during_its_repair),
    (
        Fault::LiveOwnerRecovered,
        "queues: recovery beside live owners",
        transfer::no_client_takes_the_endpoint_of_a_live_one,
    ),
];

/// Those that take two at a time: `models` hunts them.
const MODELLED: [Fault; 6] = [
    Fault::TailStored,
    Fault::PeekUnchecked,
    Fault::OwnerOverwritten,
    Fault::CheckedEarly,
    Fault::EventLate,
    Fault::FlagLate,
];

/// Where all of them are named.
const PUBLISHED: &str = include_str!("../../../../docs/internals/testing.md");

#[test]
#[cfg_attr(miri, ignore)]
fn faults_are_noticed() {
    hunt(HUNTS);
}

#[test]
fn every_fault_is_hunted() {
    assert_hunted(HUNTS, |fault, _| MODELLED.contains(&fault), PUBLISHED);
}
