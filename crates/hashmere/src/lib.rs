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
//! - A process may be killed at any instruction: nothing acknowledged is lost, nothing torn, and nobody waits for ever.
//! - The file grows and shrinks in segments; it can have a maximum size, and be a cache that evicts.
//!
//! *It is not* a database: there are no queries, and no transactions over several keys yet. It does not
//! replicate. A store on a file system that loses its memory with the machine (`/dev/shm`) is gone after a reboot.
//!
//! Layers: `hashmere-format` (bytes) and `hashmere-os` (system calls), then `hashmere-mem` (memory as words), then this crate.

mod backup;
mod by_number;
mod canary;
mod copy;
mod copy_file;
mod engine;
mod error;
mod error_text;
mod frame;
mod glob;
mod hashed;
mod last_exit;
mod lease;
mod many;
mod marks;
mod open;
mod options;
mod region;
mod room;
mod scan;
mod shared;
mod store;
mod types;
mod view;
mod wait;
mod write;

pub use backup::{Backup, BackupReport};
pub use engine::{CheckReport, ClientStats, OperationCounts, Problem, RegionInfo, Stats};
pub use error::{AddressLimit, BackupError, Error, OpenError, ReadError, WriteError};
pub use frame::Framed;
pub use hashed::Hashed;
pub use lease::{Lease, LeaseState};
pub use options::{Mode, Options};
pub use region::{ClientId, Region};
pub use room::Roomed;
pub use scan::Scan;
pub use store::Store;
pub use types::{
    Address, Attributes, Cas, Change, Counter, Cursor, Evicted, Expected, Filter, Handle, Item, Meta, Pair, Remaining,
    Stored, Ttl, Uid, Update, Updated, Version,
};
pub use view::{Reservation, View};
