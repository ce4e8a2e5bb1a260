//! The traced process: `hashmere-kit-step work SCENARIO ARGUMENT STORE`.

use super::scenario::Scenario;
use super::trace::MARKER;
use hashmere::{Options, Store};
use std::path::Path;

/// Opens the store, does the operation between two markers, and ends.
///
/// # Panics
/// If the operation fails.
pub fn work(scenario: &Scenario, argument: u64, path: &Path) {
    crate::procs::die_with_parent();
    // SAFETY: no handler runs. A tracer sees the signal all the same; without one it must do nothing.
    unsafe { libc::signal(MARKER, libc::SIG_IGN) };
    let open = || Options::new().existing_only().open(path).expect("open the store");
    if scenario.cold {
        between_markers(|| (scenario.act)(&open(), argument));
        return;
    }
    let store: Store = open();
    (scenario.first)(&store, argument);
    between_markers(|| (scenario.act)(&store, argument));
}

fn between_markers(operation: impl FnOnce()) {
    let mark = || {
        // SAFETY: no memory is involved.
        unsafe { libc::raise(MARKER) };
    };
    mark();
    operation();
    mark();
}
