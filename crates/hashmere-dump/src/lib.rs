//! Stores as text: [`dump()`] writes all records of a store to a file, in lines of TSV or JSON, and [`load()`] reads
//! them into another one. A dump outlives any change of the format of stores, and other programs read and write it.
//!
//! ```
//! # let dir = std::env::temp_dir().join(format!("hashmere-dump-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # std::env::set_var("HASHMERE_DIR", &dir);
//! # let file = dir.join("sessions.tsv");
//! use hashmere::{Filter, Options, Store};
//! use hashmere_dump::Records;
//!
//! let store = Store::open("sessions")?;
//! store.set(b"user:7", b"Ada")?;
//! assert_eq!(store.dump(&file, None, Filter::all())?, 1);
//! assert_eq!(hashmere_dump::load("copy", &Options::new(), &file, None)?, 1);
//! # drop(store);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A record is a key, its value, flags and expiry. Versions, UIDs and hashes of the caller's are not kept: a copy that
//! has them is a backup.

#![forbid(unsafe_code)]

mod dump;
mod error;
mod format;
pub mod json;
mod load;
mod record;
pub mod text;
pub mod tsv;

pub use dump::{dump, dump_file, dump_to};
pub use error::{DumpError, LoadError};
pub use format::Format;
pub use load::{load, load_from, Input};
pub use record::Record;

use hashmere::{Filter, Store};
use std::path::Path;

/// What [`Store`] gets from this crate.
pub trait Records {
    /// Writes all records that pass the filter to the file `path`, which appears, or is replaced, when it is complete.
    /// Returns how many there are. `format`: by the name of the file if `None`, see [`Format::of`].
    ///
    /// Others may write during it: a key that is there during the whole dump is written exactly once. A dump of one
    /// moment is that of a [backup](Store::backup).
    ///
    /// # Errors
    /// See [`DumpError`]: nothing is at `path` then that was not there before.
    fn dump(&self, path: impl AsRef<Path>, format: Option<Format>, filter: Filter) -> Result<u64, DumpError>;

    /// Stores all records of the file `path`, in order; returns how many there are.
    ///
    /// # Errors
    /// See [`LoadError`]: it names the line, and how many before it are stored.
    fn load(&self, path: impl AsRef<Path>, format: Option<Format>) -> Result<u64, LoadError>;
}

impl Records for Store {
    fn dump(&self, path: impl AsRef<Path>, format: Option<Format>, filter: Filter) -> Result<u64, DumpError> {
        let path = path.as_ref();
        dump_file(self, path, format.unwrap_or_else(|| Format::of(path)), filter, &mut |_| ())
    }

    fn load(&self, path: impl AsRef<Path>, format: Option<Format>) -> Result<u64, LoadError> {
        load_from(self, Input::open(path.as_ref())?, format, &mut |_| ())
    }
}
