//! Counters: one set for each event loop, so that counting costs no locked instruction.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread adds to and all read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds.
    #[inline]
    pub fn add(&self, by: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

macro_rules! counters {
    ($(#[doc = $help:literal] $name:ident)+) => {
        /// What one event loop counts.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $(#[doc = $help] pub $name: Counter,)+
        }

        /// The sums over all event loops.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Totals {
            $(#[doc = $help] pub $name: u64,)+
        }

        impl Totals {
            /// Sums up.
            pub fn of(all: &[Counters]) -> Totals {
                let mut totals = Totals::default();
                for one in all {
                    $(totals.$name = totals.$name.wrapping_add(one.$name.get());)+
                }
                totals
            }

            /// Each with its name and what it is.
            pub fn each(&self, mut sink: impl FnMut(&'static str, &'static str, u64)) {
                $(sink(stringify!($name), $help, self.$name);)+
            }
        }

        impl Counters {
            /// Sets everything to zero (`stats reset`).
            pub fn reset(&self) {
                $(self.$name.reset();)+
            }
        }
    };
}

counters! {
    /// Connections opened.
    connections
    /// Connections refused because there were too many.
    rejected
    /// Connections closed because they were idle.
    idle_kicks
    /// Times that a busy connection had to let others go first.
    yields
    /// Bytes received.
    bytes_read
    /// Bytes sent.
    bytes_written
    /// Keys requested.
    cmd_get
    /// Storing commands.
    cmd_set
    /// Flushes.
    cmd_flush
    /// Touches, with `gat`.
    cmd_touch
    /// Commands of clients of Redis.
    commands
    /// Meta commands.
    cmd_meta
    /// Keys found.
    get_hits
    /// Keys not found.
    get_misses
    /// Keys not found because they had expired, and not been removed yet.
    get_expired
    /// Keys not found because a flush had removed them.
    get_flushed
    /// Keys deleted.
    delete_hits
    /// Deletions of absent keys.
    delete_misses
    /// Increments.
    incr_hits
    /// Increments of absent keys.
    incr_misses
    /// Decrements.
    decr_hits
    /// Decrements of absent keys.
    decr_misses
    /// Versions that matched.
    cas_hits
    /// Versions for absent keys.
    cas_misses
    /// Versions that did not match.
    cas_badval
    /// Keys touched.
    touch_hits
    /// Touches of absent keys.
    touch_misses
    /// Values stored.
    stored
    /// Values refused for their size.
    too_large
    /// Values refused because the store is full.
    no_memory
    /// Leases granted.
    lease_grants
    /// Keys that another client was computing.
    lease_waits
    /// Values stored as stale, for their token was not that of the lease.
    lease_stale
    /// Requests over HTTP.
    http_requests
    /// Those of them that were refused.
    http_refused
    /// Attempts to authenticate.
    auth_cmds
    /// Failed ones.
    auth_errors
}
