//! What goes on in a store, seen by a process that maps it read-only: no server is needed, no process is stopped, and
//! nothing is written.
//!
//! [`Observer::snapshot`] takes figures of a moment; [`Snapshot::since`] makes rates of two of them.
//!
//! ```
//! # let dir = std::env::temp_dir().join(format!("hashmere-observe-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let path = dir.join("doc.mere");
//! let store = hashmere::Store::open(&path)?;
//! let observer = hashmere_observe::Observer::open(&path)?;
//! let before = observer.snapshot();
//! store.set(b"user:7", b"Ada")?;
//! let now = observer.snapshot();
//! assert_eq!(now.totals.sets - before.totals.sets, 1);
//! let rates = now.since(&before);
//! assert_eq!(rates.processes.len(), 1);
//! assert!(rates.total.sets > 0.0);
//! # drop(store);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A process that has the store open read-only has no client record, so it is not among the processes, and its reads
//! are not counted.

#![forbid(unsafe_code)]

mod big;
mod hot;
mod log_tail;
mod lookups;
mod observer;
mod process;
mod rates;
mod segments;
mod snapshot;

pub use big::{BigKeys, BigKeysOptions, Count, Large, Line, Summary};
pub use hashmere_engine::{Figures, PinActivity};
pub use hot::{Estimate, HotKey, HotKeys, Hottest, Sampler, POLL};
pub use log_tail::{LogTail, TailLine};
pub use lookups::{LookupProbe, LookupTimes};
pub use observer::Observer;
pub use process::{Process, ProcessState};
pub use rates::{OperationRates, Rates};
pub use segments::{SegmentUse, Segments};
pub use snapshot::{LogSnapshot, Memory, PoolSnapshot, Snapshot};
