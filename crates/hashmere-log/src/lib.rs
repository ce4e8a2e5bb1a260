//! A log of many threads and processes, in the file of a Hashmere store: one ordered stream, in which nothing is lost.
//!
//! Any thread of any process that has the store open appends lines to the [`Log`], for some tens of nanoseconds. One
//! *drainer*, a thread of any of these processes ([`Log::drain`]) or the command `hashmere log`, writes them in order
//! to standard output, a file or a function. Whichever process is killed, at any instruction: lines that were logged
//! come out, once (a function may see one again, if its process is killed in it).
//!
//! ```
//! # let dir = std::env::temp_dir().join(format!("hashmere-log-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # std::env::set_var("HASHMERE_DIR", &dir);
//! use hashmere::Store;
//! use hashmere_log::{Format, Level, Log, LogFile, LogOptions, Sink};
//!
//! let store = Store::open("jobs")?;
//! let log = Log::open(&store, "log", LogOptions::new())?; // any process opens the same one
//! let drainer = log.drain(Sink::file(LogFile::new(dir.join("jobs.log")), Format::Text))?; // one of them drains it
//!
//! log.line(Level::Info, "started")?;
//! log.format(Level::Debug, format_args!("{} workers", 4))?;
//! log.line_fields(Level::Warn, "slow request", &[("path", "/index".into()), ("ms", 1200.into())])?;
//!
//! drainer.stop()?; // drains the rest
//! assert!(std::fs::read_to_string(dir.join("jobs.log"))?.ends_with(": slow request path=/index ms=1200\n"));
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `log` there is an adapter for the crate of that name, with `tracing` a layer for that one.
//!
//! *It is not* a log collector: no process outside the machine can take part, and what is in the log and not written
//! yet does not survive a crash of the machine. `docs/internals/log.md` has the bytes, the protocol and the argument.

mod drainer;
mod drainer_role;
mod error;
mod fault;
mod follow;
mod format;
mod handle;
mod history;
mod layout;
mod line;
mod log;
#[cfg(feature = "log")]
mod log_adapter;
mod loss;
mod manual_drainer;
mod merge;
mod options;
mod output;
mod ready_fd;
mod ring;
mod ring_stats;
mod sink;
mod thread;
mod timestamp;
#[cfg(feature = "tracing")]
mod tracing_layer;

#[cfg(test)]
mod tests;

pub use drainer::Drainer;
pub use error::LogError;
pub use follow::{Follower, Since};
pub use format::Format;
pub use line::{Fields, Level, LogLine, Value};
pub use log::{FieldWriter, Log, LogStats};
#[cfg(feature = "log")]
pub use log_adapter::LogAdapter;
pub use manual_drainer::ManualDrainer;
pub use options::{LogOptions, OnFull, OnNoDrainer, OnTooLong};
pub use ring_stats::RingStats;
pub use sink::{LogFile, Sink};
#[cfg(feature = "tracing")]
pub use tracing_layer::TracingLayer;
