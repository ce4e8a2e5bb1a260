//! Each seeded fault is switched on, and a test of this folder must notice.

use super::{crash, loss};
use crate::fault::{assert_hunted, hunt, Fault, Hunt};

const DRAINERS: &str = "log: deaths of two drainers";

const HUNTS: &[Hunt] = &[
    (Fault::HalfTwice, "log: deaths of a writer and of who recovers", crash::a_writer_dies_at_every_store),
    (Fault::SuccessorOmitted, "log: owners of a ring one after another", loss::the_next_owner_of_a_ring_is_not_blamed),
    (
        Fault::NameUnchecked,
        "log: names replaced while they are read",
        loss::a_name_that_is_replaced_while_it_is_read_is_not_mixed,
    ),
    (Fault::MergeUndone, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
    (Fault::HeadsEarly, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
    (Fault::ChunkEarly, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
    (Fault::SentEarly, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
    (Fault::ProgressForgotten, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
];

/// Those that take two at a time: `models` hunts them.
const MODELLED: [Fault; 13] = [
    Fault::BusyOmitted,
    Fault::ClockEarly,
    Fault::LineEarly,
    Fault::LowOmitted,
    Fault::GivenUpUnchecked,
    Fault::RingStolen,
    Fault::RingEarly,
    Fault::OldestUnchecked,
    Fault::DrainerOverwritten,
    Fault::RoleStored,
    Fault::WakeFlagUnchecked,
    Fault::WaitingLate,
    Fault::NewsUnchecked,
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
