//! Each seeded fault is switched on, and a test of this folder must notice.
//!
//! What the models must find is listed beside their scenarios; what only whole processes show is hunted by
//! `scripts/faults`.

use super::fixture::strict;
use super::history::History;
use super::power::{all_that_arrived, ghosts, verify};
use super::power_between::{interleave, kill_then_sync, sync, WRITES};
use super::{
    backup, backup_cases, crash_cases, crash_feed, crash_transact, fairness, feed, in_place, interleaving, maximum,
    miri_subset, power, reach, refused_space, regions, sampling, stalled, version_floor,
};
use crate::fault::{assert_hunted, hunt, Fault, Hunt};

const WRITING: &[Hunt] = &[
    (Fault::HeadLate, "deaths: set new", crash_cases::set_of_a_new_key),
    (Fault::IntentUnsaid, "deaths: set new", crash_cases::set_of_a_new_key),
    (Fault::KeyUncompared, "calls: overflow", miri_subset::leaves_split_and_overflow),
    (Fault::ReadUncompared, "deaths: overflow", crash_cases::overflowing),
    (Fault::OverflowUnsaid, "deaths: overflow", crash_cases::overflowing),
    (Fault::VersionRepeated, "deaths: replace", crash_cases::replacement),
    (Fault::YieldIgnored, "fairness", fairness::writers_yield_to_an_update_that_was_beaten),
    (Fault::RaiseUnsaid, "deaths: versions asked for", version_floor::deaths_of_who_asks),
    (Fault::RepairUnnamed, "deaths: replace", crash_cases::replacement),
    (Fault::RowUnrepaired, "deaths: next segment, claim, release", crash_cases::opening_segments),
    (Fault::CommitRelaxed, "late stores: delete", crash_cases::deletion),
    (Fault::MarkRelaxed, "late stores: emergency cleaning", crash_cases::emergency_cleaning),
    (Fault::RowRelaxed, "late stores: delete", crash_cases::deletion),
    (Fault::SplitUndone, "deaths: split", crash_cases::splitting),
    (Fault::SpareTwice, "deaths: split", crash_cases::splitting),
    (Fault::DepthEarly, "deaths: split", crash_cases::splitting),
    (Fault::SecondUnsaid, "stopped: overflow", stalled::new_keys_beside_one_that_is_stopped_in_the_overflow_tree),
    (Fault::PendingLate, "deaths: two keys", crash_transact::two_keys_in_all_mixtures),
    (Fault::LocksUnnamed, "deaths: two keys", crash_transact::two_keys_in_all_mixtures),
    (Fault::LockAwaited, "stopped: plain writes", stalled::new_keys_beside_one_that_is_stopped_in_a_plain_write),
];

const SEGMENTS: &[Hunt] = &[
    (Fault::ReplacementUnvisited, "a cache: a counter beside others", in_place::a_counter_of_a_cache_is_used),
    (Fault::HeaderBelieved, "one interruption: item/replace", interleaving::item_while_it_is_replaced_in_place),
    (Fault::PairDivided, "one interruption: replace/item", interleaving::replace_in_place_while_it_is_read),
    (Fault::CursorSlips, "one interruption: scan/split", interleaving::scan_while_the_index_grows),
    (Fault::MoveBelieved, "one interruption: clean/replace", interleaving::clean_while_what_lives_is_overwritten),
    (Fault::PastBelieved, "one interruption: expire/touch", interleaving::expire_while_it_is_touched),
    (Fault::RecordAwaited, "stopped: cleaning", stalled::cleaning_goes_on_beside_one_that_is_stopped),
    (
        Fault::RefusedEarly,
        "stopped: split, eviction",
        stalled::room_is_waited_for_beside_one_that_is_stopped_in_a_split,
    ),
    (Fault::ReserveSpent, "deaths: emergency cleaning", crash_cases::emergency_cleaning),
    (Fault::HoleEarly, "one interruption: compact/large", interleaving::compact_while_large_records_come_and_go),
    (Fault::HoleForgotten, "requests refused", refused_space::each_kind_of_request_leaves_space_as_it_was),
    (Fault::MemoryUnasked, "deaths: large records", crash_cases::large_records),
    (Fault::LargeUnasked, "deaths: large records", crash_cases::large_records),
    (Fault::DropUnfinished, "deaths: drop region", regions::death_while_one_is_dropped),
    (Fault::TailForgotten, "deaths: large records", crash_cases::large_records),
    (Fault::TailUnjoined, "deaths: a directory of several segments", crash_cases::doubling_into_several_segments),
    (Fault::RootEarly, "deaths: clear", crash_cases::clearing),
    (Fault::OfflineUncounted, "deaths: shrink", maximum::deaths_of_who_takes_segments_out_of_use),
    (Fault::OverBelieved, "one interruption: trim", maximum::two_take_segments_out_of_use),
    (Fault::RefusalIgnored, "few addresses: histories", reach::histories),
    (Fault::ReachUnasked, "few addresses: histories", reach::histories),
];

