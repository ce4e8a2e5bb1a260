//! Runs a story under the schedulers, with and without a fault of the engine.

use crate::fault::{self, Fault};
use hashmere_mem::stories;
pub(super) use hashmere_mem::stories::{explore, wrong};

/// Explores a story in an engine with a fault, which must be found, and not by hanging.
pub(super) fn must_find(fault: Fault, story: impl Fn() + Send + Sync + 'static) {
    stories::must_find(&format!("{fault:?}"), |tell| fault::with(fault, tell), story);
}
