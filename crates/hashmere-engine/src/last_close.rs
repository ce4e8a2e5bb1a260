//! Stores that go with the last process that has them open ([`Options::remove_on_last_close`]), however that one goes.
//!
//! A process that closes its last handle removes the file (`Opened::close`). One that exits without closing does so in
//! a handler of the C library's `exit`. One that is killed leaves the file; then the next process that opens it finds
//! the mark in a store that no process has open, removes it and goes on as if there had been none.
//!
//! [`Options::remove_on_last_close`]: crate::Options::remove_on_last_close

use hashmere_os::process::at_exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError, Weak};
use std::time::{Duration, Instant};

/// What this process has open and is to be removed with its last user.
static OPEN: Mutex<Vec<Weak<dyn LastClose>>> = Mutex::new(Vec::new());
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// The list; `None` in a child that was forked while another thread of its parent had it.
fn open_now() -> Option<MutexGuard<'static, Vec<Weak<dyn LastClose>>>> {
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

/// An open store that goes with its last user.
pub(crate) trait LastClose: Send + Sync {
    /// Whether this process opened it, rather than the one it was forked from.
    fn is_ours(&self) -> bool;
    /// Removes the file if no other process has the store open.
    fn remove_if_last(&self);
}

/// From now on an exit that does not close this store removes it, if no other process has it open.
pub(crate) fn watch(store: Weak<dyn LastClose>) {
    if let Some(mut list) = open_now() {
        list.retain(|one| one.strong_count() > 0);
        list.push(store);
    }
    if !INSTALLED.swap(true, Ordering::AcqRel) {
        at_exit(remove_at_exit);
    }
}

extern "C" fn remove_at_exit() {
    let list = open_now().map(|mut list| std::mem::take(&mut *list)).unwrap_or_default();
    for store in list.iter().filter_map(Weak::upgrade).filter(|store| store.is_ours()) {
        store.remove_if_last();
        // Other threads run on until the process ends, so nothing is unmapped.
        std::mem::forget(store);
    }
}
