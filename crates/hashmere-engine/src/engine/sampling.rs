//! Sampling as an observer sees it: switching it on in all clients, and reading what they sampled.
//! `docs/internals/sampling.md` says what a crash at each point means.

use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::row::{self, Trigger};
use hashmere_format::sample::{self, Sample, Sampling, WORDS};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long clients go on sampling when the observer does not say that it is still there.
const LEASE: Duration = Duration::from_secs(2);

impl<M: Mem, H: Host> Engine<M, H> {
    /// Has all clients sample, some `rate` operations of each kind a second, until 2 s from now; again: for
    /// longer. `rate` counts for all observers. The result is for [`end_sampling`](Self::end_sampling).
    ///
    /// # Errors
    /// [`WriteError::ReadOnly`]; [`WriteError::NoSpace`]: the file system has no room for the ring (44 KiB).
    pub fn renew_sampling(&self, rate: u64) -> Result<Sampling, WriteError> {
        if self.access.read_only {
            return Err(WriteError::ReadOnly);
        }
        self.back(at::SAMPLES, at::CHUNK_0 - at::SAMPLES)?;
        self.mem.store(at::SAMPLE_RATE, rate, Ordering::Relaxed);
        let now = self.host.now_ms();
        let mut seen = self.mem.load(at::SAMPLING, Ordering::Acquire);
        loop {
            let was = Sampling(seen);
            let session = if was.is_on(now) { was.session() } else { was.session().wrapping_add(1) };
            let on = Sampling::until(now + LEASE.as_millis() as u64, session);
            // SYNC(sampling): memory is behind the ring, and the rate is there.
            match self.mem.compare_exchange(at::SAMPLING, seen, on.0) {
                Ok(_) => return Ok(on),
                Err(other) => seen = other,
            }
        }
    }

    /// Says so to clients that do not know yet: each samples its next operation of each kind.
    pub fn arm_clients(&self) {
        for at in self.triggers() {
            if self.mem.load(at, Ordering::Relaxed) == 0 {
                self.mem.store(at, Trigger::NEXT, Ordering::Relaxed);
            }
        }
    }

    /// Ends sampling that was last renewed with this result, unless another observer has renewed it since.
    pub fn end_sampling(&self, renewed: Sampling) {
        let off = Sampling::until(0, renewed.session());
        if self.mem.compare_exchange(at::SAMPLING, renewed.0, off.0).is_ok() {
            self.triggers().for_each(|at| self.mem.store(at, 0, Ordering::Relaxed));
        }
    }

    fn triggers(&self) -> impl Iterator<Item = u64> + '_ {
        let rows = self.rows().filter(|slot| self.is_active(*slot)).map(row::offset);
        rows.flat_map(|row| Trigger::ALL.map(|trigger| row + trigger.at()))
    }

    /// Clients that may sample.
    pub fn sampled_clients(&self) -> u64 {
        self.rows().filter(|slot| self.is_active(*slot)).count() as u64
    }

    /// How many samples were begun since the store was made: one more than the position of the last. Only once
    /// sampling was on.
    pub fn samples_begun(&self) -> u64 {
        self.mem.load(sample::BEGUN, Ordering::Acquire)
    }

    /// The sample with this position; `None`: it is not complete yet, never will be, or was overwritten.
    pub fn read_sample(&self, position: u64) -> Option<Sample> {
        let slot = sample::offset(position);
        let mut words = [0; WORDS];
        // SYNC(sample): the words behind its checksum are those that were stored before it, or of a later one.
        words[0] = self.mem.load(slot, Ordering::Acquire);
        for (n, word) in words.iter_mut().enumerate().skip(1) {
            *word = self.mem.load(slot + 8 * n as u64, Ordering::Relaxed);
        }
        if fault::is(Fault::SampleBelieved) {
            words[0] = sample::checksum(&words);
            return Sample::decode(&words, words[1]);
        }
        Sample::decode(&words, position)
    }

    /// After the file was copied, or the machine went down: no observer is there, and the ring may be a hole.
    pub(crate) fn forget_sampling(&self) {
        self.mem.store(at::SAMPLING, 0, Ordering::Release);
    }
}
