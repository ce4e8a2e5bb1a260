//! Removing a store's file.

use crate::error::OpenError;
use crate::fork_handle::SharedEngine;
use crate::left_over;
use crate::open::{path_with_slash, resolve};
use crate::options::Options;
use hashmere_os::file;
use std::path::Path;

/// Removes a store's file. `false`: there was none.
///
/// # Errors
/// [`OpenError::NotAStore`] if the file is something else; it is left alone. Otherwise as opening it.
pub fn remove(name: &Path) -> Result<bool, OpenError> {
    let path = resolve(name)?;
    let slashed = path_with_slash(&path);
    let left_over = file::open_checked(&slashed, false, false);
    if left_over.is_ok_and(|file| left_over::remove_left_over(&path, &file).unwrap_or(false)) {
        return Ok(true);
    }
    match SharedEngine::open(&slashed, &Options { read_only: true, ..Options::default() }) {
        Err(OpenError::NotFound { .. }) => return Ok(false),
        // What cannot be used after a crash may still be removed.
        Ok(_) | Err(OpenError::NotCleanlyClosed { .. }) => {}
        Err(error) => return Err(error),
    }
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(OpenError::Io { path, action: "remove", source }),
    }
}
