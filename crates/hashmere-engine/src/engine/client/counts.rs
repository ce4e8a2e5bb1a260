//! Sums over the rows of all clients.

use crate::engine::Engine;
use hashmere_format::header::RootWord;
use hashmere_format::row::{self, Stat};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Keys in the store: exact while no client writes.
    pub fn items(&self) -> u64 {
        self.sum_of(row::at::ITEMS)
    }

    pub(in crate::engine) fn sum_of(&self, field: u64) -> u64 {
        let generation = RootWord::unpack(self.root()).generation;
        let sum = self.rows().map(row::offset).fold(0i64, |sum, row| {
            let counted = self.mem.load(row + row::at::COUNTED, Ordering::Acquire) == generation;
            sum.wrapping_add(if counted { self.mem.load(row + field, Ordering::Relaxed) as i64 } else { 0 })
        });
        sum.max(0) as u64
    }

    /// Sum of a statistic over all rows.
    pub(in crate::engine) fn total(&self, stat: Stat) -> u64 {
        self.rows().map(|slot| self.figure(row::offset(slot), stat)).fold(0, u64::wrapping_add)
    }
}
