//! What the connections of clients of Redis share: the subscribers, the list of connections, the log of slow commands.

use super::about::About;
use super::lock::lock;
use super::pubsub::Hub;
use super::slow::Slowlog;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

/// All of it.
#[derive(Debug, Default)]
pub struct Shared {
    /// Channels and patterns.
    pub hub: Arc<Hub>,
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
