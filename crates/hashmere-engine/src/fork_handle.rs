//! One open store of this process: the engine behind all clones of a handle, and what fork does to it.

use crate::engine::{Activity, Lender, Stats};
use crate::error::{Error, OpenError};
use crate::fault::{self, Fault};
use crate::last_close::{self, LastClose};
use crate::open::{attach, open_path, resize, resolve, FileEngine, Opened};
use crate::options::{Mode, Options};
use hashmere_format::header::flag;
use hashmere_os::fork;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A handle on an open store: what queues and logs are opened on.
pub trait StoreHandle {
    /// The engine behind it.
    fn shared(&self) -> &Arc<SharedEngine>;
}

impl StoreHandle for Arc<SharedEngine> {
    #[inline]
    fn shared(&self) -> &Arc<SharedEngine> {
        self
    }
}

/// The engine of one open store, which all clones of its handle share. The last of them to be dropped closes it.
pub struct SharedEngine {
    pub(crate) path: PathBuf,
    options: Options,
    /// The engine of this process. A forked child replaces it on first use; the parent's is then leaked, because views
    /// that were taken before the fork look into its mapping.
    opened: AtomicPtr<Opened>,
    born: AtomicU64,
    myself: Weak<SharedEngine>,
}

impl SharedEngine {
    /// Opens a store by name or path.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(name: &Path, options: &Options) -> Result<Arc<SharedEngine>, OpenError> {
        let path = resolve(name)?;
        fork::install().map_err(|source| OpenError::Io {
            path: path.clone(),
            action: "install the fork handler",
            source,
        })?;
        let opened = open_path(&path, options)?;
        let shared = Arc::new_cyclic(|myself| SharedEngine {
            path,
            // The callbacks are for opening only, and the maximum may have been changed since.
            options: Options { on_recovery: None, max_bytes: None, ..options.clone() },
            opened: AtomicPtr::new(Box::into_raw(Box::new(opened))),
            born: AtomicU64::new(fork::generation()),
            myself: myself.clone(),
        });
        shared.engine().set_lender(shared.myself.clone());
        let engine = shared.engine();
        if !engine.access.read_only && engine.status() & flag::REMOVE_ON_LAST_CLOSE != 0 {
            last_close::watch(shared.myself.clone());
        }
        Ok(shared)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was opened read-only.
    pub fn is_read_only(&self) -> bool {
        self.engine().access.read_only
    }

    /// Whether it refuses when it is full, or evicts.
    pub fn mode(&self) -> Mode {
        if self.engine().layout.is_cache() {
            Mode::Cache
        } else {
            Mode::Strict
        }
    }

    /// Statistics of the store and of its file.
    pub fn stats(&self) -> Stats {
        let engine = self.engine();
        engine.stats(engine.mem.file_len().unwrap_or(0), engine.mem.allocated_bytes().unwrap_or(0))
    }

    /// What goes on in the store: for observers, cheap enough to be asked for once a second.
    pub fn activity(&self) -> Activity {
        let engine = self.engine();
        engine.activity(engine.mem.file_len().unwrap_or(0), engine.mem.allocated_bytes().unwrap_or(0))
    }

    /// Gives the store another maximum size, for all processes that have it open.
    ///
    /// # Errors
    /// [`OpenError::BadOption`], [`OpenError::OptionMismatch`], and those of a write.
    pub fn set_max_bytes(&self, bytes: u64) -> Result<(), Error> {
        let engine = self.engine();
        let mut writer = engine.writer()?;
        resize(engine, &mut writer, &self.path, bytes)
    }

    #[inline(always)]
    pub(crate) fn opened(&self) -> &Opened {
        if self.born.load(Ordering::Relaxed) != fork::generation() && !fault::is(Fault::ForkIgnored) {
            self.reopen();
        }
        // SAFETY: the pointer came from `Box::into_raw` and is freed by `drop` alone; a fork replaces it by another
        // such one and frees neither.
        unsafe { &*self.opened.load(Ordering::Acquire) }
    }

    /// The engine of this process.
    #[inline(always)]
    pub fn engine(&self) -> &FileEngine {
        &self.opened().engine
    }

    /// In a forked child: registers again, on the same file. If that fails the inherited engine stays for reading, and
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
                // SAFETY: `fresh` was made above and no other thread has seen it.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
        self.born.store(generation, Ordering::Release);
    }
}

impl LastClose for SharedEngine {
    fn is_ours(&self) -> bool {
        self.born.load(Ordering::Relaxed) == fork::generation()
    }

    fn remove_if_last(&self) {
        let opened = self.opened();
        if opened.engine.status() & flag::REMOVE_ON_LAST_CLOSE != 0 && opened.is_last() {
            opened.remove(&self.path);
        }
    }
}

impl Lender for SharedEngine {
    fn thread_ended(&self, number: usize, all: bool) {
        // What a child that has not used the store yet has of it is the parent's.
        if self.born.load(Ordering::Acquire) == fork::generation() {
            self.opened().engine.thread_ended(number, all);
        }
    }
}

impl Drop for SharedEngine {
    fn drop(&mut self) {
        let opened = *self.opened.get_mut();
        if *self.born.get_mut() != fork::generation() {
            // A child that never used the store: everything in there is the parent's. The mapping goes with the
            // process.
            return;
        }
        // SAFETY: there is no other reference: this is the last clone.
        let opened = unsafe { Box::from_raw(opened) };
        opened.close(&self.path);
    }
}

impl std::fmt::Debug for SharedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedEngine").field("path", &self.path).finish_non_exhaustive()
    }
}
