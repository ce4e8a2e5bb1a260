//! How a store is opened.

use crate::{Mode, OpenError, Store};
use hashmere_engine::{self as engine, Create, OnRecovery, SharedEngine};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Options for [`Options::open`].
///
/// What is not set is taken from the file when it exists and from the default when it is
/// created. What *is* set and differs from an existing file is either honoured (another maximum size, the
/// busy timeout, removal on the last close) or refused with [`OpenError::OptionMismatch`], which
/// names both values. Nothing is ever damaged by it.
#[derive(Clone, Debug, Default)]
pub struct Options(engine::Options);

impl Options {
    /// Create if missing, read and write, strict, no maximum size.
    pub fn new() -> Options {
        Options::default()
    }
    /// Whether a store that does not exist is created (default `true`); otherwise [`OpenError::NotFound`] is returned.
    /// Ignored after [`create_new(true)`](Self::create_new), as in [`std::fs::OpenOptions`].
    pub fn create(mut self, create: bool) -> Options {
        self.0.create = match self.0.create {
            Create::Always => Create::Always,
            _ if create => Create::IfMissing,
            _ => Create::Never,
        };
        self
    }
    /// Whether the call must create the store (default `false`): [`OpenError::AlreadyExists`] if it exists.
    pub fn create_new(mut self, create_new: bool) -> Options {
        self.0.create = match self.0.create {
            _ if create_new => Create::Always,
            Create::Always => Create::IfMissing,
            before => before,
        };
        self
    }
    /// Map the file read-only. Works on a file that the process may not write. Implies
    /// [`create(false)`](Self::create). A read-only client holds no pins (its views are copies) and
    /// is not counted in the statistics.
    pub fn read_only(mut self) -> Options {
        self.0.read_only = true;
        self
    }
    /// The memory that the file may take, in bytes (whole segments; at least eight of them). Default: no limit but the
    /// 2 TiB that the format can address.
    ///
    /// An existing store gets this maximum: see [`Store::set_max_bytes`](crate::Store::set_max_bytes). The last to open
    /// it with one decides, for all processes that have it open. It means nothing to a read-only handle.
    pub fn max_bytes(mut self, bytes: u64) -> Options {
        self.0.max_bytes = Some(bytes);
        self
    }
    /// Strict (default) or cache. [`Mode::Cache`] needs [`max_bytes`](Self::max_bytes) when it creates.
    pub fn mode(mut self, mode: Mode) -> Options {
        self.0.mode = Some(mode);
        self
    }
    /// Creates the index large enough for this many items, which saves the splits on the way there.
    pub fn expected_items(mut self, items: u64) -> Options {
        self.0.expected_items = Some(items);
        self
    }
    /// Every key has exactly this length; others are refused. Creation only.
    pub fn fixed_key_len(mut self, bytes: u32) -> Options {
        self.0.fixed_key_len = Some(bytes);
        self
    }
    /// Every value has exactly this length; others are refused. Creation only.
    pub fn fixed_value_len(mut self, bytes: u32) -> Options {
        self.0.fixed_value_len = Some(bytes);
        self
    }
    /// Permission bits of a created file (default `0o600`).
    pub fn permissions(mut self, mode: u32) -> Options {
        self.0.permissions = Some(mode);
        self
    }
    /// Whether the file is removed when the last process that has it open for writing closes its last handle or exits.
    /// If that process is killed, or ends by `_exit`, the next process that opens the name removes the file first.
    pub fn remove_on_last_close(mut self, remove: bool) -> Options {
        self.0.remove_on_last_close = remove;
        self
    }
    /// How long a write waits for a lock whose living owner does not proceed before it returns
    /// [`WriteError::Busy`](crate::WriteError::Busy). Default 5 s.
    pub fn busy_timeout(mut self, timeout: Duration) -> Options {
        self.0.busy_timeout = Some(timeout);
        self
    }
    /// Bytes of a segment, the unit of cleaning and of giving memory back: a power of two from 4 KiB to 64 MiB,
    /// default 256 KiB. Creation only. Small segments are for tests.
    pub fn segment_bytes(mut self, bytes: u32) -> Options {
        self.0.segment_bytes = Some(bytes);
        self
    }
    /// Bytes of a leaf of the index, the unit of growth: a power of two from 256 bytes to 32 KiB (the default), at
    /// most an eighth of a segment. Creation only. Small leaves are for tests.
    pub fn leaf_bytes(mut self, bytes: u32) -> Options {
        self.0.leaf_bytes = Some(bytes);
        self
    }
    /// A durable store, for a file on a disk: everything acknowledged before a completed [`Store::sync`] survives a
    /// crash of the machine and a power cut. Records take 8 bytes more, and what is emptied is free only after the
    /// next sync. Creation only; not together with [`Mode::Cache`]. On tmpfs it is as durable as tmpfs is.
    pub fn durable(mut self) -> Options {
        self.0.durable = Some(true);
        self
    }
    /// Durable stores: a write that finds the last sync older than this syncs after it has let go of its key. No thread
    /// does so: what is written last is synced by the next write, by [`Store::sync`], or when the last handle is
    /// closed.
    pub fn sync_every(mut self, period: Duration) -> Options {
        self.0.sync_every = Some(period);
        self
    }
    /// Keeps about this many bytes of changes in the store's file (1 MiB to 32 GiB), for consumers that follow them:
    /// see the crate `hashmere-feed`. Default: none. A store that keeps changes already goes on as it is.
    pub fn feed(mut self, bytes: u64) -> Options {
        self.0.feed = Some(bytes);
        self
    }
    /// Whether the changes are kept with their values (default: without). Means something only together with
    /// [`feed`](Self::feed), and where that makes the feed.
    pub fn feed_values(mut self, values: bool) -> Options {
        self.0.feed_values = values;
        self
    }
    /// A number that marks all changes that are made through this handle in the feed, such as that of a replicator.
    /// Default 0.
    pub fn origin(mut self, origin: u32) -> Options {
        self.0.origin = origin;
        self
    }
    /// Called with `(done, total)` in bytes while opening recovers a durable store after the machine went down.
    pub fn on_recovery(mut self, progress: impl Fn(u64, u64) + Send + Sync + 'static) -> Options {
        self.0.on_recovery = Some(OnRecovery(Arc::new(progress)));
        self
    }
    /// Opens a file that another user owns (refused by default: its owner could change it under us).
    pub fn allow_foreign_owner(mut self) -> Options {
        self.0.allow_foreign_owner = true;
        self
    }

    /// Opens a store by *name* (a file in the namespace folder, which is `HASHMERE_DIR` or else
    /// `/dev/shm/hashmere-<uid>`), or by *path* if the text contains a slash or ends in `.mere`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(&self, name_or_path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Ok(Store { shared: SharedEngine::open(name_or_path.as_ref(), &self.0)? })
    }
}

impl Store {
    /// Opens a store by name or path with default options, creating it if it is missing: see [`Options::open`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(name_or_path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Options::new().open(name_or_path)
    }
}
