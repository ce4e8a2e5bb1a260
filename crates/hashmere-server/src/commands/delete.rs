//! Deleting, for the text and the binary protocol.

use super::lease;
use crate::turn::Turn;
use crate::watch::requests;

/// Deletes a key, and counts that.
pub fn delete(turn: &Turn<'_>, key: &[u8]) -> Result<bool, hashmere::WriteError> {
    let size = requests::size_if_watched(turn, key);
    let was_placeholder = lease::is_placeholder(turn, key);
    // The lease goes too: what its holder computed is not to be stored.
    let deleted = turn.server.store.delete(key)? && !was_placeholder;
    if deleted {
        turn.counters.delete_hits.add(1);
        requests::deleted(turn, key, "delete", size);
    } else {
        turn.counters.delete_misses.add(1);
        turn.missed(key);
    }
    Ok(deleted)
}
