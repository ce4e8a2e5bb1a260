//! The memory into which the kernel receives: buffers in a ring that it shares with this process. It takes the next one
//! when bytes have come, not when they are asked for; and idle sockets need no memory.

use io_uring::types::BufRingEntry;
use std::alloc::{alloc_zeroed, Layout};
use std::fmt;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Buffers of a ring: a power of two.
pub const BUFFERS: u16 = 256;
/// Bytes of each.
pub const BUFFER_BYTES: usize = 4 << 10;
/// The kernel wants the ring to begin on a page.
const PAGE: usize = 4096;

/// All buffers, and the ring of those that the kernel may take.
pub(crate) struct Buffers {
    entries: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    tail: u16,
}

// SAFETY: both pointers are to memory that is never freed and that only this value writes to, and the kernel.
unsafe impl Send for Buffers {}

/// Bytes that came: one buffer, until it is given back. If it is dropped instead, the ring has one less.
pub struct Buffer {
    number: u16,
    len: usize,
    memory: NonNull<u8>,
}

// SAFETY: it is the only one that refers to its part of that memory, and only reads it.
unsafe impl Send for Buffer {}

impl Buffers {
    /// Buffers, none of which the kernel may take yet.
    pub(crate) fn new() -> io::Result<Buffers> {
        let entries = allocate(usize::from(BUFFERS) * size_of::<BufRingEntry>())?.cast();
        Ok(Buffers { entries, memory: allocate(usize::from(BUFFERS) * BUFFER_BYTES)?, tail: 0 })
    }

    /// The address of the ring.
    pub(crate) fn address(&self) -> u64 {
        self.entries.as_ptr() as u64
    }

    /// Lets the kernel take all of them: once.
    pub(crate) fn fill(&mut self) {
        (0..BUFFERS).for_each(|number| self.provide(number));
    }

    /// The buffer of this number, with what the kernel says to have written to it.
    pub(crate) fn taken(&self, number: u16, len: usize) -> Buffer {
        let number = number % BUFFERS;
        // SAFETY: the number is below that of the buffers, all of which are in one allocation.
        let memory = unsafe { self.memory.add(usize::from(number) * BUFFER_BYTES) };
        Buffer { number, len: len.min(BUFFER_BYTES), memory }
    }

    /// Lets the kernel take it again.
    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        self.provide(buffer.number);
    }

    fn provide(&mut self, number: u16) {
        let place = usize::from(self.tail % BUFFERS);
        // SAFETY: place and number are below the number of entries and of buffers. The kernel does not read an entry
        // before the tail has passed it, and does not write to one.
        unsafe {
            let entry = self.entries.add(place).as_mut();
            entry.set_addr(self.memory.add(usize::from(number) * BUFFER_BYTES).as_ptr() as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(number);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry; the kernel reads it, so it is written atomically.
        let tail = unsafe { &*BufRingEntry::tail(self.entries.as_ptr()).cast::<AtomicU16>() };
        // The kernel reads it with acquire, and the entry after that.
        tail.store(self.tail, Ordering::Release);
    }
}

/// Zeroed memory that is never freed.
fn allocate(bytes: usize) -> io::Result<NonNull<u8>> {
    let layout = Layout::from_size_align(bytes, PAGE).map_err(io::Error::other)?;
    // SAFETY: the layout has a size above zero.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is never freed, and the kernel does not write to it before it is given back, which takes
        // this value.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({}, {} bytes)", self.number, self.len)
    }
}

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffers({BUFFERS} of {BUFFER_BYTES} bytes)")
    }
}
