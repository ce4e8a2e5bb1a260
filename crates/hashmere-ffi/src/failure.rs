//! Errors on their way to the caller, and the wall against panics.

use crate::abi::HmError;
use crate::result;
use hashmere::{BackupError, Error, OpenError, ReadError, WriteError};
use hashmere_dump::{DumpError, LoadError};
use hashmere_feed::FeedError;
use hashmere_log::LogError;
use hashmere_queue::QueueError;
use std::any::Any;
use std::ffi::{c_char, c_int};
use std::fmt::{self, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Why a call failed.
pub(crate) enum Failure {
    Open(OpenError),
    Read(ReadError),
    Write(WriteError),
    /// Rare ones are behind a pointer: the size of all decides what each call costs.
    Backup(Box<BackupError>),
    Queue(Box<QueueError>),
    Log(Box<LogError>),
    Feed(Box<FeedError>),
    Dump(Box<DumpError>),
    Load(Box<LoadError>),
    /// An argument is not allowed: its name, and what is wrong.
    Argument(&'static str, &'static str),
    /// Key and value, or one of them, are longer than any store allows.
    TooLarge(&'static str, usize),
    Closed,
    InvalidState(&'static str),
    Panic(Box<dyn Any + Send>),
}

impl From<OpenError> for Failure {
    #[cold]
    fn from(error: OpenError) -> Failure {
        Failure::Open(error)
    }
}
impl From<ReadError> for Failure {
    #[cold]
    fn from(error: ReadError) -> Failure {
        Failure::Read(error)
    }
}
impl From<WriteError> for Failure {
    #[cold]
    fn from(error: WriteError) -> Failure {
        Failure::Write(error)
    }
}

impl From<BackupError> for Failure {
    #[cold]
    fn from(error: BackupError) -> Failure {
        Failure::Backup(Box::new(error))
    }
}
impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Failure {
        match error {
            Error::Open(error) => error.into(),
            Error::Read(error) => error.into(),
            Error::Write(error) => error.into(),
            Error::Backup(error) => error.into(),
            other => Failure::Queue(Box::new(other.into())),
        }
    }
}
impl From<QueueError> for Failure {
    #[cold]
    fn from(error: QueueError) -> Failure {
        match error {
            QueueError::Store(error) => (*error).into(),
            other => Failure::Queue(Box::new(other)),
        }
    }
}
impl From<LogError> for Failure {
    #[cold]
    fn from(error: LogError) -> Failure {
        match error {
            LogError::Store(error) => (*error).into(),
            other => Failure::Log(Box::new(other)),
        }
    }
}

impl From<FeedError> for Failure {
    #[cold]
    fn from(error: FeedError) -> Failure {
        match error {
            FeedError::Store(error) => (*error).into(),
            other => Failure::Feed(Box::new(other)),
        }
    }
}

impl From<DumpError> for Failure {
    #[cold]
    fn from(error: DumpError) -> Failure {
        match error {
            DumpError::Store(error) => error.into(),
            other => Failure::Dump(Box::new(other)),
        }
    }
}

impl From<LoadError> for Failure {
    #[cold]
    fn from(error: LoadError) -> Failure {
        match error {
            LoadError::Store { error, loaded: 0, tried: 0 } => error.into(),
            other => Failure::Load(Box::new(other)),
        }
    }
}

fn os_error_of(error: &WriteError) -> i32 {
    match error {
        WriteError::Io { source, .. } | WriteError::NoSpace(source) => source.raw_os_error().unwrap_or(0),
        _ => 0,
    }
}

fn os_error_of_any(error: &Error) -> i32 {
    match error {
        Error::Write(error) => os_error_of(error),
        _ => 0,
    }
}

fn pid_of(error: &WriteError) -> u32 {
    match error {
        WriteError::Busy { pid, .. } => *pid,
        _ => 0,
    }
}

impl Failure {
    fn code(&self) -> c_int {
        match self {
            Failure::Open(error) => error.code(),
            Failure::Read(error) => error.code(),
            Failure::Write(error) => error.code(),
            Failure::Backup(error) => error.code(),
            Failure::Queue(error) => error.code(),
            Failure::Log(error) => error.code(),
            Failure::Feed(error) => error.code(),
            Failure::Dump(error) => error.code(),
            Failure::Load(error) => error.code(),
            Failure::Argument(..) => result::ARGUMENT,
            Failure::TooLarge(..) => WriteError::TooLarge { bytes: 0, limit: 0 }.code(),
            Failure::Closed => result::CLOSED,
            Failure::InvalidState(what) => WriteError::InvalidState(what).code(),
            Failure::Panic(_) => result::INTERNAL,
        }
    }

    fn os_error(&self) -> i32 {
        let open = match self {
            Failure::Open(error) => error,
            Failure::Write(error) => return os_error_of(error),
            Failure::Backup(error) => match &**error {
                BackupError::Create(error) => error,
                BackupError::Source(error) | BackupError::Target(error) => return os_error_of(error),
                _ => return 0,
            },
            Failure::Log(error) => match &**error {
                LogError::Output { source, .. } => return source.raw_os_error().unwrap_or(0),
                LogError::NoRoom { error, .. } => return os_error_of_any(error),
                _ => return 0,
            },
            Failure::Queue(error) => match &**error {
                QueueError::NoRoom { error, .. } => return os_error_of_any(error),
                _ => return 0,
            },
            Failure::Dump(error) => match &**error {
                DumpError::Io { source, .. } => return source.raw_os_error().unwrap_or(0),
                _ => return 0,
            },
            Failure::Load(error) => match &**error {
                LoadError::Io { source, .. } => return source.raw_os_error().unwrap_or(0),
                LoadError::Store { error, .. } => return os_error_of_any(error),
                _ => return 0,
            },
            _ => return 0,
        };
        match open {
            OpenError::Io { source, .. } | OpenError::NoSpace { source, .. } => source.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }

    fn pid(&self) -> u32 {
        match self {
            Failure::Write(error) => pid_of(error),
            Failure::Backup(error) => match &**error {
                BackupError::Running { pid, .. } => *pid,
                BackupError::Source(error) | BackupError::Target(error) => pid_of(error),
                _ => 0,
            },
            Failure::Log(error) => match **error {
                LogError::Taken { pid } | LogError::Full { pid } => pid,
                _ => 0,
            },
            _ => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Open(error) => error.fmt(f),
            Failure::Read(error) => error.fmt(f),
            Failure::Write(error) => error.fmt(f),
            Failure::Backup(error) => error.fmt(f),
            Failure::Queue(error) => error.fmt(f),
            Failure::Log(error) => error.fmt(f),
            Failure::Feed(error) => error.fmt(f),
            Failure::Dump(error) => error.fmt(f),
            Failure::Load(error) => error.fmt(f),
            Failure::Argument(name, what) => write!(f, "argument `{name}`: {what}"),
            Failure::TooLarge(name, len) => {
                write!(f, "argument `{name}` has {len} bytes, but key and value together have less than 4 GiB")
            }
            Failure::Closed => f.write_str("the store is closed, or was never opened; open it again"),
            Failure::InvalidState(what) => f.write_str(what),
            Failure::Panic(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                write!(f, "a bug in the library was caught; please report it: {}", text.unwrap_or("no more is known"))
            }
        }
    }
}

/// Text that stops at the end of its room, between two characters, and leaves a place for a NUL.
struct Cut<'a> {
    text: &'a mut [c_char],
    len: usize,
    is_full: bool,
}

impl Write for Cut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            self.is_full |= self.len + bytes.len() >= self.text.len();
            if self.is_full {
                return Ok(());
            }
            for byte in bytes {
                // A NUL in a path that was passed, or in a text of the system, would end the text early.
                self.text[self.len] = if *byte == 0 { b'?' } else { *byte } as c_char;
                self.len += 1;
            }
        }
        Ok(())
    }
}

