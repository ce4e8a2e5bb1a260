//! Who uses the store: client slots, the writers of this process, and the locks that they hold.
//!
//! [`slots`] claims a slot and proves a death; [`writer`] hands the writers of this process out to its threads ([`thread`]);
//! [`lock`] takes a lock and [`stalled`] proceeds without one; [`wait`] sleeps until a key
//! changes.

pub(super) mod lock;
pub(super) mod slots;
pub(super) mod stalled;
pub(super) mod thread;
pub(super) mod wait;
pub(super) mod writer;
pub(super) mod writer_state;
