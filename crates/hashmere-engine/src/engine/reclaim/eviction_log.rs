//! Which keys this process dropped to make room, for those who want to know. Off, it costs one load for each of them.

use crate::engine::index::found::Found;
use crate::engine::Engine;
use crate::types::{Evicted, Metadata};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most keys that wait to be asked for: those beyond are not noted.
const WAITING_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(in crate::engine) struct EvictionLog {
    on: AtomicBool,
    waiting: Mutex<Vec<Evicted>>,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// What is to be noted of a record that is being dropped; `None`: evictions are not recorded. Under its key's lock.
    pub(in crate::engine) fn describe_evicted(&self, found: &Found) -> Option<Metadata> {
        self.evictions.on.load(Ordering::Relaxed).then(|| self.meta_of_found(found))
    }

    /// Notes a key that was dropped. Not to be called under its lock.
    pub(in crate::engine) fn note_evicted(&self, key: &[u8], meta: Option<Metadata>) {
        let Some(Metadata { value_len, expires_at_ms, uid, .. }) = meta else { return };
        let mut waiting = self.evictions.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_MAX {
            waiting.push(Evicted { key: key.to_vec(), value_len, expires_at_ms, uid });
        }
    }

    /// Begins or ends to record which keys this process drops from a cache to make room. Keys that other processes drop
    /// are not recorded, nor keys that expired.
    pub fn record_evictions(&self, on: bool) {
        self.evictions.on.store(on, Ordering::Relaxed);
    }

    /// The keys that were recorded as dropped since the last call. At most 4096 are kept between two calls; more are
    /// not recorded.
    pub fn drain_evictions(&self) -> Vec<Evicted> {
        std::mem::take(&mut *self.evictions.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
