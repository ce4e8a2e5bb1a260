//! Small helpers shared by the wrappers.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Turns the `-1` convention of the C library into an `io::Error`.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Repeats a call for as long as a signal interrupts it.
pub(crate) fn retry(mut call: impl FnMut() -> libc::c_int) -> io::Result<libc::c_int> {
    loop {
        match check(call()) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => continue,
            outcome => return outcome,
        }
    }
}

/// A path as the kernel wants it. A path with a NUL inside is an `InvalidInput` error.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a path must not contain NUL"))
}

/// An offset or length as the kernel's signed type.
pub(crate) fn offset(value: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(value).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "file offset beyond 2^63"))
}

/// The effective user of this process.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}
