//! The file of a backup: made without a name beside the place where it is to stand, named when it is complete.

use crate::engine::NewStore;
use crate::error::OpenError;
use crate::open::{self, FileEngine, Opened};
use crate::options::Options;
use hashmere_format::header::flag;
use hashmere_os::boot;
use hashmere_os::file::{self, Unpublished};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A store under construction that nobody else can open. Dropped, it vanishes.
pub(crate) struct Copy {
    unnamed: Unpublished,
    opened: Opened,
}

impl Copy {
    /// An empty store that is to stand at `path`, with the options and the seed of `source`, whose file is `from`.
    pub(crate) fn new(source: &FileEngine, from: &Path, path: &Path) -> Result<Copy, OpenError> {
        let io = |action, source| OpenError::Io { path: from.into(), action, source };
        let mode = source.mem.file().metadata().map_err(|e| io("look at", e))?.permissions().mode();
        let new = NewStore {
            shape: source.shape,
            fixed: source.fixed,
            max_bytes: source.max_bytes(),
            // Supplied hashes are stored spread, and the seed says how.
            seed: source.seed,
            uuid: boot::random_uuid().map_err(|e| io("draw a random UUID", e))?,
            life: 0,
            boot: open::boot_words(),
            durable: source.is_durable(),
        };
        let options = Options::new().permissions(mode & 0o777 | 0o600);
        let (unnamed, opened) = open::format(path, &new, &options)?;
        Ok(Copy { unnamed, opened })
    }

    /// What fills it.
    pub(crate) fn engine(&self) -> &FileEngine {
        &self.opened.engine
    }

    /// Closes it in order, brings it to the medium, and gives it its name.
    pub(crate) fn publish(self, path: &Path, replace: bool) -> Result<(), OpenError> {
        let Copy { unnamed, mut opened } = self;
        opened.engine.retire();
        if !opened.is_flushed() {
            return Err(open::open_io(path, "write to disk", io::Error::last_os_error()));
        }
        opened.engine.change_life(flag::CLEAN, 0);
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
pub(crate) fn is_same_file(there: &Metadata, path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
}

/// A path that cannot be taken for a name.
pub(crate) fn path_with_slash(path: &Path) -> PathBuf {
    if path.components().count() == 1 {
        Path::new(".").join(path)
    } else {
        path.to_path_buf()
    }
}
