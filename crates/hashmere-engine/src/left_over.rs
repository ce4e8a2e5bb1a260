//! Stores that their last user should have removed, but was killed: found and removed by the next opener.

use hashmere_format::header::{at, flag, MAGIC};
use hashmere_os::file::identity;
use hashmere_os::ByteLocks;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The byte lock that every open handle holds shared; a handle that can take it exclusively is the last.
pub(crate) const PRESENCE: u64 = 1 << 20;

/// The status word of a store; `None`: this is none, or a copy of one, which is no left-over.
fn status_of(file: &File) -> io::Result<Option<u64>> {
    let mut head = [0; (at::FILE + 8) as usize];
    match file.read_exact_at(&mut head, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let word = |at: u64| head[at as usize..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let is_store = word(at::MAGIC) == MAGIC && word(at::FILE) == identity(file)?;
    Ok(is_store.then(|| word(at::STATUS)))
}

fn is_marked(file: &File) -> io::Result<bool> {
    Ok(status_of(file)?.is_some_and(|status| status & flag::REMOVE_ON_LAST_CLOSE != 0))
}

/// Whether this is a store that its last user should have removed, but was killed. Takes nothing.
pub(crate) fn is_left_over(file: &File) -> io::Result<bool> {
    Ok(is_marked(file)? && !ByteLocks::new(file.as_fd())?.is_locked_by_other(PRESENCE)?)
}

/// If it is such a store, removes it; the file must be open for writing. A process that opens it at the same time
/// either holds it already, and then it is no left-over, or gets its hold after us, finds the file marked as removed
/// and without a name, and looks again.
pub(crate) fn remove_left_over(path: &Path, file: &File) -> io::Result<bool> {
    if !is_marked(file)? {
        return Ok(false);
    }
    let presence = ByteLocks::new(file.as_fd())?;
    if !presence.try_exclusive(PRESENCE)? {
        return Ok(false);
    }
    // From here on no other process has it open, or gets to.
    let Some(status) = status_of(file)? else { return Ok(false) };
    file.write_all_at(&(status | flag::REMOVED).to_le_bytes(), at::STATUS)?;
    if is_file_of(file, path) {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(true)
}

/// Whether a path leads to this file.
pub(crate) fn is_file_of(file: &File, path: &Path) -> bool {
    let same = |ours: std::fs::Metadata| {
        std::fs::symlink_metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == (ours.dev(), ours.ino()))
    };
    file.metadata().is_ok_and(same)
}
