//! Deleting, for the text and the binary protocol.

use crate::turn::Turn;
use crate::watch::requests;

/// Deletes a key, and counts that.
pub fn delete(turn: &Turn<'_>, key: &[u8]) -> Result<bool, hashmere::WriteError> {
    let size = requests::size_if_watched(turn, key);
    let deleted = turn.server.store.delete(key)?;
    if deleted {
        turn.counters.delete_hits.add(1);
        requests::deleted(turn, key, "delete", size);
    } else {
        turn.counters.delete_misses.add(1);
        turn.missed(key);
    }
    Ok(deleted)
}
