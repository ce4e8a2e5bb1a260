//! What a connection has for its turn: all that the commands work with.

use crate::outbox::Outbox;
use crate::server::Server;
use crate::stats::counters::Counters;
use hashmere::{Uid, Version};
use hashmere_engine::StoreHandle;

/// One turn of one connection.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The server.
    pub server: &'a Server,
    /// Counters of this event loop.
    pub counters: &'a Counters,
    /// Where replies go.
    pub out: &'a mut Outbox,
    /// Seconds since 1970.
    pub now: u64,
    /// The number of the event loop.
    pub worker: usize,
    /// The number of the connection.
    pub connection: u64,
}

impl Turn<'_> {
    /// The CAS id that clients see of this version.
    #[inline]
    pub fn cas(&self, version: Version) -> u64 {
        if self.server.config.cas {
            version.0
        } else {
            0
        }
    }

    /// A key that was asked for is absent: counts the reason, if it is known.
    #[inline]
    pub fn missed(&self, key: &[u8]) {
        // An expired record is deleted here, and counted once. If a stopped process holds its lock, it is left for
        // later.
        if self.server.store.shared().delete_expired(key).unwrap_or(false) {
            self.counters.get_expired.add(1);
        } else if self.server.flushed.forget(key) {
            self.counters.get_flushed.add(1);
        }
    }

    /// Notes that a key was stored (`false`) or fetched.
    #[inline]
    pub fn note(&self, uid: Uid, fetched: bool) {
        self.server.access.note(uid, fetched, self.now);
    }
}
