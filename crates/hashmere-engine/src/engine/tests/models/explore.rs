//! Runs a scenario under the schedulers, with and without a fault of the engine.

use crate::fault::{self, Fault};
use hashmere_mem::scenarios;
pub(super) use hashmere_mem::scenarios::{explore, wrong};

/// Explores a scenario in an engine with a fault, which must be found, and not by hanging.
pub(super) fn must_find(fault: Fault, scenario: impl Fn() + Send + Sync + 'static) {
    scenarios::must_find(&format!("{fault:?}"), |tell| fault::with(fault, tell), scenario);
}
