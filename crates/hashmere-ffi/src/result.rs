//! The numbers of the header that are not the engine's own, and the names of all.

use std::ffi::{c_char, c_int};

/// Done; yes.
pub const OK: c_int = 0;
/// There is no such key or store.
pub const ABSENT: c_int = -1;
/// The key is there already.
pub const EXISTS: c_int = -2;
/// The key is not as expected.
pub const MISMATCH: c_int = -3;
/// The buffer is too small.
pub const BUFFER_TOO_SMALL: c_int = -4;
/// The scan is finished.
pub const END: c_int = -5;
/// The visitor left the key as it was.
pub const UNCHANGED: c_int = -6;
/// The key was removed: by the visitor, or while it was waited for.
pub const REMOVED: c_int = -7;

/// The queue has reached its bound.
pub const QUEUE_FULL: c_int = -8;

/// What was waited for has not happened within the time.
pub const TIMEOUT: c_int = -10;

/// No line was logged.
pub const SKIPPED: c_int = -9;

/// An argument is not allowed.
pub const ARGUMENT: c_int = 100;
/// The store is closed.
pub const CLOSED: c_int = 101;
/// A panic was caught.
pub const INTERNAL: c_int = 102;

/// The version, as the header reckons it.
const VERSION: u32 = {
    const fn number(text: &str) -> u32 {
        let digits = text.as_bytes();
        let (mut at, mut n) = (0, 0);
        while at < digits.len() {
            n = n * 10 + (digits[at] - b'0') as u32;
            at += 1;
        }
        n
    }
    10_000 * number(env!("CARGO_PKG_VERSION_MAJOR"))
        + 100 * number(env!("CARGO_PKG_VERSION_MINOR"))
        + number(env!("CARGO_PKG_VERSION_PATCH"))
};

/// See `hashmere.h`.
#[no_mangle]
pub extern "C" fn hm_version() -> u32 {
    VERSION
}

/// See `hashmere.h`.
#[no_mangle]
pub extern "C" fn hm_result_name(result: c_int) -> *const c_char {
    let name = match result {
        OK => c"Ok",
        ABSENT => c"Absent",
        EXISTS => c"Exists",
        MISMATCH => c"Mismatch",
        BUFFER_TOO_SMALL => c"BufferTooSmall",
        END => c"End",
        UNCHANGED => c"Unchanged",
        REMOVED => c"Removed",
        QUEUE_FULL => c"QueueFull",
        SKIPPED => c"Skipped",
        TIMEOUT => c"Timeout",
        1 => c"NotFound",
        2 => c"AlreadyExists",
        3 => c"NotAStore",
        4 => c"OptionMismatch",
        5 => c"BadOption",
        6 => c"TooManyClients",
        7 => c"BadName",
        8 => c"InsecurePermissions",
        9 => c"NotCleanlyClosed",
        10 => c"Io",
        12 => c"NoSpace",
        13 => c"AddressSpace",
        20 => c"Corrupt",
        21 => c"Stale",
        22 => c"OutOfMemory",
        23 => c"BadCursor",
        24 => c"BadPattern",
        25 => c"BadPart",
        30 => c"ReadOnly",
        31 => c"Full",
        32 => c"Busy",
        33 => c"TooLarge",
        34 => c"WrongLength",
        35 => c"NotANumber",
        36 => c"TooManyCollisions",
        37 => c"InvalidState",
        38 => c"Poisoned",
        39 => c"Reentered",
        40 => c"Conflict",
        41 => c"TooManyKeys",
        42 => c"Overflow",
        50 => c"BackupRunning",
        51 => c"BackupAbandoned",
        52 => c"BackupExists",
        60 => c"QueueNotFound",
        61 => c"QueueExists",
        62 => c"QueueBadOption",
        63 => c"QueueTooMany",
        64 => c"QueueTaken",
        65 => c"QueueForked",
        66 => c"QueueRemoved",
        67 => c"QueueOtherPool",
        68 => c"QueueBroken",
        69 => c"QueueReentered",
        70 => c"LogNotFound",
        71 => c"LogBadOption",
        72 => c"LogTooMany",
        73 => c"LogTaken",
        74 => c"LogTooLong",
        75 => c"LogFull",
        76 => c"LogRemoved",
        77 => c"LogOutput",
        78 => c"LogReentered",
        80 => c"FeedOff",
        81 => c"BadToken",
        91 => c"Malformed",
        ARGUMENT => c"Argument",
        CLOSED => c"Closed",
        INTERNAL => c"Internal",
        _ => c"Unknown",
    };
    name.as_ptr()
}
