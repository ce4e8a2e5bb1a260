//! The connections and the listeners, for `stats conns`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a connection is about, under memcached's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It has said nothing yet.
    New,
    /// It is none: it listens.
    Listening,
    /// It waits for a request.
    Read,
    /// Its request is being performed.
    Parse,
    /// It waits for the rest of a value.
    Value,
    /// It ignores a value.
    Swallow,
    /// It waits for its replies to be taken.
    Write,
    /// It gets what `watch` reports.
    Watch,
    /// It gets the store's changes.
    Feed,
}

impl State {
    const ALL: [State; 9] = {
        use State::*;
        [New, Listening, Read, Parse, Value, Swallow, Write, Watch, Feed]
    };

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            State::New => "conn_new_cmd",
            State::Listening => "conn_listening",
            State::Read => "conn_read",
            State::Parse => "conn_parse_cmd",
            State::Value => "conn_nread",
            State::Swallow => "conn_swallow",
            State::Write => "conn_mwrite",
            State::Watch => "conn_watch",
            State::Feed => "conn_feed",
        }
    }
}

/// One connection, or a socket that listens.
#[derive(Debug)]
pub struct Peer {
    /// Its number; not used again.
    pub id: u64,
    /// Where it comes from.
    pub address: String,
    /// The listener that it came to; empty if it is one.
    pub listener: String,
    /// The second of its last request.
    pub active: AtomicU64,
    state: AtomicU8,
}

impl Peer {
    /// What it is about.
    pub fn state(&self) -> State {
        State::ALL[usize::from(self.state.load(Ordering::Relaxed)) % State::ALL.len()]
    }

    /// Notes what it is about from now on.
    #[inline]
    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Its address without the kind.
    pub fn place(&self) -> &str {
        let place = self.address.strip_prefix("tcp:").or_else(|| self.address.strip_prefix("unix:"));
        place.unwrap_or(&self.address)
    }

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
        self.insert(address, listener, now, State::New)
    }

    /// Notes a socket that listens.
    pub fn listens(&self, address: String, now: u64) {
        self.insert(address, String::new(), now, State::Listening);
    }

    fn insert(&self, address: String, listener: String, now: u64, state: State) -> Arc<Peer> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (active, state) = (AtomicU64::new(now), AtomicU8::new(state as u8));
        let peer = Arc::new(Peer { id, address, listener, active, state });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_keep_their_places() {
        assert!(State::ALL.iter().enumerate().all(|(i, state)| *state as usize == i));
    }
}
