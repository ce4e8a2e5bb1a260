//! Waiting until a key changes.

use crate::engine::client::wait::{group, Seen, SEVERAL};
use crate::engine::Engine;
use crate::error::ReadError;
use crate::types::Version;
use hashmere_format::header::at;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The first sleep; the next ones are twice as long each.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// The longest.
const SLEEP_MAX: Duration = Duration::from_millis(128);

impl<M: Mem, H: Host> Engine<M, H> {
    /// Waits until one of these keys has another version than it was seen with; returns which, and what it has now.
    /// `None`: none had when the time was up.
    pub(crate) fn wait_for_change(
        &self,
        keys: &[Seen],
        timeout: Duration,
    ) -> Result<Option<(usize, Option<Version>)>, ReadError> {
        let groups = keys.iter().fold(0u64, |bits, (_, kh, _)| bits | 1 << group(kh.hash));
        let (bits, event) = match keys.len() {
            1 => (groups, at::EVENTS + 8 * u64::from(groups.trailing_zeros())),
            _ => (groups | 1 << SEVERAL, at::EVENTS + 8 * SEVERAL),
        };
        let start = self.host.monotonic();
        let mut sleep = SLEEP_MIN;
        loop {
            let before = self.mem.load(event, Ordering::Acquire);
            // SYNC(waited): our bit is seen by every writer that changes a key after we have looked at it.
            self.mem.fetch_or(at::WAITED, bits, Ordering::SeqCst);
            self.mem.fence(Ordering::SeqCst);
            for (i, (key, kh, seen)) in keys.iter().enumerate() {
                let now = self.peek(key, *kh)?.map(|meta| meta.version);
                if now != *seen {
                    return Ok(Some((i, now)));
                }
            }
            let left = timeout.saturating_sub(self.host.monotonic().saturating_sub(start));
            if left.is_zero() {
                return Ok(None);
            }
            self.mem.wait(event, before as u32, sleep.min(left));
            sleep = (sleep * 2).min(SLEEP_MAX);
        }
    }
}
