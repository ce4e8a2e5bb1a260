//! The traced process: `hashmere-testkit-step work SCENARIO ARGUMENT STORE`.

use super::queues::{self, QueueScenario};
use super::scenario::Scenario;
use super::trace::MARKER;
use hashmere::{Options, Store};
use nix::sys::signal::{raise, signal, SigHandler};
use std::path::Path;

/// Opens the store, does the operation between two markers, and ends.
///
/// # Panics
/// If the operation fails.
pub fn work(scenario: &Scenario, argument: u64, path: &Path) {
    be_ready();
    let open = || Options::new().create(false).open(path).expect("open the store");
    if scenario.cold {
        between_markers(|| (scenario.act)(&open(), argument));
        return;
    }
    let store: Store = open();
    (scenario.first)(&store, argument);
    between_markers(|| (scenario.act)(&store, argument));
}

/// The same for an operation on queues.
///
/// # Panics
/// If the operation fails.
pub fn work_queue(scenario: &QueueScenario, path: &Path) {
    be_ready();
    let store = Options::new().create(false).open(path).expect("open the store");
    queues::work(scenario, &store, mark);
}

fn be_ready() {
    crate::procs::die_with_parent();
    // SAFETY: no handler runs. A tracer sees the signal all the same; without one it must do nothing.
    unsafe { signal(MARKER, SigHandler::SigIgn) }.expect("ignore the marker");
}

fn mark() {
    raise(MARKER).expect("mark");
}

fn between_markers(operation: impl FnOnce()) {
    mark();
    operation();
    mark();
}
