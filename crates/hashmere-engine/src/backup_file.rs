//! A backup and its file: made without a name in the folder of its path, named when it is complete.

use crate::engine::NewStore;
use crate::error::{BackupError, OpenError, WriteError};
use crate::fork_handle::SharedEngine;
use crate::open::{self, path_with_slash, FileEngine, Opened};
use crate::options::Options;
use hashmere_format::header::flag;
use hashmere_os::file::{self, Unpublished};
use hashmere_os::random;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// What a backup did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackupReport {
    /// Keys in the copy.
    pub items: u64,
    /// Size of the copy in bytes, as `ls` shows it.
    pub bytes_file: u64,
    /// A cache that was full dropped, while it was copied, some keys that were there at the moment of the snapshot.
    pub thinned: bool,
}

impl SharedEngine {
    /// Copies the store to a new file as it is at one moment; `progress` is called with the keys copied and the
    /// estimated total. `replace`: also over a store that has the name already.
    ///
    /// # Errors
    /// See [`BackupError`]; [`Busy`](WriteError::Busy) within it names a process that is stopped within a write.
    pub fn backup(
        &self,
        path: &Path,
        replace: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupReport, BackupError> {
        let engine = self.engine();
        if engine.access.read_only {
            return Err(WriteError::ReadOnly.into());
        }
        may_be_named(path, replace, self.path())?;
        let mut writer = engine.writer()?;
        let snapshot = engine.begin_snapshot(&mut writer)?;
        let copy = Copy::new(engine, self.path(), path).map_err(BackupError::Create)?;
        let target: &FileEngine = copy.engine();
        let copied = {
            let mut to = target.writer().map_err(BackupError::Target)?;
            snapshot.copy_to(&mut writer, target, &mut to, progress)?
        };
        let bytes_file = target.mem.file_len().unwrap_or(0);
        match copy.publish(path, replace) {
            Err(OpenError::AlreadyExists { path }) => Err(BackupError::Exists { path }),
            Err(error) => Err(BackupError::Create(error)),
            Ok(()) => Ok(BackupReport { items: copied.items, bytes_file, thinned: copied.thinned }),
        }
    }
}

/// Refuses what can be refused before anything is done.
fn may_be_named(path: &Path, replace: bool, source: &Path) -> Result<(), BackupError> {
    let Ok(there) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !replace || is_same_file(&there, source) {
        return Err(BackupError::Exists { path: path.into() });
    }
    // Only a store is replaced, as only a store is removed.
    let read_only = Options { read_only: true, ..Options::default() };
    match SharedEngine::open(&path_with_slash(path), &read_only) {
        Ok(_) | Err(OpenError::NotCleanlyClosed { .. } | OpenError::NotFound { .. }) => Ok(()),
        Err(error) => Err(BackupError::Create(error)),
    }
}

/// A store under construction that no other process can open. Dropped, it vanishes.
struct Copy {
    unnamed: Unpublished,
    opened: Opened,
}

impl Copy {
    /// An empty store for the path `path`, with the options and the seed of `source`, whose file is `from`.
    fn new(source: &FileEngine, from: &Path, path: &Path) -> Result<Copy, OpenError> {
        let io = |action, source| OpenError::Io { path: from.into(), action, source };
        let mode = source.mem.file().metadata().map_err(|e| io("look at", e))?.permissions().mode();
        let new = NewStore {
            // The seed too: supplied hashes are stored spread, and it says how.
            layout: source.layout.clone(),
            max_bytes: source.max_bytes(),
            uuid: random::random_uuid().map_err(|e| io("draw a random UUID", e))?,
            status: 0,
            boot: open::boot_words(),
        };
        let options = Options { permissions: Some(mode & 0o777 | 0o600), ..Options::default() };
        let (unnamed, opened) = open::format(path, &new, &options)?;
        Ok(Copy { unnamed, opened })
    }

    /// What fills it.
    fn engine(&self) -> &FileEngine {
        &self.opened.engine
    }

    /// Closes it in order, brings it to the medium, and gives it its name.
    fn publish(self, path: &Path, replace: bool) -> Result<(), OpenError> {
        let Copy { unnamed, mut opened } = self;
        opened.engine.retire();
        if !opened.is_flushed() {
            return Err(open::open_io(path, "write to disk", io::Error::last_os_error()));
        }
        opened.engine.change_status(flag::CLEAN, 0);
        let io = |action: &'static str| move |source: io::Error| open::open_io(path, action, source);
        opened.engine.mem.file().sync_all().map_err(io("write to disk"))?;
        if replace {
            file::publish_over(unnamed, path).map_err(io("name"))?;
        } else {
            file::publish(unnamed, path).map_err(io("name"))?;
        }
        file::sync_dir(open::folder_of(path)).map_err(io("write the folder to disk of"))
    }
}

/// Whether a name leads to the file at `path`.
fn is_same_file(there: &Metadata, path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
}
