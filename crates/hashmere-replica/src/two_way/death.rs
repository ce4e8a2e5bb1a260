//! For tests: a death at a moment that they choose.

use crate::error::ReplicaError;
use hashmere::Store;
use std::cell::Cell;

thread_local! {
    /// How many moments of this thread from now a death is; 0: none.
    static DEATH: Cell<u32> = const { Cell::new(0) };
}

/// Lets this thread's replicators die at the n-th moment from now; 0: not any more.
pub(super) fn die_at(moment: u32) {
    DEATH.set(moment);
}

/// The moment of a death; an error ends what is under way as a kill does, for nothing behind it is done.
pub(super) fn die_here(store: &Store) -> Result<(), ReplicaError> {
    let left = DEATH.get();
    DEATH.set(left.saturating_sub(1));
    match left {
        1 => Err(ReplicaError::Taken { path: store.path().into(), pid: None }),
        _ => Ok(()),
    }
}
