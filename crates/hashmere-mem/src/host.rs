//! What the engine asks of the machine besides memory: who lives, and what time it is.

use std::io;
use std::time::Duration;

/// What is known of a process, for messages only: nothing is decided by a process id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerInfo {
    /// The process id as that process saw it (its own PID namespace).
    pub pid: u32,
    /// Its command name, if `/proc` shows it.
    pub name: Option<String>,
    /// Its state letter in `/proc` (`T` is stopped), if shown.
    pub state: Option<char>,
}

/// Liveness, identity and time.
///
/// A client slot is *claimed* by an exclusive lock that the kernel drops when the process dies. A process
/// that can claim a slot has thereby proved that no live process owns it, and excludes others while it repairs.
pub trait Host: Send + Sync + 'static {
    /// Tries to take the liveness lock of `slot`. `false`: a live process holds it (possibly through this handle).
    fn try_claim(&self, slot: u32) -> io::Result<bool>;
    /// Gives the liveness lock of `slot` back.
    fn release(&self, slot: u32);
    /// Whether a live process (possibly through this handle) holds `slot`, without taking it.
    fn is_claimed(&self, slot: u32) -> io::Result<bool>;
    /// This process's id, for messages.
    fn pid(&self) -> u32;
    /// What can be said of a process, for messages.
    fn describe(&self, pid: u32) -> PeerInfo;
    /// Wall clock, milliseconds since 1970: for TTL only.
    fn now_ms(&self) -> u64;
    /// The same, perhaps some milliseconds late: for what is reported.
    fn coarse_ms(&self) -> u64 {
        self.now_ms()
    }
    /// Monotonic clock: for waiting only.
    fn monotonic(&self) -> Duration;
}
