//! The open store behind a Python object: closed while no call uses it; long calls release the interpreter.

use crate::raw;
use hashmere::Store;
use pyo3::ffi;
use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A store that can be closed while other threads are in the middle of a call: the last to leave closes it then.
pub struct Handle {
    store: UnsafeCell<Option<Store>>,
    uses: AtomicUsize,
    closed: AtomicBool,
    gone: AtomicBool,
}

// SAFETY: the store is reached through a `Use` only, and is taken out by the one who sets `gone`, which happens when it
// is closed and no call uses it: from then on no `Use` is made.
unsafe impl Sync for Handle {}
// SAFETY: a `Store` may go to another thread.
unsafe impl Send for Handle {}

/// Whether a lock of the interpreter keeps other threads out while we count.
const ALONE: bool = cfg!(not(Py_GIL_DISABLED));

/// The right to use the store until it is dropped, which has to happen with the interpreter attached.
pub struct Use<'a>(&'a Handle, *const Store);

impl Handle {
    pub fn new(store: Store) -> Handle {
        Handle {
            store: UnsafeCell::new(Some(store)),
            uses: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// `None`: it is closed.
    #[inline(always)]
    pub fn enter(&self) -> Option<Use<'_>> {
        if ALONE {
            if self.closed.load(Ordering::Relaxed) {
                return None;
            }
            self.uses.store(self.uses.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        } else {
            self.uses.fetch_add(1, Ordering::SeqCst);
            if self.closed.load(Ordering::SeqCst) {
                drop(Use(self, std::ptr::null()));
                return None;
            }
        }
        // SAFETY: not closed, so no other thread takes it out before we leave.
        let store = unsafe { &*self.store.get() };
        store.as_ref().map(|store| Use(self, store))
    }

    /// Closes it, now or when the last user leaves. What it returns is for the caller to drop.
    pub fn close(&self) -> Option<Store> {
        if ALONE {
            self.closed.store(true, Ordering::Relaxed);
            return (self.uses.load(Ordering::Relaxed) == 0).then(|| self.take()).flatten();
        }
        self.uses.fetch_add(1, Ordering::SeqCst);
        self.closed.store(true, Ordering::SeqCst);
        (self.uses.fetch_sub(1, Ordering::SeqCst) == 1).then(|| self.take()).flatten()
    }

    #[cold]
    fn take(&self) -> Option<Store> {
        if self.gone.swap(true, Ordering::AcqRel) {
            return None;
        }
        // SAFETY: closed, without users, and only we got here.
        unsafe { &mut *self.store.get() }.take()
    }
}

impl Deref for Use<'_> {
    type Target = Store;
    #[inline(always)]
    fn deref(&self) -> &Store {
        // SAFETY: it is in the handle until we leave. Only an unsuccessful `enter` makes a null one, and drops it.
        unsafe { &*self.1 }
    }
}

impl Drop for Use<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let before = if ALONE {
            let uses = self.0.uses.load(Ordering::Relaxed);
            self.0.uses.store(uses - 1, Ordering::Relaxed);
            uses
        } else {
            self.0.uses.fetch_sub(1, Ordering::SeqCst)
        };
        if before == 1 && self.0.closed.load(Ordering::SeqCst) {
            drop(self.0.take());
        }
    }
}

/// Called around every sleep of the engine: other Python threads run during it.
pub fn let_others_run(sleep: &mut dyn FnMut()) {
    // Behind the end of the interpreter, when threads of a log or of a queue may still be there, Python says "yes" of
    // every thread. SAFETY: asks about this thread, and about a flag.
    if unsafe { ffi::Py_IsInitialized() == 0 || raw::PyGILState_Check() == 0 } {
        return sleep();
    }
    // SAFETY: this thread is attached; the engine touches no Python object while it sleeps, and does not unwind.
    unsafe {
        let state = ffi::PyEval_SaveThread();
        sleep();
        ffi::PyEval_RestoreThread(state);
    }
}
