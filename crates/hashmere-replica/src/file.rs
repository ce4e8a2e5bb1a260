//! Which file a store is.

use hashmere::Store;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether two handles are of one file.
pub(crate) fn is_same(a: &Store, b: &Store) -> bool {
    file_of(a.path()).is_some_and(|file| file_of(b.path()) == Some(file))
}

/// Device and inode; `None`: there is none, or it cannot be told.
pub(crate) fn file_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}
