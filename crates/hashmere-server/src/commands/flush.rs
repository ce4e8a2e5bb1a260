//! Removing everything, at once or later.

use crate::protocol::exptime;
use crate::server::now_ms;
use crate::turn::Turn;
use std::sync::atomic::Ordering;

/// Removes everything, now or after a delay (or at a time, if it is above 30 days).
pub fn flush(turn: &Turn<'_>, delay: i64) -> Result<(), hashmere::WriteError> {
    turn.counters.cmd_flush.add(1);
    let now = now_ms();
    match exptime::deadline(exptime::ttl(delay), now) {
        Some(at) if at > now => {
            turn.server.flush_at.store(at, Ordering::Relaxed);
            Ok(())
        }
        _ => turn.server.flush(),
    }
}
