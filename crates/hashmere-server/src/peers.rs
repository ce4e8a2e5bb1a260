//! Who is connected, for `stats conns`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One connection.
#[derive(Debug)]
pub struct Peer {
    /// Its number; not used again.
    pub id: u64,
    /// Where it comes from.
    pub address: String,
    /// The listener that it came to.
    pub listener: String,
    /// The second of its last request.
    pub active: AtomicU64,
}

impl Peer {
    /// Address, port and transport, as logs name them.
    pub fn parts(&self) -> (&str, &str, &str) {
        let place = self.address.strip_prefix("tcp:").and_then(|place| place.rsplit_once(':'));
        place.map_or(("unix", "0", "local"), |(ip, port)| (ip.trim_matches(['[', ']']), port, "tcp"))
    }
}

/// The open connections.
#[derive(Debug, Default)]
pub struct Peers {
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Peer>>>,
}

impl Peers {
    /// Notes a connection.
    pub fn enter(&self, address: String, listener: String, now: u64) -> Arc<Peer> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let peer = Arc::new(Peer { id, address, listener, active: AtomicU64::new(now) });
        self.lock().insert(id, peer.clone());
        peer
    }

    /// Forgets a connection.
    pub fn leave(&self, peer: &Peer) {
        self.lock().remove(&peer.id);
    }

    /// All of them.
    pub fn list(&self) -> Vec<Arc<Peer>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Peer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
