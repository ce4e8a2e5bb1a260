//! Waits between attempts.

use hashmere_mem::Mem;
use std::time::Duration;

/// Waits a little longer each time.
#[derive(Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn wait<M: Mem>(&mut self, mem: &M) {
        self.0 += 1;
        match self.0 {
            // The other one is done in less than a system call takes.
            ..=4 => (0..1 << self.0).for_each(|_| mem.relax()),
            // In a model nothing sleeps.
            n if !M::STEPPED => std::thread::sleep(Duration::from_micros(1 << n.min(10))),
            _ => mem.relax(),
        }
    }
}
