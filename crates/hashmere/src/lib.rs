//! One hash table in one file that every process on a machine maps and reads and writes directly, at memory speed.
//!
//! ```
//! # let dir = std::env::temp_dir().join(format!("hashmere-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # std::env::set_var("HASHMERE_DIR", &dir);
//! use hashmere::{Counter, Store};
//!
//! let store = Store::open("sessions")?; // any process of this user opens the same one
//! store.set(b"user:7", b"Ada")?;
//! assert_eq!(store.get(b"user:7")?.as_deref(), Some(&b"Ada"[..]));
//! store.incr(b"hits", 1, Counter::or_create(1))?;
//! # drop(store);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - Readers take no lock and write nothing that others read. Writers of different keys do not wait for each other.
//! - A process may be killed at any instruction: nothing acknowledged is lost, nothing torn, and no process waits
//!   forever.
//! - The file grows and shrinks in segments; it can have a maximum size, and be a cache that evicts.
//! - Several keys change at one moment, or none: [`Store::transaction`], [`Store::write_batch`].
//!
//! *It is not* a database: there are no queries. A store on a file system that loses its memory
//! with the machine (`/dev/shm`) is gone after a reboot.
//!
//! Layers: `hashmere-format` (bytes) and `hashmere-os` (system calls), then `hashmere-mem` (memory as words), then
//! `hashmere-engine` (what happens to them), then this crate.

#![forbid(unsafe_code)]

mod backup;
mod by_id;
mod counter;
mod each;
mod filter;
mod glob;
mod into;
mod key;
mod many;
mod named;
mod options;
mod scan;
mod store;
mod transaction;
mod wait;
mod write;

pub use backup::Backup;
pub use filter::{Cursor, Filter};
#[doc(inline)]
pub use hashmere_engine::{
    AddressLimit, Attributes, BackupError, BackupReport, BatchResult, Branch, CasOutcome, Change, CheckReport,
    ClientStats, Condition, Counter, EntryId, Error, Expected, Expiry, FeedInfo, Item, Metadata, Mode, OpenError,
    OperationCounts, Pair, Problem, ReadError, Reservation, Stats, Stored, Ttl, Uid, Update, Updated, Version, View,
    WaitAnyOutcome, WaitOutcome, WriteBatch, WriteError,
};
pub use into::Buffer;
pub use key::Key;
pub use named::{backup, check, stats};
pub use options::Options;
pub use scan::Scan;
pub use store::Store;
pub use transaction::Transaction;
