//! What the connections of clients of Redis share: the subscribers, the list of connections, the log of slow commands.

use super::client::{About, Client};
use super::parse::Args;
use super::pubsub::Hub;
use super::slowlog::Slowlog;
use crate::turn::Turn;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// All of it.
#[derive(Debug, Default)]
pub struct Shared {
    /// Channels and patterns.
    pub hub: Hub,
    /// Slow commands.
    pub slowlog: Slowlog,
    clients: Mutex<BTreeMap<u64, Weak<Mutex<About>>>>,
}

impl Shared {
    /// Adds a connection. It ends when it is dropped.
    pub fn enter(&self, id: u64) -> Arc<Mutex<About>> {
        let about = Arc::new(Mutex::new(About::new(id)));
        let mut clients = lock(&self.clients);
        clients.retain(|_, client| client.strong_count() > 0);
        clients.insert(id, Arc::downgrade(&about));
        about
    }

    /// The connections.
    pub fn clients(&self) -> Vec<Arc<Mutex<About>>> {
        lock(&self.clients).values().filter_map(Weak::upgrade).collect()
    }
}

/// Takes a lock; what a thread left that failed within it is still a value.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a command that took long.
#[inline]
pub fn note_slow(turn: &Turn<'_>, client: &Client, args: Args<'_>, took: Duration) {
    if took >= super::slowlog::SLOWER_THAN {
        turn.server.resp.slowlog.add(turn, client, args, took);
    }
}
