//! The engine of Hashmere: an index, a log of segments and their cleaning in one file that processes map, kill and
//! stop.
//!
//! For Hashmere's own crates, which build stores, queues, logs and servers on it. **It has no stable interface**: what
//! is public here changes with the crates above it, in any release. Programs use the crate `hashmere`.
//!
//! - [`SharedEngine`] is one open store of this process, also across forks; [`StoreHandle`] leads from a user's handle
//!   to it.
//! - [`Engine`] is what happens to the bytes, generic over memory and host.
//! - [`Region`], [`ClientId`] and [`Lease`] are what objects other than keys are built on.
//!
//! Layers: `hashmere-format` (bytes) and `hashmere-os` (system calls), then `hashmere-mem` (memory as words), then this
//! crate.

mod backup_file;
mod batch;
mod by_id;
mod caller_buffer;
mod copy;
mod engine;
mod error;
mod error_text;
mod fault;
mod fetch;
mod fork_handle;
mod framed_read;
mod keyed;
mod last_close;
mod lease;
mod lease_set;
mod left_over;
mod marks;
mod open;
mod options;
mod region;
mod remove;
mod transaction;
mod transactions;
mod types;
mod view;
mod watcher;

pub use backup_file::BackupReport;
pub use caller_buffer::Roomed;
pub use engine::{
    add_fractions, step, Activity, CheckReport, ClientActivity, ClientStats, CounterKind, Engine, FeedInfo, FeedStep,
    Figures, Found, FractionStep, KeyHash, OperationCounts, PinActivity, Problem, RegionInfo, Rounds, ScanStep, Signed,
    Stats, Tick, Unsigned, When, Writer, WriterGuard, BATCH,
};
pub use error::{AddressLimit, BackupError, Error, OpenError, ReadError, WriteError};
pub use fork_handle::{SharedEngine, StoreHandle};
pub use framed_read::Framed;
pub use lease::{Lease, LeaseState};
pub use marks::APPLIED;
pub use open::{resolve, FileEngine};
pub use options::{Create, Mode, OnRecovery, Options};
pub use region::{ClientId, Region};
pub use remove::remove;
pub use transaction::batch::{BatchResult, Branch, Condition, WriteBatch};
pub use transactions::{FileTransaction, HeldTransaction};
pub use types::{
    Address, Attributes, CasOutcome, Change, Counter, EntryId, Evicted, Expected, Expiry, Item, Metadata, Pair, Stored,
    Ttl, Uid, Update, Updated, Version, WaitAnyOutcome, WaitOutcome,
};
pub use view::{Reservation, View};
pub use watcher::{Watched, Watcher};
