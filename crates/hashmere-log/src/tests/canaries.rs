//! Each canary is switched on, and a test of this folder must notice.

use super::{crash, loss};
use crate::canary::{assert_hunted, hunt, Canary, Hunt};

const DRAINERS: &str = "log: deaths of two drainers";

const HUNTS: &[Hunt] = &[
    (Canary::HalfTwice, "log: deaths of a writer and of who settles", crash::a_writer_dies_at_every_store),
    (Canary::SuccessorOmitted, "log: owners of a ring one after another", loss::the_next_owner_of_a_ring_is_not_blamed),
    (
        Canary::NameUnchecked,
        "log: names replaced while they are read",
        loss::a_name_that_is_replaced_while_it_is_read_is_not_mixed,
    ),
    (Canary::MergeUndone, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
    (Canary::HeadsEarly, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
    (Canary::ChunkEarly, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
    (Canary::SentEarly, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
    (Canary::ProgressForgotten, DRAINERS, crash::drainers_die_at_every_store_one_after_the_other),
];

/// Those that take two at a time: `models` hunts them.
const MODELLED: [Canary; 13] = [
    Canary::BusyOmitted,
    Canary::ClockEarly,
    Canary::LineEarly,
    Canary::LowOmitted,
    Canary::GivenUpUnchecked,
    Canary::RingStolen,
    Canary::RingEarly,
    Canary::OldestUnchecked,
    Canary::DrainerOverwritten,
    Canary::RoleStored,
    Canary::WakeFlagUnchecked,
    Canary::WaitingLate,
    Canary::NewsUnchecked,
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
