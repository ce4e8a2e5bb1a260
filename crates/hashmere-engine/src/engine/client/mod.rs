//! Who uses the store: client slots, the writers of this process, and the locks that they hold.
//!
//! [`slots`] claims a slot and proves a death; [`writer`] hands the writers of this process out to its threads
//! ([`thread`]); [`lock`] takes a lock, [`fairness`] leaves one to another, and [`stalled`] proceeds without one;
//! [`quiesce`] waits for what is under way; [`epoch`] says what an operation holds back, [`shown`] which keys a thread
//! is showing; [`wait`] wakes those that wait for a key; [`counts`] sums over all clients.

pub(super) mod counts;
pub(super) mod epoch;
pub(super) mod fairness;
pub(super) mod lock;
pub(super) mod quiesce;
pub(super) mod sampling;
pub(super) mod shown;
pub(super) mod slots;
pub(super) mod stalled;
pub(super) mod thread;
pub(super) mod wait;
pub(super) mod writer;
pub(super) mod writer_state;

use std::sync::atomic::AtomicU64;

/// What this process knows of the clients of the store.
pub(super) struct Clients {
    writers: writer::Writers,
    stalled: stalled::Stalled,
    /// This process's last look for dead clients; 0: it has not looked yet.
    look: AtomicU64,
}

impl Clients {
    pub(super) fn new() -> Clients {
        Clients { writers: writer::Writers::new(), stalled: stalled::Stalled::default(), look: AtomicU64::new(0) }
    }
}
