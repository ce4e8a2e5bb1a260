//! Hot backup: a copy of one moment while all clients go on.

use crate::{BackupError, BackupReport, Store};
use std::path::{Path, PathBuf};

/// Called with the number of keys copied and the estimated total.
type Progress<'a> = Box<dyn FnMut(u64, u64) + 'a>;

/// A backup about to be made: see [`Store::backup`].
pub struct Backup<'a> {
    store: &'a Store,
    path: PathBuf,
    replace: bool,
    progress: Progress<'a>,
}

impl Store {
    /// A copy of the store in a new file as it is at one moment, while other threads and processes go on reading and
    /// writing: to be made with [`Backup::run`].
    ///
    /// `path` is a path, also without a slash.
    ///
    /// The copy holds every write that was acknowledged before the call, and none that began after the first call of
    /// the progress function. Of the writes under way at that moment each is in it as a whole or not at all, and if one
    /// write was acknowledged before another began, the copy does not have the second without the first. So it is a
    /// state that a pause of all writers could have shown. Values, flags, marks, versions, supplied hashes and times to
    /// live are the same; UIDs and entry ids are not. Of a key whose time to live is changed during the backup it has
    /// the old one or the new one.
    ///
    /// The copy has the options of the store: mode, maximum size, fixed lengths, durability, permissions. It can be
    /// opened like any store, also after a crash of the machine. Its name appears when it is complete and on the
    /// medium.
    ///
    /// What is superseded during the backup takes room in the store until it ends. A write that would fail for want of
    /// room ends the backup instead ([`BackupError::Abandoned`]). A cache at its maximum size never waits for a backup:
    /// what it drops is missing in the copy ([`BackupReport::thinned`]).
    pub fn backup(&self, path: impl AsRef<Path>) -> Backup<'_> {
        Backup { store: self, path: path.as_ref().to_path_buf(), replace: false, progress: Box::new(|_, _| ()) }
    }
}

impl<'a> Backup<'a> {
    /// Replaces a store that has the name already, in one step, when the copy is complete. Processes that have
    /// the old one open keep it. Default: [`BackupError::Exists`].
    pub fn replace(mut self, replace: bool) -> Backup<'a> {
        self.replace = replace;
        self
    }

    /// `progress` is called with the number of keys copied and the estimated total, for the first time when the
    /// snapshot has been taken.
    pub fn on_progress(mut self, progress: impl FnMut(u64, u64) + 'a) -> Backup<'a> {
        self.progress = Box::new(progress);
        self
    }

    /// Makes the backup.
    ///
    /// # Errors
    /// See [`BackupError`]; [`Busy`](crate::WriteError::Busy) within it names a process that is stopped within a write.
    pub fn run(mut self) -> Result<BackupReport, BackupError> {
        self.store.shared.backup(&self.path, self.replace, &mut self.progress)
    }
}

impl std::fmt::Debug for Backup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backup").field("path", &self.path).field("replace", &self.replace).finish_non_exhaustive()
    }
}
