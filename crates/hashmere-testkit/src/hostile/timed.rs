//! Calls that must not take too long.

use crate::limits::{now_ns, queued_ns};

/// No call may take longer, on a machine that is busy. (What a file can make endless takes minutes.)
const CALL_NS: u64 = 20_000_000_000;

/// Makes a call, which must not take too long. Waiting for a processor does not count.
pub(super) fn timed<R>(what: &str, call: impl FnOnce() -> R) -> R {
    let begin = now_ns() - queued_ns();
    let result = call();
    let took = now_ns().saturating_sub(queued_ns()).saturating_sub(begin);
    assert!(took < CALL_NS, "{what} took {} ms", took / 1_000_000);
    result
}
