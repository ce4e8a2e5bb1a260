//! One open store of this process: the engine behind all clones of a handle, and what fork does to it.

use crate::canary::{self, Canary};
use crate::engine::Lender;
use crate::error::OpenError;
use crate::open::{attach, open_path, resolve, FileEngine, Opened};
use crate::options::Options;
use hashmere_os::fork;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// What all clones of a [`Store`](crate::Store) share.
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    options: Options,
    /// The engine of this process. A forked child replaces it on first use; the parent's is then leaked, because views
    /// that were taken before the fork look into its mapping.
    opened: AtomicPtr<Opened>,
    born: AtomicU64,
    myself: Weak<Shared>,
}

impl Shared {
    pub(crate) fn open(name: &Path, options: &Options) -> Result<Arc<Shared>, OpenError> {
        let path = resolve(name)?;
        fork::install().map_err(|source| OpenError::Io {
            path: path.clone(),
            action: "install the fork handler",
            source,
        })?;
        let opened = open_path(&path, options)?;
        let shared = Arc::new_cyclic(|myself| Shared {
            path,
            // The callbacks are for opening only, and the maximum may have been changed since.
            options: Options { on_rebuild: None, max_bytes: None, ..options.clone() },
            opened: AtomicPtr::new(Box::into_raw(Box::new(opened))),
            born: AtomicU64::new(fork::generation()),
            myself: myself.clone(),
        });
        shared.engine().set_lender(shared.myself.clone());
        Ok(shared)
    }

    #[inline(always)]
    pub(crate) fn opened(&self) -> &Opened {
        if self.born.load(Ordering::Relaxed) != fork::generation() && !canary::is(Canary::ForkIgnored) {
            self.reopen();
        }
        // SAFETY: the pointer came from `Box::into_raw` and is freed by `drop` alone; a fork replaces it by another such one
        // and frees neither.
        unsafe { &*self.opened.load(Ordering::Acquire) }
    }

    /// Whether this process opened it, rather than the one it was forked from.
    pub(crate) fn is_ours(&self) -> bool {
        self.born.load(Ordering::Relaxed) == fork::generation()
    }

    #[inline(always)]
    pub(crate) fn engine(&self) -> &FileEngine {
        &self.opened().engine
    }

    /// In a forked child: registers anew, on the same file. If that fails the inherited engine stays for reading, and
    /// every write fails with an error.
    #[cold]
    fn reopen(&self) {
        let before = self.opened.load(Ordering::Acquire);
        let generation = fork::generation();
        // SAFETY: as in `opened`.
        let parent = unsafe { &*before };
        let again = parent.engine.mem.file().try_clone().and_then(|file| {
            attach(&self.path, file, &self.options).map_err(|error| io::Error::other(error.to_string()))
        });
        if again.is_err() {
            parent.engine.disown();
        }
        if let Ok(opened) = again {
            opened.engine.set_lender(self.myself.clone());
            let fresh = Box::into_raw(Box::new(opened));
            if self.opened.compare_exchange(before, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // Another thread of the child was first.
                // SAFETY: `fresh` was made above and nobody has seen it.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
        self.born.store(generation, Ordering::Release);
    }
}

impl Lender for Shared {
    fn thread_ended(&self, number: usize, all: bool) {
        // What a child that has not used the store yet has of it is the parent's.
        if self.born.load(Ordering::Acquire) == fork::generation() {
            self.opened().engine.thread_ended(number, all);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let opened = *self.opened.get_mut();
        if *self.born.get_mut() != fork::generation() {
            // A child that never used the store: everything in there is the parent's. The mapping goes with the process.
            return;
        }
        // SAFETY: nobody else has a reference: this is the last clone.
        let opened = unsafe { Box::from_raw(opened) };
        opened.close(&self.path);
    }
}
