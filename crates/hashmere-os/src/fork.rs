//! What a forked child must know and must not inherit.
//!
//! A child inherits every descriptor, and with it the *open file description* that holds its
//! parent's byte locks: the locks of a dead parent would live on in the child. So descriptors
//! that hold locks are entered in a table that only grows, and a `pthread_atfork` handler closes them in
//! the child before `fork` returns there. [`generation`] tells the child that this has happened.
//!
//! Handlers run for `fork` only. `posix_spawn`, `vfork` and a raw `clone` skip them, which is
//! harmless when an `exec` follows, since every descriptor here is close-on-exec.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// Entries of one part of the table.
const PART: usize = 1024;

const EMPTY: RawFd = -1;

/// A part of the table of descriptors that a child closes. Parts are never freed: the handler in the child may neither
/// lock nor free anything, and a process that needed many will again.
struct Part {
    entries: [AtomicI32; PART],
    next: AtomicPtr<Part>,
}

impl Part {
    const fn new() -> Part {
        Part { entries: [const { AtomicI32::new(EMPTY) }; PART], next: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Part> {
        // SAFETY: null, or a part that `grown` leaked.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// The next part, made if need be.
    fn grown(&self) -> &'static Part {
        if let Some(next) = self.next() {
            return next;
        }
        let fresh = Box::into_raw(Box::new(Part::new()));
        let swapped = self.next.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire);
        let next = match swapped {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: made above, and not published yet.
                drop(unsafe { Box::from_raw(fresh) });
                other
            }
        };
        // SAFETY: never freed once it is linked.
        unsafe { &*next }
    }
}

/// All parts, the first of which is always there.
fn parts() -> impl Iterator<Item = &'static Part> {
    std::iter::successors(Some(&TABLE), |part| part.next())
}

/// How many forks lie between the process that installed the handlers and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static TABLE: Part = Part::new();
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Forks that this process has begun and ended as the parent: while they differ, a child that
/// knows nothing of a descriptor opened just now may be coming into being.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

/// A number that is another one in a forked child than in its parent, once [`install`] was called.
///
/// One relaxed load: cheap enough for every operation.
#[inline(always)]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Installs the fork handlers, once per process; later calls do nothing.
///
/// # Errors
/// `OutOfMemory`, if the C library has no room for a handler.
pub fn install() -> io::Result<()> {
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    // No `Once` here: a fork in the middle of it would leave it locked forever in the child. Two
    // threads that both get here install the handlers twice, which only counts each fork twice.
    // SAFETY: the handlers are functions of this module that never unwind and touch only atomics
    // and `close`.
    let error =
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

extern "C" fn before_fork() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn after_fork_in_parent() {
    ENDED.fetch_add(1, Ordering::SeqCst);
}

/// Runs in the child, which has one thread: only async-signal-safe calls are allowed.
extern "C" fn after_fork_in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // Forks that other threads of the parent had begun never end here.
    ENDED.store(BEGUN.load(Ordering::SeqCst), Ordering::SeqCst);
    for entry in parts().flat_map(|part| &part.entries) {
        let fd = entry.swap(EMPTY, Ordering::Relaxed);
        if fd != EMPTY {
            // SAFETY: a registered descriptor is open, and its owner gives it up when it sees
            // another generation, so no thread of the child uses or closes this number any more.
            unsafe {
                libc::close(fd);
            }
        }
    }
}

/// A descriptor's entry in the table of what the child closes. Dropping removes the entry.
#[derive(Debug)]
pub struct Registration {
    entry: &'static AtomicI32,
    fd: RawFd,
    generation: u64,
}

/// Has `fd` closed in every child forked from now on; installs the handlers if need be.
///
/// The owner must drop the registration *before* it closes the descriptor, and must neither use
/// nor close the descriptor once [`Registration::is_current`] is false. [`ForkClosedFd`] does both.
///
/// # Errors
/// Those of [`install`].
pub fn register_fd(fd: RawFd) -> io::Result<Registration> {
    install()?;
    let mut part = &TABLE;
    loop {
        let free = part.entries.iter().find(|entry| {
            entry.load(Ordering::Relaxed) == EMPTY
                && entry.compare_exchange(EMPTY, fd, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        });
        if let Some(entry) = free {
            return Ok(Registration { entry, fd, generation: generation() });
        }
        part = part.grown();
    }
}

impl Registration {
    /// Whether this is still the process that registered the descriptor, so that it is still open.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.generation == generation()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // In a child the entry was emptied by the handler and may be another owner's by now.
        if self.is_current() {
            let _ = self.entry.compare_exchange(self.fd, EMPTY, Ordering::SeqCst, Ordering::Relaxed);
        }
    }
}

