//! Each canary is switched on, and a test of this folder must notice.
//!
//! What the models must find stands beside their stories; what only whole processes show is hunted by `scripts/canaries`.

use super::history::History;
use super::power::{all_that_arrived, ghosts, verify};
use super::power_between::{interleave, kill_then_sync, sync, WRITES};
use super::world::strict;
use super::{
    asked, backup, backup_cases, crash_cases, fairness, maximum, meanwhile, power, quick, reach, refused_space,
    regions, stalled,
};
use crate::canary::{assert_hunted, hunt, Canary, Hunt};

const WRITING: &[Hunt] = &[
    (Canary::HeadLate, "deaths: set new", crash_cases::set_of_a_new_key),
    (Canary::IntentUnsaid, "deaths: set new", crash_cases::set_of_a_new_key),
    (Canary::KeyUncompared, "calls: overflow", quick::leaves_split_and_overflow),
    (Canary::ReadUncompared, "deaths: overflow", crash_cases::overflowing),
    (Canary::OverflowUnsaid, "deaths: overflow", crash_cases::overflowing),
    (Canary::VersionRepeated, "deaths: replace", crash_cases::replacement),
    (Canary::YieldIgnored, "fairness", fairness::writers_yield_to_an_update_that_was_beaten),
    (Canary::RaiseUnsaid, "deaths: versions asked for", asked::deaths_of_who_asks),
    (Canary::RepairUnnamed, "deaths: replace", crash_cases::replacement),
    (Canary::RowUnrepaired, "deaths: next segment, claim, release", crash_cases::opening_segments),
    (Canary::CommitRelaxed, "late stores: delete", crash_cases::deletion),
    (Canary::MarkRelaxed, "late stores: clean by force", crash_cases::cleaning_by_force),
    (Canary::RowRelaxed, "late stores: delete", crash_cases::deletion),
    (Canary::SplitUndone, "deaths: split", crash_cases::splitting),
    (Canary::SpareTwice, "deaths: split", crash_cases::splitting),
    (Canary::DepthEarly, "deaths: split", crash_cases::splitting),
    (Canary::SecondUnsaid, "stopped: overflow", stalled::new_keys_beside_one_that_is_stopped_in_the_overflow_tree),
    (Canary::LockAwaited, "stopped: plain writes", stalled::new_keys_beside_one_that_is_stopped_in_a_plain_write),
];

const SEGMENTS: &[Hunt] = &[
    (Canary::CursorSlips, "one interruption: scan/split", meanwhile::scan_while_the_index_grows),
    (Canary::MoveBelieved, "one interruption: clean/replace", meanwhile::clean_while_what_lives_is_overwritten),
    (Canary::PastBelieved, "one interruption: expire/touch", meanwhile::expire_while_it_is_touched),
    (Canary::RecordAwaited, "stopped: cleaning", stalled::cleaning_goes_on_beside_one_that_is_stopped),
    (
        Canary::RefusedEarly,
        "stopped: split, eviction",
        stalled::room_is_waited_for_beside_one_that_is_stopped_in_a_split,
    ),
    (Canary::ReserveSpent, "deaths: clean by force", crash_cases::cleaning_by_force),
    (Canary::HoleEarly, "one interruption: compact/large", meanwhile::compact_while_large_records_come_and_go),
    (Canary::HoleForgotten, "requests refused", refused_space::each_kind_of_request_leaves_space_as_it_was),
    (Canary::MemoryUnasked, "deaths: large records", crash_cases::large_records),
    (Canary::LargeUnasked, "deaths: large records", crash_cases::large_records),
    (Canary::DropUnfinished, "deaths: drop region", regions::death_while_one_is_dropped),
    (Canary::TailForgotten, "deaths: large records", crash_cases::large_records),
    (Canary::RootEarly, "deaths: clear", crash_cases::clearing),
    (Canary::OfflineUncounted, "deaths: shrink", maximum::deaths_of_who_takes_segments_out_of_use),
    (Canary::OverBelieved, "one interruption: trim", maximum::two_take_segments_out_of_use),
    (Canary::RefusalIgnored, "few addresses: histories", reach::histories),
    (Canary::ReachUnasked, "few addresses: histories", reach::histories),
];

