//! The memory under the engine: one trait, several implementations.
//!
//! Every byte that two processes may touch at once is reached through [`Mem`], as aligned
//! 64-bit words, so the same engine code runs on a real mapping ([`MapMem`]), on heap memory
//! that Miri can follow ([`HeapMem`]), and on memory whose every access is a scheduling point of
//! a model checker. What the engine asks of the machine besides memory - is that client alive,
//! what time is it - is [`Host`].
//!
//! Offsets are bytes from the start of the file. An implementation checks them against its
//! capacity in debug builds; the engine validates every offset and length that it *read from
//! the file* before it uses it.

mod fault;
mod heap;
mod host;
mod local_host;
mod map;
#[cfg(feature = "shuttle")]
mod model_mem;
mod os_host;
mod pair;
mod raw;
#[cfg(feature = "shuttle")]
pub mod scenarios;
#[cfg(feature = "shuttle")]
mod scheduler;
#[cfg(feature = "traced")]
mod scribbler;
mod shared;
#[cfg(feature = "shuttle")]
mod shuttle_mem;
#[cfg(feature = "traced")]
pub mod traced;
pub mod words;
#[cfg(not(any(hashmere_words, miri)))]
mod x86_64;

/// What refuses a process the addresses of a file.
pub use hashmere_os::AddressLimit;
pub use heap::HeapMem;
pub use host::{Host, PeerInfo};
pub use local_host::{LocalHost, LocalPeers};
pub use map::MapMem;
#[cfg(feature = "shuttle")]
pub use model_mem::ModelMem;
pub use os_host::OsHost;
#[cfg(feature = "traced")]
pub use scribbler::Scribbler;
/// The model checker itself, so that the engine's models need no dependency of their own.
#[cfg(feature = "shuttle")]
pub use shuttle;
#[cfg(feature = "shuttle")]
pub use shuttle_mem::ShuttleMem;

use std::sync::atomic::Ordering;
use std::time::Duration;

/// What [`Mem::back_block`] backs at once: the size of a large page of the machines that have them.
pub const BLOCK: u64 = 2 << 20;

/// Why [`Mem::back`] could not put memory behind a range.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackError {
    /// The file system, a memory limit or a file size limit has no room (`ENOSPC`, `EFBIG`,
    /// `EDQUOT`, `ENOMEM`).
    NoSpace(std::io::Error),
    /// The range lies beyond the end of a memory that cannot grow.
    BeyondReserve {
        /// The first byte past the range that was asked for.
        end: u64,
        /// Bytes of the memory.
        capacity: u64,
    },
    /// This process has no addresses left for so much of the file.
    AddressSpace {
        /// The first byte past the range that was asked for.
        end: u64,
        /// What limits it.
        limit: AddressLimit,
    },
    /// Any other failure of the system call.
    Io(std::io::Error),
}

