//! Clients: rows of the client table. See [`crate::engine::client::writer`] for what a process does with them.

use crate::engine::{back_error, Engine};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::{at, limit, PAGE};
use hashmere_format::row::{self, Stat, Trigger};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Takes a free client slot, or one whose owner is dead, after repairing what it left.
    pub(super) fn claim_slot(&self) -> Result<u32, WriteError> {
        let _one_at_a_time = self.clients.writers.claims();
        // Clients found alive since the last sweep of this process are not checked again. If that leaves no slot, all
        // are.
        for look in [self.clients.look.load(Ordering::Relaxed), 0] {
            let look = if look == 0 { self.begin_look() } else { look };
            for slot in 0..limit::CLIENTS {
                if self.claim_if_free(slot, look)? {
                    return Ok(slot);
                }
            }
        }
        Err(Self::too_many_clients())
    }

    fn claim_if_free(&self, slot: u32, look: u64) -> Result<bool, WriteError> {
        let offset = row::offset(slot);
        if u64::from(slot) >= self.mem.load(at::CLIENTS_HIGH, Ordering::Acquire) {
            self.mem.back(offset & !(PAGE - 1), PAGE).map_err(back_error)?;
        } else if self.is_known_alive(slot, look) {
            return Ok(false);
        }
        if !self.try_claim(slot, "claim a client slot")? {
            return Ok(false);
        }
        let repaired = if fault::is(Fault::RowUnrepaired) { Ok(()) } else { self.recover(slot) };
        if let Err(error) = repaired {
            self.host.release(slot);
            return Err(error);
        }
        self.write_identity(offset);
        self.raise(at::CLIENTS_HIGH, u64::from(slot) + 1);
        Ok(true)
    }

    /// Begins to look for dead clients, and returns the number of this look. Thousands that open a store at once would
    /// each ask the kernel about all the others: so a process that finds a client alive notes it, for all sweeps that
    /// had begun by then.
    pub(in crate::engine) fn begin_look(&self) -> u64 {
        let look = self.mem.fetch_add(at::SWEEPS, 1, Ordering::AcqRel).wrapping_add(1);
        self.clients.look.store(look, Ordering::Relaxed);
        look
    }

    /// Whether the owner of a slot is known to have been alive after this look had begun.
    fn is_known_alive(&self, slot: u32, look: u64) -> bool {
        let alive = self.mem.load(row::offset(slot) + row::at::ALIVE, Ordering::Acquire);
        // No look has the number that a damaged file says.
        self.is_active(slot) && alive >= look && alive <= self.mem.load(at::SWEEPS, Ordering::Acquire)
    }

    /// Takes the liveness lock of a slot; `false`: its owner is alive, which is noted.
    fn try_claim(&self, slot: u32, action: &'static str) -> Result<bool, WriteError> {
        let begun = self.mem.load(at::SWEEPS, Ordering::Acquire);
        let dead = self.host.try_claim(slot).map_err(|source| WriteError::Io { action, source })?;
        if !dead && self.is_active(slot) {
            // Killed here or stopped for long: it was so, and a look with a smaller number may know it.
            self.mem.store(row::offset(slot) + row::at::ALIVE, begun, Ordering::Release);
        }
        Ok(dead)
    }

    fn write_identity(&self, row: u64) {
        let pid = self.host.pid();
        let name = self.host.describe(pid).name.unwrap_or_default();
        let mut bytes = [0u8; 16];
        let n = name.len().min(16);
        bytes[..n].copy_from_slice(&name.as_bytes()[..n]);
        self.mem.store(row + row::at::ALIVE, self.mem.load(at::SWEEPS, Ordering::Acquire), Ordering::Relaxed);
        self.mem.store(row + row::at::PID, u64::from(pid), Ordering::Relaxed);
        self.mem.store(row + row::at::SINCE, self.host.now_ms(), Ordering::Relaxed);
        self.mem.write(row + row::at::NAME, &bytes);
        // What a former client was to sample.
        Trigger::ALL.into_iter().for_each(|trigger| self.mem.store(row + trigger.at(), 0, Ordering::Relaxed));
        let times = self.mem.load(row + row::at::STATE, Ordering::Relaxed) >> 8;
        self.mem.store(row + row::at::STATE, (times + 1) << 8 | 1, Ordering::Release);
    }

    pub(in crate::engine) fn row_name(&self, slot: u32) -> String {
        let mut bytes = [0u8; 16];
        self.mem.read(row::offset(slot) + row::at::NAME, &mut bytes);
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(16);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// Rows that were ever used.
    pub(in crate::engine) fn rows(&self) -> impl Iterator<Item = u32> {
        0..(self.mem.load(at::CLIENTS_HIGH, Ordering::Acquire) as u32).min(limit::CLIENTS)
    }

    pub(in crate::engine) fn is_active(&self, slot: u32) -> bool {
        self.mem.load(row::offset(slot) + row::at::STATE, Ordering::Acquire) & 1 == 1
    }

    /// Repairs what dead clients left. Called when a store is opened, and wherever a dead client holds something back.
    pub fn sweep(&self) -> Result<(), WriteError> {
        let look = self.begin_look();
        for slot in self.rows() {
            if self.is_active(slot) && !self.is_known_alive(slot, look) {
                let _one_at_a_time = self.clients.writers.claims();
                if self.try_claim(slot, "probe a client")? {
                    let done = self.recover(slot);
                    self.host.release(slot);
                    done?;
                }
            }
        }
        Ok(())
    }

    /// Whether the client that had claimed this slot for the time of this number is there no more, after repairing what
    /// it left.
    pub(crate) fn is_gone(&self, slot: u32, times: u64) -> Result<bool, WriteError> {
        let state = row::offset(slot) + row::at::STATE;
        let is_other = || self.mem.load(state, Ordering::Acquire) != times << 8 | 1;
        if u64::from(slot) >= self.mem.load(at::CLIENTS_HIGH, Ordering::Acquire) || is_other() {
            return Ok(true);
        }
        let _one_at_a_time = self.clients.writers.claims();
        if !self.host.try_claim(slot).map_err(|source| WriteError::Io { action: "probe a client", source })? {
            return Ok(is_other());
        }
        let done = self.recover(slot);
        self.host.release(slot);
        done.map(|()| true)
    }

    /// The process of the client that had claimed this slot for the time of this number, and its name, unless it is
    /// there no more.
    pub(crate) fn process_of(&self, slot: u32, times: u64) -> Option<(u32, String)> {
        let offset = row::offset(slot);
        let is_it = || self.mem.load(offset + row::at::STATE, Ordering::Acquire) == times << 8 | 1;
        if u64::from(slot) >= self.mem.load(at::CLIENTS_HIGH, Ordering::Acquire) || !is_it() {
            return None;
        }
        let process = (self.mem.load(offset + row::at::PID, Ordering::Acquire) as u32, self.row_name(slot));
        is_it().then_some(process)
    }

    /// Counts for this thread that a read was repeated so often.
    #[cold]
    pub(in crate::engine) fn count_retries(&self, n: u64) {
        let row = self.own_row();
        if row != 0 {
            // A thread that has no writer of its own counts beside others.
            self.mem.fetch_add(row + Stat::Retries.at(), n, Ordering::Relaxed);
        }
    }

    /// A figure of a row.
    pub(in crate::engine) fn figure(&self, row: u64, stat: Stat) -> u64 {
        self.mem.load(row + stat.at(), Ordering::Relaxed)
    }

    /// Counts in the row of a writer that this thread has: no other thread counts the same there.
    #[inline(always)]
    pub(in crate::engine) fn count_at(&self, row: u64, stat: Stat, n: u64) {
        let offset = row + stat.at();
        let now = self.mem.load(offset, Ordering::Relaxed);
        self.mem.store(offset, now.wrapping_add(n), Ordering::Relaxed);
    }

    /// Raises a word to at least `value`.
    pub(in crate::engine) fn raise(&self, offset: u64, value: u64) {
        let mut now = self.mem.load(offset, Ordering::Acquire);
        while now < value {
            match self.mem.compare_exchange(offset, now, value) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    /// Lowers a word to at most `value`.
    pub(in crate::engine) fn lower(&self, offset: u64, value: u64) {
        let mut now = self.mem.load(offset, Ordering::Relaxed);
        while now > value {
            match self.mem.compare_exchange(offset, now, value) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    pub(in crate::engine) fn recover_if_dead(&self, slot: u32) -> Result<bool, WriteError> {
        let probe = |source| WriteError::Io { action: "probe the owner of a commit", source };
        let dead = self.host.try_claim(slot).map_err(probe)?;
        if dead {
            let done = self.recover(slot);
            self.host.release(slot);
            done?;
        }
        Ok(dead)
    }
}
