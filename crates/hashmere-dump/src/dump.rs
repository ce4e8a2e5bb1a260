//! From a store into a file.

use crate::{DumpError, Format};
use hashmere::{Cursor, Filter, Options, Store};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes that are written at a time.
const BUFFER: usize = 256 << 10;

/// Dumps the store of a name or path, opened read-only for this call: see [`Records::dump`](crate::Records::dump).
///
/// # Errors
/// See [`DumpError`].
pub fn dump(
    name_or_path: impl AsRef<Path>,
    path: impl AsRef<Path>,
    format: Option<Format>,
    filter: Filter,
) -> Result<u64, DumpError> {
    let store = Options::new().read_only().open(name_or_path)?;
    crate::Records::dump(&store, path, format, filter)
}

/// Writes all records that pass the filter to something that is no file. `each` is called with the number of records in
/// each piece that was written.
///
/// # Errors
/// [`DumpError::Io`] with this action and what the writer returned; those of reading.
pub fn dump_to(
    store: &Store,
    output: &mut dyn Write,
    action: &str,
    format: Format,
    filter: Filter,
    each: &mut dyn FnMut(u64),
) -> Result<u64, DumpError> {
    let failed = |source| DumpError::Io { action: action.into(), source };
    let mut lines = Vec::with_capacity(BUFFER);
    let (mut written, mut fresh) = (0, 0);
    for pair in store.scan(Cursor::START, filter) {
        format.write(&pair?, &mut lines);
        fresh += 1;
        if lines.len() >= BUFFER {
            output.write_all(&lines).map_err(failed)?;
            lines.clear();
            each(fresh);
            written += std::mem::take(&mut fresh);
        }
    }
    output.write_all(&lines).and_then(|()| output.flush()).map_err(failed)?;
    each(fresh);
    Ok(written + fresh)
}

/// As [`Records::dump`](crate::Records::dump); `each` is called as by [`dump_to`].
///
/// # Errors
/// See [`DumpError`].
pub fn dump_file(
    store: &Store,
    path: &Path,
    format: Format,
    filter: Filter,
    each: &mut dyn FnMut(u64),
) -> Result<u64, DumpError> {
    let action = format!("write {}", path.display());
    let failed = |source: io::Error| DumpError::Io { action: action.clone(), source };
    // Beside the file, and renamed at the end, unless it is something special such as a pipe.
    let special = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
    let partial = if special { path.to_owned() } else { beside(path) };
    let mut file = File::options().write(true).create(true).truncate(!special).open(&partial).map_err(failed)?;
    let written = dump_to(store, &mut file, &action, format, filter, each);
    if special {
        return written;
    }
    let renamed = written.and_then(|written| std::fs::rename(&partial, path).map(|()| written).map_err(failed));
    if renamed.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    renamed
}

/// A name in the same folder, of this thread alone.
fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    name.push(format!(".{}-{thread}.partial", std::process::id()));
    name.into()
}