const DURABLE: &[Hunt] = &[
    (Canary::QuarantineSkipped, "power cuts: histories", || histories(12)),
    (Canary::DeathUnstamped, "power cuts: histories", || histories(0)),
    (Canary::PointUnflushed, "power cuts: histories", || histories(0)),
    (Canary::PointEarly, "power cuts: histories", || histories(231)),
    (Canary::PointInPlace, "power cuts: histories", || histories(0)),
    (Canary::FloorIgnored, "power cuts: histories", || histories(2)),
    (Canary::SumsBelieved, "power cuts: histories", || histories(1)),
    (Canary::PoisonIgnored, "power cuts: a disk that fails", power::a_disk_that_fails_poisons),
];

const BETWEEN: &[Hunt] = &[
    (Canary::StampEarly, "power cuts: a sync at each access", at_each_access),
    (Canary::RepairUnstamped, "power cuts: a death before a sync", after_death),
    (Canary::CommitsUnawaited, "power cuts: a death before a sync", after_death),
    (Canary::BornEarly, "power cuts: a death before a sync", after_death),
    (Canary::FirstWins, "power cuts: what arrived is there", || (0..20).try_for_each(all_that_arrived).unwrap()),
    (Canary::GhostsLeft, "power cuts: ghosts", || ghosts().unwrap()),
];

const BACKUPS: &[Hunt] = &[
    (Canary::VersionsUnraised, "backups: others write", backup::others_write_all_the_time),
    (Canary::KeptUnmarked, "backups: others write", backup::others_write_all_the_time),
    (Canary::KeptLate, "backups: deaths of writers", backup_cases::writers_may_die_during_a_backup),
    (Canary::KeptReused, "backups: room is wanted", backup_cases::kept_records_are_not_reused),
    (Canary::OldMarksBelieved, "backups: after a dead one", backup_cases::nothing_deleted_comes_back),
];

/// Found by stories of `models`, which say so themselves.
const MODELS: &[Canary] = &[
    Canary::LockIgnored,
    Canary::OwnerRobbed,
    Canary::RepairUnguarded,
    Canary::CommitForgotten,
    Canary::CountEarly,
    Canary::LeafBelieved,
    Canary::SightBelieved,
    Canary::AbsenceBelieved,
    Canary::SlotBelieved,
    Canary::EpochIgnored,
    Canary::GenerationIgnored,
    Canary::MissBelieved,
    Canary::ScanBelieved,
    Canary::SplitClearsFirst,
    Canary::PinIgnored,
    Canary::PinBelieved,
    Canary::RecycleUnsaid,
    Canary::ActiveIgnored,
    Canary::BurialIgnored,
    Canary::FloorUnawaited,
    Canary::MomentMissed,
    Canary::MarksUnawaited,
];

/// Found by tests with whole processes: `scripts/canaries` names them.
const PROCESSES: &str = include_str!("../../../../../scripts/canaries");

/// Where all of them are named.
const PUBLISHED: &str = include_str!("../../../../../docs/internals/testing.md");

/// Histories, until a power cut shows the fault. `first` is where that is known to be soon.
fn histories(first: u64) {
    for seed in first..first + 400 {
        let mut history = History::new(strict(64).durable().small_leaves(), seed);
        history.run(120);
        history.cut(27, &mut |history, moment, choice, heap, len| {
            if let Err(error) = verify(history, moment, heap, len) {
                panic!("history {seed}, {choice:?}: {error}");
            }
        });
    }
}

fn at_each_access() {
    for (_, act, step) in WRITES {
        interleave(act, strict(64).durable(), sync, step).unwrap();
    }
}

fn after_death() {
    for (_, act, step) in WRITES {
        kill_then_sync(act, strict(64).durable(), step).unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn faults_of_writing_show() {
    hunt(WRITING);
}

#[test]
#[cfg_attr(miri, ignore)]
fn faults_of_segments_show() {
    hunt(SEGMENTS);
}

#[test]
#[cfg_attr(miri, ignore)]
fn faults_of_durable_stores_show() {
    hunt(DURABLE);
}

#[test]
#[cfg_attr(miri, ignore)]
fn faults_between_two_clients_and_a_power_cut_show() {
    hunt(BETWEEN);
}

#[test]
#[cfg_attr(miri, ignore)]
fn faults_of_backups_show() {
    hunt(BACKUPS);
}

#[test]
fn every_canary_is_hunted() {
    let here = [WRITING, SEGMENTS, DURABLE, BETWEEN, BACKUPS].concat();
    let others = |canary, name: &str| MODELS.contains(&canary) || PROCESSES.contains(&format!("hunt {name} "));
    assert_hunted(&here, others, PUBLISHED);
}
