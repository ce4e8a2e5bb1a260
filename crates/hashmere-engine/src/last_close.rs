//! Stores that go with the last process that has them open ([`Options::remove_on_last_close`]), however that one goes.
//!
//! A process that closes its last handle removes the file (`Opened::close`). One that exits without closing does so in
//! a handler of the C library's `exit`. One that is killed leaves the file; then the next process that opens it finds
//! the mark in a store that no process has open, removes it and goes on as if there had been none.
//!
//! [`Options::remove_on_last_close`]: crate::Options::remove_on_last_close

use crate::fork_handle::SharedEngine;
use crate::open::{is_file_of, Opened, PRESENCE};
use hashmere_format::header::{at, flag, MAGIC};
use hashmere_os::file::identity;
use hashmere_os::process::at_exit;
use hashmere_os::ByteLocks;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::time::{Duration, Instant};

/// What this process has open and is to be removed with its last user.
static OPEN: Mutex<Vec<Weak<SharedEngine>>> = Mutex::new(Vec::new());
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// The list; `None` in a child that was forked while another thread of its parent had it.
fn open_now() -> Option<MutexGuard<'static, Vec<Weak<SharedEngine>>>> {
    let start = Instant::now();
    loop {
        match OPEN.try_lock() {
            Ok(list) => return Some(list),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if start.elapsed() > Duration::from_secs(1) => return None,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

/// From now on an exit that does not close this store removes it, if it is marked so and no other process has it open.
pub(crate) fn watch(shared: &Arc<SharedEngine>) {
    let engine = shared.engine();
    if engine.access.read_only || engine.status() & flag::REMOVE_ON_LAST_CLOSE == 0 {
        return;
    }
    if let Some(mut list) = open_now() {
        list.retain(|one| one.strong_count() > 0);
        list.push(Arc::downgrade(shared));
    }
    if !INSTALLED.swap(true, Ordering::AcqRel) {
        at_exit(remove_at_exit);
    }
}

extern "C" fn remove_at_exit() {
    let list = open_now().map(|mut list| std::mem::take(&mut *list)).unwrap_or_default();
    for shared in list.iter().filter_map(Weak::upgrade).filter(|shared| shared.is_ours()) {
        let opened = shared.opened();
        if opened.engine.status() & flag::REMOVE_ON_LAST_CLOSE != 0 && opened.is_last() {
            opened.remove(&shared.path);
        }
        // Other threads run on until the process ends, so nothing is unmapped.
        std::mem::forget(shared);
    }
}

impl Opened {
    /// Lets go of the store, and says whether no other process has it open. Let go before asking to be alone: of two
    /// that close at once, one must find itself the last.
    pub(crate) fn is_last(&self) -> bool {
        self.presence.unlock(PRESENCE).and_then(|()| self.presence.try_exclusive(PRESENCE)).unwrap_or(false)
    }

    /// Removes the file, being the last to have it open: a process that found it before it lost its name sees that it
    /// is gone.
    pub(crate) fn remove(&self, path: &Path) {
        self.engine.change_status(flag::REMOVED, 0);
        if is_file_of(self.engine.mem.file(), path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The status word of a store; `None`: this is none, or a copy of one, which is no left-over.
fn status_of(file: &File) -> io::Result<Option<u64>> {
    let mut head = [0; (at::FILE + 8) as usize];
    match file.read_exact_at(&mut head, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let word = |at: u64| head[at as usize..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let is_store = word(at::MAGIC) == MAGIC && word(at::FILE) == identity(file)?;
    Ok(is_store.then(|| word(at::STATUS)))
}

fn is_marked(file: &File) -> io::Result<bool> {
    Ok(status_of(file)?.is_some_and(|status| status & flag::REMOVE_ON_LAST_CLOSE != 0))
}

/// Whether this is a store that its last user should have removed, but was killed. Takes nothing.
pub(crate) fn is_left_over(file: &File) -> io::Result<bool> {
    Ok(is_marked(file)? && !ByteLocks::new(file.as_fd())?.is_locked_by_other(PRESENCE)?)
}

/// If it is such a store, removes it; the file must be open for writing. A process that opens it at the same time
/// either holds it already, and then it is no left-over, or gets its hold after us, finds the file marked as removed
/// and without a name, and looks again.
pub(crate) fn remove_left_over(path: &Path, file: &File) -> io::Result<bool> {
    if !is_marked(file)? {
        return Ok(false);
    }
    let presence = ByteLocks::new(file.as_fd())?;
    if !presence.try_exclusive(PRESENCE)? {
        return Ok(false);
    }
    // From here on no other process has it open, or gets to.
    let Some(status) = status_of(file)? else { return Ok(false) };
    file.write_all_at(&(status | flag::REMOVED).to_le_bytes(), at::STATUS)?;
    if is_file_of(file, path) {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(true)
}