/// An owned descriptor that no forked child inherits.
///
/// In the child it is closed, and its number may soon mean another file: [`ForkClosedFd::get`]
/// says so by `None`, and dropping it there closes nothing.
#[derive(Debug)]
pub struct ForkClosedFd {
    fd: RawFd,
    /// `Some` until drop.
    registration: Option<Registration>,
}

impl ForkClosedFd {
    /// Opens a descriptor by `open` and registers it.
    ///
    /// If another thread forks in between, the child may have inherited the new descriptor without
    /// knowing it; then it is closed, unused, and `open` is called again. So `open` must only open,
    /// and lock nothing.
    ///
    /// # Errors
    /// Those of `open` and of [`register_fd`].
    pub fn open(mut open: impl FnMut() -> io::Result<OwnedFd>) -> io::Result<ForkClosedFd> {
        install()?;
        loop {
            // This order: forks only begin before they end, so equality means that none is under
            // way.
            let ended = ENDED.load(Ordering::SeqCst);
            let begun = BEGUN.load(Ordering::SeqCst);
            if begun != ended {
                std::thread::yield_now();
                continue;
            }
            let fd = open()?;
            let registration = register_fd(fd.as_raw_fd())?;
            let owned = ForkClosedFd { fd: fd.into_raw_fd(), registration: Some(registration) };
            if BEGUN.load(Ordering::SeqCst) == begun {
                return Ok(owned);
            }
        }
    }

    /// The descriptor, or `None` in a process forked after it was opened.
    #[inline]
    pub fn get(&self) -> Option<BorrowedFd<'_>> {
        let current = self.registration.as_ref().is_some_and(Registration::is_current);
        // SAFETY: in the process that opened it, the descriptor is open until `self` is dropped.
        current.then(|| unsafe { BorrowedFd::borrow_raw(self.fd) })
    }
}

impl Drop for ForkClosedFd {
    fn drop(&mut self) {
        let Some(registration) = self.registration.take() else {
            return;
        };
        if registration.is_current() {
            // Out of the table first: once closed, the number may be given to another file,
            // which a child must not close.
            drop(registration);
            // SAFETY: we own the descriptor, and this process's handler has not closed it.
            unsafe {
                libc::close(self.fd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::child;
    use std::fs::File;

    fn open_null() -> io::Result<OwnedFd> {
        File::open("/dev/null").map(OwnedFd::from)
    }

    fn is_open(fd: RawFd) -> bool {
        // SAFETY: asks about a number, open or not.
        unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
    }

    #[test]
    fn generation_changes_in_the_child_only() {
        install().unwrap();
        let before = generation();
        assert_eq!(child(|| i32::from(generation() <= before)), 0);
        assert_eq!(generation(), before);
    }

    #[test]
    fn child_neither_inherits_nor_closes_twice() {
        let guarded = ForkClosedFd::open(open_null).unwrap();
        let number = guarded.get().unwrap().as_raw_fd();
        let mut slot = Some(guarded);
        let status = child(|| {
            let Some(inherited) = slot.take() else {
                return 1;
            };
            if inherited.get().is_some() || is_open(number) {
                return 2;
            }
            // Another descriptor gets the number; dropping the stale owner must leave that file alone.
            // SAFETY: the new descriptor is only asked about.
            if unsafe { libc::fcntl(1, libc::F_DUPFD_CLOEXEC, number) } != number {
                return 3;
            }
            let Ok(own) = register_fd(number) else {
                return 4;
            };
            drop(inherited);
            // The child's own registration, quite possibly of the same entry, survived too.
            let grandchild = child(|| i32::from(is_open(number)));
            i32::from(!is_open(number) || !own.is_current() || grandchild != 0) * 5
        });
        assert_eq!(status, 0);
        let guarded = slot.unwrap();
        assert!(guarded.get().is_some() && is_open(number));
    }

    #[test]
    fn any_number_can_be_registered() {
        // Each a number that no descriptor has: a child that closes it changes nothing.
        let many: Vec<Registration> = (0..5 * PART as RawFd).map(|n| register_fd(1 << 30 | n).unwrap()).collect();
        assert!(parts().count() >= 5);
        let last = ForkClosedFd::open(open_null).unwrap();
        let number = last.get().unwrap().as_raw_fd();
        assert_eq!(child(|| i32::from(is_open(number))), 0);
        drop(many);
        let before = parts().count();
        drop((0..4 * PART as RawFd).map(|n| register_fd(1 << 30 | n).unwrap()).collect::<Vec<_>>());
        assert_eq!(parts().count(), before);
    }

    #[test]
    fn dropping_frees_the_entry_and_the_descriptor() {
        for _ in 0..2 * PART {
            drop(ForkClosedFd::open(open_null).unwrap());
        }
        let error = ForkClosedFd::open(|| Err(io::Error::other("no"))).unwrap_err();
        assert_eq!(error.to_string(), "no");
    }
}