/// Runs the body of an exported function. A panic becomes [`result::INTERNAL`].
///
/// # Safety
/// `error` is NULL or valid for writes.
#[inline(always)]
pub(crate) unsafe fn guard(error: *mut HmError, body: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    // What a panic may leave half done is the engine's own, which a dying process might have left as well.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => return result,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::Panic(panic),
    };
    // SAFETY: as above.
    unsafe { report(error, failure) }
}

/// Fills the caller's structure and returns the code.
///
/// # Safety
/// As [`guard`].
#[cold]
#[inline(never)]
unsafe fn report(error: *mut HmError, failure: Failure) -> c_int {
    let code = failure.code();
    if !error.is_null() {
        let mut full = HmError { code, os_error: failure.os_error(), pid: failure.pid(), text_len: 0, text: [0; 1008] };
        let mut cut = Cut { text: &mut full.text, len: 0, is_full: false };
        let _ = write!(cut, "{failure}");
        full.text_len = cut.len as u32;
        // SAFETY: not NULL, so the caller's to write.
        unsafe { error.write(full) };
    }
    if let Failure::Panic(payload) = failure {
        // Its destructor is foreign code, which might panic in turn.
        std::mem::forget(payload);
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank() -> HmError {
        HmError { code: 0, os_error: 0, pid: 0, text_len: 7, text: [1; 1008] }
    }

    fn text(error: &HmError) -> String {
        let bytes = error.text[..error.text_len as usize].iter().map(|c| *c as u8).collect();
        assert_eq!(error.text[error.text_len as usize], 0);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_panic_stays_inside() {
        let mut error = blank();
        // SAFETY: `error` is ours.
        let code = unsafe { guard(&mut error, || panic!("number {}", 7)) };
        assert_eq!((code, error.code), (result::INTERNAL, result::INTERNAL));
        assert!(text(&error).ends_with("number 7"));
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { guard(std::ptr::null_mut(), || panic!("again")) }, result::INTERNAL);
    }

    #[test]
    fn a_payload_whose_drop_panics_stays_inside() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        // SAFETY: NULL is allowed.
        let code = unsafe { guard(std::ptr::null_mut(), || std::panic::resume_unwind(Box::new(Bomb))) };
        assert_eq!(code, result::INTERNAL);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut error = blank();
        let name = "ä".repeat(2000);
        // SAFETY: `error` is ours.
        let code = unsafe { guard(&mut error, || Err(OpenError::BadName { name, reason: "long" }.into())) };
        assert_eq!(code, 7);
        assert_eq!(text(&error).len(), 1007);
    }

    #[test]
    fn success_leaves_the_error_alone() {
        let mut error = blank();
        // SAFETY: `error` is ours.
        assert_eq!(unsafe { guard(&mut error, || Ok(-3)) }, -3);
        assert_eq!((error.code, error.text_len), (0, 7));
    }

    #[test]
    fn the_message_of_the_system_is_returned() {
        let mut error = blank();
        let source = std::io::Error::from_raw_os_error(28);
        // SAFETY: `error` is ours.
        unsafe { guard(&mut error, || Err(WriteError::NoSpace(source).into())) };
        assert_eq!((error.code, error.os_error, error.pid), (12, 28, 0));
        let busy = WriteError::Busy { pid: 77, holder: "x".into(), waited: std::time::Duration::from_secs(1) };
        // SAFETY: `error` is ours.
        unsafe { guard(&mut error, || Err(busy.into())) };
        assert_eq!((error.code, error.os_error, error.pid), (32, 0, 77));
    }
}
