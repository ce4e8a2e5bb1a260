//! Canaries: one mechanism of durability is broken at a time, and the power cuts must show it.

use super::history::History;
use super::power::{all_that_arrived, ghosts, verify};
use super::power_between::{interleave, kill_then_sync, sync, WRITES};
use super::world::strict;
use crate::engine::fault;

/// Runs with a fault in force.
fn with<R>(fault: u32, run: impl FnOnce() -> R) -> R {
    fault::set(fault);
    let result = run();
    fault::set(0);
    result
}

/// Histories with a fault, until a power cut shows it. `first` is where that is known to be soon.
fn shows_in_histories(fault: u32, first: u64) -> Option<String> {
    for seed in first..first + 400 {
        let mut history = History::new(strict(64).durable().small_leaves(), seed);
        with(fault, || history.run(120));
        let mut shown = None;
        history.cut(27, &mut |history, moment, choice, heap, len| {
            let seen = with(fault, || {
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| verify(history, moment, heap, len).map(drop)))
                    .unwrap_or_else(|_| Err("a panic".into()))
            });
            if let Err(error) = seen {
                shown = shown.take().or(Some(format!("history {seed}, {choice:?}: {error}")));
            }
        });
        if shown.is_some() {
            return shown;
        }
    }
    None
}

fn expect_shown(name: &str, shown: Option<String>) {
    match shown {
        Some(text) => println!("{name}: {text}"),
        None => panic!("the fault `{name}` goes unnoticed"),
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn each_fault_shows() {
    for (name, fault, first) in [
        ("no quarantine", fault::NO_QUARANTINE, 2),
        ("no stamps", fault::NO_STAMPS, 0),
        ("point not flushed", fault::POINT_NOT_FLUSHED, 0),
        ("point before data", fault::POINT_BEFORE_DATA, 40),
        ("no floor", fault::NO_FLOOR, 2),
        ("no sums", fault::NO_SUMS, 1),
    ] {
        expect_shown(name, shows_in_histories(fault, first));
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn each_fault_between_two_clients_shows() {
    let geometry = strict(64).durable();
    let at_each_access =
        |fault| with(fault, || WRITES.iter().find_map(|(_, act, step)| interleave(*act, geometry, sync, *step).err()));
    expect_shown("early number", at_each_access(fault::EARLY_NUMBER));
    let after_death =
        |fault| with(fault, || WRITES.iter().find_map(|(_, act, step)| kill_then_sync(*act, geometry, *step).err()));
    expect_shown("no stamp in a repair", after_death(fault::NO_STAMP_IN_REPAIR));
    expect_shown("no wait", after_death(fault::NO_WAIT));
    expect_shown("first wins", with(fault::FIRST_WINS, || (0..20).find_map(|seed| all_that_arrived(seed).err())));
    expect_shown("ghosts stay", with(fault::GHOSTS_STAY, || ghosts().err()));
    expect_shown("alive before the commit", after_death(fault::ALIVE_BEFORE_COMMIT));
}