const FEED: &[Hunt] = &[
    (Fault::FeedUnsaid, "deaths: a feed, replace", crash_feed::single_keys),
    (Fault::FeedForgotten, "deaths: a feed, in place", crash_feed::in_place),
    (Fault::FloorUnraised, "a feed goes round", feed::positions_that_are_gone_are_told),
    (Fault::ChunkShared, "a feed: more writers than chunks", feed::more_writers_than_chunks),
    (Fault::TailUnmoved, "a feed: every kind of change", feed::every_kind_of_change_is_told),
    (Fault::EntryBelieved, "one interruption: follow/go round", interleaving::follow_while_it_goes_round),
    (Fault::FeedUnawaited, "one interruption: set/switch off", interleaving::write_while_it_is_switched_off),
];

const SAMPLING: &[Hunt] = &[
    (Fault::SampleBelieved, "samples: a ring that comes round", sampling::a_ring_that_comes_round),
    (Fault::SamplingUnended, "samples: it ends by itself", sampling::it_ends_by_itself),
];

const DURABLE: &[Hunt] = &[
    (Fault::QuarantineSkipped, "power cuts: histories", || histories(12)),
    (Fault::DeathUnstamped, "power cuts: histories", || histories(0)),
    (Fault::PointUnflushed, "power cuts: histories", || histories(0)),
    (Fault::PointEarly, "power cuts: histories", || histories(231)),
    (Fault::PointInPlace, "power cuts: histories", || histories(0)),
    (Fault::FloorIgnored, "power cuts: histories", || histories(2)),
    (Fault::MemberBelieved, "power cuts: histories", || histories(0)),
    (Fault::PeriodEarly, "power cuts: histories", || histories(0)),
    (Fault::SumsBelieved, "power cuts: histories", || histories(1)),
    (Fault::PoisonIgnored, "power cuts: a disk that fails", power::a_disk_that_fails_poisons),
];

const BETWEEN: &[Hunt] = &[
    (Fault::StampEarly, "power cuts: a sync at each access", at_each_access),
    (Fault::RepairUnstamped, "power cuts: a death before a sync", after_death),
    (Fault::CommitsUnawaited, "power cuts: a death before a sync", after_death),
    (Fault::BornEarly, "power cuts: a death before a sync", after_death),
    (Fault::FirstWins, "power cuts: what arrived is there", || (0..20).try_for_each(all_that_arrived).unwrap()),
    (Fault::GhostsLeft, "power cuts: ghosts", || ghosts().unwrap()),
];

const BACKUPS: &[Hunt] = &[
    (Fault::VersionsUnraised, "backups: others write", backup::others_write_all_the_time),
    (Fault::KeptUnmarked, "backups: others write", backup::others_write_all_the_time),
    (Fault::KeptLate, "backups: deaths of writers", backup_cases::writers_may_die_during_a_backup),
    (Fault::RetainedReused, "backups: room is wanted", backup_cases::retained_records_are_not_reused),
    (Fault::OldMarksBelieved, "backups: after a dead one", backup_cases::nothing_deleted_comes_back),
];

/// Found by scenarios of `models`, which say so themselves.
const MODELS: &[Fault] = &[
    Fault::LockIgnored,
    Fault::OwnerRobbed,
    Fault::RepairUnguarded,
    Fault::CommitForgotten,
    Fault::CountEarly,
    Fault::LeafBelieved,
    Fault::LookupBelieved,
    Fault::ReplacementUnseen,
    Fault::ReplacedForBackup,
    Fault::AbsenceBelieved,
    Fault::SlotBelieved,
    Fault::EpochIgnored,
    Fault::GenerationIgnored,
    Fault::MissBelieved,
    Fault::ScanBelieved,
    Fault::SplitClearsFirst,
    Fault::PinIgnored,
    Fault::PinBelieved,
    Fault::RecycleUnsaid,
    Fault::ActiveIgnored,
    Fault::MarkingIgnored,
    Fault::FloorUnawaited,
    Fault::MomentMissed,
    Fault::MarksUnawaited,
    Fault::CellBelieved,
    Fault::SnapshotBelieved,
    Fault::AbsenceUnproved,
    Fault::GuardIgnored,
    Fault::RepairBackward,
];

/// Found by tests with whole processes: `scripts/faults` names them.
const PROCESSES: &str = include_str!("../../../../../scripts/faults");

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
fn faults_of_the_feed_show() {
    hunt(FEED);
}

#[test]
#[cfg_attr(miri, ignore)]
fn faults_of_sampling_show() {
    hunt(SAMPLING);
}

#[test]
#[cfg_attr(miri, ignore)]
fn faults_of_backups_show() {
    hunt(BACKUPS);
}

#[test]
fn every_fault_is_hunted() {
    let here = [WRITING, SEGMENTS, FEED, SAMPLING, DURABLE, BETWEEN, BACKUPS].concat();
    let others = |fault, name: &str| MODELS.contains(&fault) || PROCESSES.contains(&format!("hunt {name} "));
    assert_hunted(&here, others, PUBLISHED);
}
