//! Waiting until every operation that is under way has ended: what a change that all of them must see is followed by.

use crate::engine::client::stalled::LOOK;
use crate::engine::Engine;
use crate::error::WriteError;
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Waits until every operation that began before this call has ended. Crashed clients are repaired.
    pub(in crate::engine) fn wait_for_writers(&self, own: u32) -> Result<(), WriteError> {
        self.rows().filter(|slot| *slot != own).try_for_each(|slot| self.wait_for_writer(slot))
    }

    fn wait_for_writer(&self, slot: u32) -> Result<(), WriteError> {
        let active = row::offset(slot) + row::at::ACTIVE;
        let start = self.host.monotonic();
        for looks in 0u64.. {
            let seen = self.mem.load(active, Ordering::SeqCst);
            if seen == 0 {
                break;
            }
            if looks < u64::from(M::SPINS) {
                self.mem.relax();
                continue;
            }
            if self.recover_if_dead(slot)? {
                break;
            }
            let waited = self.host.monotonic().saturating_sub(start);
            if waited >= self.access.busy_timeout {
                return Err(self.busy(slot, waited));
            }
            self.mem.wait(active, seen as u32, LOOK);
        }
        Ok(())
    }
}
