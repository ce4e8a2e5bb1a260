//! What is done with a store that is not open, in one call.

use crate::{BackupReport, CheckReport, Error, OpenError, Options, Stats};
use std::path::Path;

/// Verifies the store of a name or path as [`Store::check`](crate::Store::check) does, read-only.
///
/// # Errors
/// As [`Options::open`]; a store is never created.
pub fn check(name_or_path: impl AsRef<Path>) -> Result<CheckReport, OpenError> {
    Ok(Options::new().read_only().open(name_or_path)?.check())
}

/// Statistics of the store of a name or path as [`Store::stats`](crate::Store::stats) returns them, read-only.
///
/// # Errors
/// As [`check`].
pub fn stats(name_or_path: impl AsRef<Path>) -> Result<Stats, OpenError> {
    Ok(Options::new().read_only().open(name_or_path)?.stats())
}

/// Copies the store of a name or path as it is at one moment to the file `path`, as
/// [`Store::backup`](crate::Store::backup) does. `replace`: a store that has the name already is replaced.
///
/// # Errors
/// As [`Options::open`], for a store is never created; and those of [`Backup::run`](crate::Backup::run).
pub fn backup(name_or_path: impl AsRef<Path>, path: impl AsRef<Path>, replace: bool) -> Result<BackupReport, Error> {
    let store = Options::new().create(false).open(name_or_path)?;
    Ok(store.backup(path).replace(replace).run()?)
}
