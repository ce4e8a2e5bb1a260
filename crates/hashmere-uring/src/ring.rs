//! The ring.

use crate::buffers::{Buffer, Buffers, BUFFERS};
use crate::completion::{Asked, Completion, Input, Tag};
use io_uring::squeue::Entry;
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{cqueue, opcode, IoUring};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// What can be asked for between two system calls; with more there are more calls.
const ENTRIES: u32 = 1024;
/// Completions for which there is room at once; the kernel keeps what comes beyond.
const COMPLETIONS: u32 = 4096;
/// The group of the only buffers.
const GROUP: u16 = 0;
/// A buffer of bytes to send that grew beyond this is not kept.
const KEEP: usize = 4 << 10;

/// A ring: one thread's, from [`Ring::enable`] on.
pub struct Ring {
    ring: IoUring,
    buffers: Buffers,
    /// Bytes on their way, by slot.
    sends: Vec<(Tag, Vec<u8>)>,
    free: Vec<usize>,
}

impl Ring {
    /// A ring that does nothing before it is enabled.
    ///
    /// # Errors
    /// The kernel has no `io_uring`, an old one, or does not allow it; or a limit is reached. The text says what
    /// was tried.
    pub fn new() -> io::Result<Ring> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            // Completions are made when this thread asks for them, not in between.
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            // So that the thread which enables it is its user.
            .setup_r_disabled()
            .build(ENTRIES)
            .map_err(|error| said("io_uring_setup", &error))?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel's io_uring has no wait with a limit"));
        }
        let mut buffers = Buffers::new()?;
        // SAFETY: the memory is as large as its number of entries says, and never freed.
        let registered = unsafe { ring.submitter().register_buf_ring_with_flags(buffers.address(), BUFFERS, GROUP, 0) };
        registered.map_err(|error| said("io_uring_register of buffers", &error))?;
        buffers.fill();
        Ok(Ring { ring, buffers, sends: Vec::new(), free: Vec::new() })
    }

    /// Makes the calling thread its only user.
    ///
    /// # Errors
    /// It is enabled already; or what the kernel says.
    pub fn enable(&mut self) -> io::Result<()> {
        self.ring.submitter().register_enable_rings().map_err(|error| said("io_uring_register", &error))
    }

    /// Receives from a stream socket from now on, until a completion says that there is no `more`.
    ///
    /// # Errors
    /// The system call that makes room failed.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, tag: Tag) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        // SAFETY: it names no memory but the registered buffers.
        unsafe { self.push(&entry, Asked::Receive(tag)) }
    }

    /// Receives no more from that socket; a completion without `more` follows.
    ///
    /// # Errors
    /// The system call that makes room failed.
    pub fn pause(&mut self, tag: Tag) -> io::Result<()> {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::user_data(Asked::Receive(tag).number())).build();
        // SAFETY: it names no memory.
        unsafe { self.push(&entry, Asked::Cancel) }
    }

    /// Sends all of these bytes; `bytes` is empty afterwards. Only one call at a time for each socket keeps their
    /// order.
    ///
    /// # Errors
    /// The system call that makes room failed.
    pub fn send(&mut self, socket: BorrowedFd<'_>, tag: Tag, bytes: &mut Vec<u8>) -> io::Result<()> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.sends.push((tag, Vec::new()));
            self.sends.len() - 1
        });
        let (of, held) = &mut self.sends[slot];
        *of = tag;
        std::mem::swap(held, bytes);
        let entry = opcode::Send::new(Fd(socket.as_raw_fd()), held.as_ptr(), held.len() as u32)
            .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
            .build();
        // SAFETY: the bytes stay in the slot, unchanged, until their completion; forever if the ring is dropped before.
        unsafe { self.push(&entry, Asked::Send(slot)) }
    }

    /// Tells once when a descriptor is readable, also if it is now.
    ///
    /// # Errors
    /// The system call that makes room failed.
    pub fn watch(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(descriptor.as_raw_fd()), libc::POLLIN as u32).build();
        // SAFETY: it names no memory.
        unsafe { self.push(&entry, Asked::Ready) }
    }

    /// Cancels all that is under way for a socket. It is to be closed after this call and not before: what was asked
    /// for is known to the kernel by the number of the descriptor until it is handed over, which this call does.
    ///
    /// # Errors
    /// The system call failed.
    pub fn cancel(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::fd(Fd(socket.as_raw_fd())).all()).build();
        // SAFETY: it names no memory.
        unsafe { self.push(&entry, Asked::Cancel) }?;
        self.submit()
    }

    /// Hands over all that was asked for, and waits until something is complete, at most this long.
    ///
    /// # Errors
    /// What the kernel says, if the ring cannot be used any more.
    pub fn wait(&mut self, limit: Duration) -> io::Result<()> {
        let limit = Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos());
        let args = SubmitArgs::new().timespec(&limit);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(()),
            // The time is over; a signal; the kernel wants completions to be taken first.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
            Err(error) => Err(said("io_uring_enter", &error)),
        }
    }

    /// The next of what is complete.
    pub fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let entry = self.ring.completion().next()?;
            let result = match entry.result() {
                error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
                bytes => Ok(bytes as usize),
            };
            match Asked::of(entry.user_data()) {
                Asked::Receive(tag) => {
                    let input = self.input(&entry, result);
                    return Some(Completion::Received { tag, input, more: cqueue::more(entry.flags()) });
                }
                Asked::Send(slot) => {
                    let Some((tag, bytes)) = self.sends.get_mut(slot) else { continue };
                    let result = match result {
                        Ok(sent) if sent < bytes.len() => Err(io::ErrorKind::WriteZero.into()),
                        result => result.map(|_| ()),
                    };
                    bytes.clear();
                    if bytes.capacity() > KEEP {
                        *bytes = Vec::new();
                    }
                    self.free.push(slot);
                    return Some(Completion::Sent { tag: *tag, result });
                }
                Asked::Ready => return Some(Completion::Ready),
                Asked::Cancel => {}
            }
        }
    }

    /// Gives a buffer back.
    pub fn give_back(&mut self, buffer: Buffer) {
        self.buffers.give_back(buffer);
    }

    fn input(&mut self, entry: &cqueue::Entry, result: io::Result<usize>) -> Input {
        let buffer = cqueue::buffer_select(entry.flags());
        match (result, buffer) {
            (Ok(bytes), Some(number)) if bytes > 0 => Input::Bytes(self.buffers.taken(number, bytes)),
            (Ok(_), number) => {
                if let Some(number) = number {
                    let unused = self.buffers.taken(number, 0);
                    self.buffers.give_back(unused);
                }
                Input::End
            }
            (Err(error), _) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ECANCELED | libc::EINTR)) => {
                Input::Nothing
            }
            (Err(error), _) => Input::Failed(error),
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        match self.ring.submitter().submit() {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => Err(error),
            _ => Ok(()),
        }
    }

    /// # Safety
    /// The memory that the entry names stays as it is until its completion.
    unsafe fn push(&mut self, entry: &Entry, asked: Asked) -> io::Result<()> {
        let entry = entry.clone().user_data(asked.number());
        // SAFETY: the caller's promise.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may read them for a moment yet.
        std::mem::forget(std::mem::take(&mut self.sends));
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring({:?}, {} sends under way)", self.buffers, self.sends.len() - self.free.len())
    }
}

/// The error, with what was tried.
fn said(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
