//! What is asked for when a store is opened: the fields behind the options of the public crate.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// What a store does when it has reached its maximum size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A write that finds no room is refused and changes nothing; deleting makes room.
    Strict,
    /// Room is made by dropping first what has expired, then what has not been used lately.
    Cache,
}

/// Which file a call creates or opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Create {
    /// Open it, or create it if it is missing.
    #[default]
    IfMissing,
    /// Only open it.
    Never,
    /// Only create it.
    Always,
}

/// How a store is opened. `None` is not asked for: the file's value when it exists, the default when it is created.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether the file may exist, must, or must not.
    pub create: Create,
    /// Map the file read-only.
    pub read_only: bool,
    /// The memory that the file may take.
    pub max_bytes: Option<u64>,
    /// Strict or cache.
    pub mode: Option<Mode>,
    /// How many items the index has room for from the start.
    pub expected_items: Option<u64>,
    /// The length of every key.
    pub fixed_key_len: Option<u32>,
    /// The length of every value.
    pub fixed_value_len: Option<u32>,
    /// Permission bits of a created file.
    pub permissions: Option<u32>,
    /// The file goes with the last process that has it open.
    pub remove_on_last_close: bool,
    /// How long a write waits for a lock whose living owner does not proceed.
    pub busy_timeout: Option<Duration>,
    /// Bytes of a segment.
    pub segment_bytes: Option<u32>,
    /// Bytes of a leaf of the index.
    pub leaf_bytes: Option<u32>,
    /// Open a file that another user owns.
    pub allow_foreign_owner: bool,
    /// What was acknowledged before a sync survives a crash of the machine.
    pub durable: Option<bool>,
    /// After how long a write syncs.
    pub sync_every: Option<Duration>,
    /// Bytes for the feed of changes; an existing feed stays as it is.
    pub feed: Option<u64>,
    /// A feed that is made keeps values too.
    pub feed_values: bool,
    /// What changes that are made through this handle are marked with in the feed; 0: nothing.
    pub origin: u32,
    /// Called with the progress of a recovery.
    pub on_recovery: Option<OnRecovery>,
}

/// Called with `(done, total)` in bytes while a store is recovered.
#[derive(Clone)]
pub struct OnRecovery(pub Arc<dyn Fn(u64, u64) + Send + Sync>);

// A call that unwinds out of a rebuild leaves the file as a death there does.
impl UnwindSafe for OnRecovery {}
impl RefUnwindSafe for OnRecovery {}

impl fmt::Debug for OnRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRecovery")
    }
}
