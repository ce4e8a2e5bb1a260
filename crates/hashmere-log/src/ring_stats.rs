//! What each ring of a log holds at about this moment.

use crate::error::LogError;
use crate::layout::{name, row, LogCore};
use crate::log::Log;
use hashmere_engine::ClientId;
use hashmere_mem::Mem;

/// A ring that a thread has, or had: [`Log::rings`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RingStats {
    /// Its number, from 0.
    pub ring: u64,
    /// Whether a thread has it, as far as is known: one that was killed counts until that is noticed.
    pub is_owned: bool,
    /// The number of the thread that has it, or had it last.
    pub thread: u32,
    /// The id of that one's process, in its own PID namespace.
    pub pid: u32,
    /// What that process calls itself, its first 16 bytes; empty if it is not known any more, because many threads have
    /// come since.
    pub process: Vec<u8>,
    /// Bytes in it that were not drained.
    pub waiting_bytes: u64,
    /// Lines that were dropped behind those, of which no line and no note has told yet.
    pub unreported_drops: u64,
}

impl<M: Mem> LogCore<'_, M> {
    /// Lines that were dropped behind the last one of a ring, as soon as that was drained.
    pub(crate) fn unreported_drops(&self, ring: u64) -> u64 {
        let row = self.geometry.row(ring);
        let unreported_drops = (self.get(row + row::TRIED) as u32).wrapping_sub(self.get(row + row::LAST) as u32);
        if self.waiting(ring) == 0 && unreported_drops < 1 << 31 {
            unreported_drops.into()
        } else {
            0
        }
    }

    /// Bytes of a ring that were not drained.
    pub(crate) fn waiting(&self, ring: u64) -> u64 {
        let row = self.geometry.row(ring);
        let head = self.position(row + row::HEAD).max(self.position(row + row::LOW));
        self.position(row + row::TAIL).saturating_sub(head).min(self.geometry.ring_bytes)
    }

    fn ring_stats(&self, ring: u64) -> RingStats {
        let row = self.geometry.row(ring);
        let who = self.get(row + row::WHO);
        let name: [[u8; 8]; 2] = self.read_name(who).map(u64::to_le_bytes);
        let mut process = name.concat();
        process.truncate(process.iter().position(|byte| *byte == 0).unwrap_or(name::TEXT_MAX));
        RingStats {
            ring,
            is_owned: ClientId::unpack(self.get(row + row::OWNER)).is_some(),
            thread: (who >> 32) as u32,
            pid: who as u32,
            process,
            waiting_bytes: self.waiting(ring),
            unreported_drops: self.unreported_drops(ring),
        }
    }
}

impl Log {
    /// The rings that threads have, or had, at about this moment; no thread is stopped for that.
    ///
    /// # Errors
    /// In a forked child, those of opening the log again.
    pub fn rings(&self) -> Result<Vec<RingStats>, LogError> {
        let handle = self.shared.handle()?;
        let core = handle.core();
        Ok((0..core.rings_used()).map(|ring| core.ring_stats(ring)).collect())
    }
}