/// Shared memory as 64-bit words.
///
/// Word offsets must be multiples of 8. The byte copies take any offset: they are defined as
/// relaxed loads (or stores) of the aligned words that cover the range, which is what
/// makes them race-free beside a writer; whether the bytes *belong together* is for the
/// caller's validation to say.
pub trait Mem: Send + Sync + 'static {
    /// Whether every access is a step of a model checker.
    const STEPPED: bool = false;
    /// Times a waiter looks at a word before it sleeps: about as long as a critical section takes. In a model each
    /// costs a step.
    const SPINS: u32 = if Self::STEPPED { 2 } else { 200 };

    /// Bytes of address range: no access may end beyond it. It never shrinks.
    fn capacity(&self) -> u64;
    /// What [`extend`](Self::extend) can bring that to, if nothing else limits it.
    fn capacity_limit(&self) -> u64 {
        self.capacity()
    }
    /// Makes the address range reach to `end` at least; `false` if it cannot. No address changes.
    fn extend(&self, end: u64) -> bool {
        end <= self.capacity()
    }
    /// What keeps [`extend`](Self::extend) from reaching to `end`.
    fn address_limit(&self, _end: u64) -> AddressLimit {
        AddressLimit::Neighbour
    }
    /// Bytes of the file: what lies below this, and within the capacity, may be touched. Costs a system call where
    /// there is one.
    fn size(&self) -> u64 {
        self.capacity()
    }
    /// Loads the word at `off`.
    fn load(&self, off: u64, order: Ordering) -> u64;
    /// Stores the word at `off`.
    fn store(&self, off: u64, value: u64, order: Ordering);
    /// Which of the words of two lines (offsets that are multiples of 64) agree with `pattern` in the low bits that
    /// `mask` names: one bit each, the eight of the first line below. The words are loaded one by one, in no order: a
    /// hint of where to look.
    fn agreeing(&self, first: u64, second: u64, pattern: u32, mask: u32) -> u32 {
        (0..16).fold(0, |found, i| {
            let line = if i < 8 { first } else { second };
            let word = self.load(line + 8 * (i & 7), Ordering::Acquire) as u32;
            found | u32::from((word ^ pattern) & mask == 0) << i
        })
    }
    /// Compare-exchange with `AcqRel` on success and `Acquire` on failure.
    fn compare_exchange(&self, off: u64, current: u64, new: u64) -> Result<u64, u64>;
    /// Whether [`compare_exchange_pair`](Self::compare_exchange_pair) can be used: whether the processor has the
    /// instruction.
    fn has_pairs(&self) -> bool {
        false
    }
    /// Compare-exchange of the two words at `off`, a multiple of 16, in one step that no crash divides; with `AcqRel`.
    /// Whether they were `current`. Never called where [`has_pairs`](Self::has_pairs) is false.
    fn compare_exchange_pair(&self, _off: u64, _current: [u64; 2], _new: [u64; 2]) -> bool {
        false
    }
    /// Exchanges the word at `off`, returning what was there.
    fn swap(&self, off: u64, value: u64, order: Ordering) -> u64;
    /// Adds (wrapping), returning what was there.
    fn fetch_add(&self, off: u64, value: u64, order: Ordering) -> u64;
    /// Ors, returning what was there.
    fn fetch_or(&self, off: u64, value: u64, order: Ordering) -> u64;
    /// A fence.
    fn fence(&self, order: Ordering);
    /// A hint that the cache line of `off` is wanted soon. Any offset is allowed.
    fn prefetch(&self, off: u64);
    /// The same for a line that is to be written soon, which another core may have.
    #[inline(always)]
    fn prefetch_write(&self, off: u64) {
        self.prefetch(off);
    }
    /// Fills `dst` from `off` on.
    fn read(&self, off: u64, dst: &mut [u8]);
    /// Appends `len` bytes from `off` on to `dst` (which has been given room by the caller or grows).
    fn append_to(&self, off: u64, len: usize, dst: &mut Vec<u8>);
    /// Writes `src` at `off`. The words at both edges are read, merged and stored, so the
    /// caller must be the only writer of every word that the range touches.
    fn write(&self, off: u64, src: &[u8]);
    /// Whether the bytes from `off` on equal `bytes`.
    fn matches(&self, off: u64, bytes: &[u8]) -> bool;
    /// Copies `len` bytes; `from`, `to` and `len` are multiples of 8. Where the ranges overlap, as only a damaged file
    /// can make them, the target has any bytes afterwards.
    fn copy(&self, from: u64, to: u64, len: u64);
    /// Stores zero in `len / 8` words; both multiples of 8.
    fn zero(&self, off: u64, len: u64);

    /// The bytes themselves.
    ///
    /// # Safety
    /// - The range lies within memory that was backed.
    /// - No process changes it while the slice lives (it is pinned, or private to the caller).
    unsafe fn slice(&self, off: u64, len: usize) -> &[u8];
    /// The bytes themselves, to write.
    ///
    /// # Safety
    /// - The range lies within memory that was backed.
    /// - Nothing else reads or writes it while the slice lives.
    #[allow(clippy::mut_from_ref)]
    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8];

    /// Puts memory behind a range before its first touch, growing the file where needed, so that a full disk is an
    /// error here and never a signal later. Idempotent; what was there stays; new bytes read as zero.
    fn back(&self, off: u64, len: u64) -> Result<(), BackError>;
    /// Advice: the file grows into the block of [`BLOCK`] bytes at `off`, which is a multiple of that. May put memory
    /// behind all of it at once, as one large page, where the system has such; a failure shows in [`Mem::back`] later.
    fn back_block(&self, _off: u64) {}
    /// Bytes that the file system says it has left; `None` if it does not say. It may refuse less.
    fn left(&self) -> Option<u64> {
        None
    }
    /// Gives the memory behind a range back; it reads as zero afterwards. Best effort: `false` when the
    /// file system cannot.
    fn unback(&self, off: u64, len: u64) -> bool;

    /// Writes everything to the medium, and returns when a power cut cannot undo it any more. Memory without a medium
    /// has nothing to do.
    ///
    /// # Errors
    /// Those of the device; what arrived is unknown then.
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Sleeps while the low 32 bits of the word at `off` equal `expected`, at most `timeout`.
    /// May return early for no reason.
    fn wait(&self, off: u64, expected: u32, timeout: Duration);
    /// Wakes every waiter on the word at `off`, in any process.
    fn wake(&self, off: u64);
    /// Called in a spin loop.
    fn relax(&self);
}
