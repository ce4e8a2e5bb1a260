//! A host inside one process: clients are handles, and death is a method.

use crate::{Host, PeerInfo};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the [`LocalHost`]s of one test share: who holds which slot, who lives, and what time it is.
#[derive(Debug)]
pub struct LocalPeers {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Which host holds a slot.
    owners: HashMap<u32, u32>,
    /// The hosts that live.
    alive: Vec<u32>,
    /// The id of the next host.
    next: u32,
    now_ms: u64,
    monotonic: Duration,
    tick: Duration,
}

impl LocalPeers {
    /// A host without peers, on the wall clock one second after 1970 began.
    pub fn new() -> Arc<LocalPeers> {
        Arc::new(LocalPeers {
            state: Mutex::new(State {
                owners: HashMap::new(),
                alive: Vec::new(),
                next: 1,
                now_ms: 1000,
                monotonic: Duration::ZERO,
                tick: Duration::from_millis(1),
            }),
        })
    }

    /// Sets the wall clock of all hosts.
    pub fn set_now_ms(&self, now_ms: u64) {
        self.state().now_ms = now_ms;
    }

    /// Lets time pass on both clocks of all hosts.
    pub fn advance(&self, by: Duration) {
        let mut state = self.state();
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        state.now_ms = state.now_ms.saturating_add(ms);
        state.monotonic = state.monotonic.saturating_add(by);
    }

    /// By how much the monotonic clock advances with each reading: 1 ms unless set.
    ///
    /// With a clock that never moves, a wait with a deadline would never end.
    pub fn set_tick(&self, tick: Duration) {
        self.state().tick = tick;
    }

    /// Which host (by its [`Host::pid`]) holds a slot.
    pub fn owner(&self, slot: u32) -> Option<u32> {
        self.state().owners.get(&slot).copied()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing here panics half-way, and a test that panics elsewhere should show its own panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark_dead(&self, id: u32) {
        let mut state = self.state();
        state.owners.retain(|_, owner| *owner != id);
        state.alive.retain(|other| *other != id);
    }
}

/// [`Host`] for tests: one client among the [`LocalPeers`] of this process.
///
/// Deterministic and without system calls, so it runs under Miri and model checkers. Two hosts
/// exclude each other as two processes do; dropping one, or [`LocalHost::kill`], frees its slots.
#[derive(Debug)]
pub struct LocalHost {
    peers: Arc<LocalPeers>,
    id: u32,
}

impl LocalHost {
    /// A new, living host among `peers`; its [`Host::pid`] is its number, from 1.
    pub fn new(peers: &Arc<LocalPeers>) -> LocalHost {
        let mut state = peers.state();
        let id = state.next;
        state.next += 1;
        state.alive.push(id);
        drop(state);
        LocalHost { peers: Arc::clone(peers), id }
    }

    /// Drops all its claims and lets it take no more, as the death of its process would. What the
    /// dead one's code still does through its other handles is for the test to prevent.
    pub fn kill(&self) {
        self.peers.mark_dead(self.id);
    }

    /// Those among whom it lives.
    pub fn peers(&self) -> &Arc<LocalPeers> {
        &self.peers
    }
}

impl Drop for LocalHost {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Host for LocalHost {
    /// An error (`NotConnected`) only for a host that was killed.
    fn try_claim(&self, slot: u32) -> io::Result<bool> {
        let mut state = self.peers.state();
        if !state.alive.contains(&self.id) {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "this host was killed"));
        }
        if state.owners.contains_key(&slot) {
            return Ok(false);
        }
        state.owners.insert(slot, self.id);
        Ok(true)
    }

    fn release(&self, slot: u32) {
        let mut state = self.peers.state();
        if state.owners.get(&slot) == Some(&self.id) {
            state.owners.remove(&slot);
        }
    }

    fn is_claimed(&self, slot: u32) -> io::Result<bool> {
        Ok(self.peers.state().owners.contains_key(&slot))
    }

    fn pid(&self) -> u32 {
        self.id
    }

    fn describe(&self, pid: u32) -> PeerInfo {
        let alive = self.peers.state().alive.contains(&pid);
        PeerInfo { pid, name: alive.then(|| format!("local-{pid}")), state: alive.then_some('R') }
    }

    fn now_ms(&self) -> u64 {
        self.peers.state().now_ms
    }

    fn monotonic(&self) -> Duration {
        let mut state = self.peers.state();
        state.monotonic = state.monotonic.saturating_add(state.tick);
        state.monotonic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_exclude_and_die() {
        let peers = LocalPeers::new();
        let (a, b) = (LocalHost::new(&peers), LocalHost::new(&peers));
        assert!(a.try_claim(3).unwrap());
        assert!(!a.try_claim(3).unwrap() && !b.try_claim(3).unwrap());
        assert!(a.is_claimed(3).unwrap() && b.is_claimed(3).unwrap());
        b.release(3);
        assert_eq!(peers.owner(3), Some(a.pid()));
        a.release(3);
        assert!(b.try_claim(3).unwrap() && b.try_claim(4).unwrap());
        assert_eq!(a.describe(b.pid()).state, Some('R'));
        b.kill();
        assert_eq!(a.describe(b.pid()), PeerInfo { pid: b.pid(), name: None, state: None });
        assert!(b.try_claim(5).is_err());
        assert!(a.try_claim(3).unwrap());
        b.release(3);
        assert!(a.is_claimed(3).unwrap(), "a dead host releases nothing of others");
        drop(a);
        assert_eq!(peers.owner(3), None);
    }

    #[test]
    fn time_is_what_the_test_says() {
        let peers = LocalPeers::new();
        let host = LocalHost::new(&peers);
        peers.set_now_ms(5000);
        peers.advance(Duration::from_millis(20));
        assert_eq!(host.now_ms(), 5020);
        let first = host.monotonic();
        assert_eq!(host.monotonic() - first, Duration::from_millis(1));
        peers.set_tick(Duration::ZERO);
        assert_eq!(host.monotonic(), host.monotonic());
    }
}
