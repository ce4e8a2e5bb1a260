//! New expiries, for all three protocols.

use super::lease;
use crate::protocol::exptime;
use crate::turn::Turn;
use crate::watch::requests;
use hashmere::{Item, WriteError};

/// Gives a key a new expiry, and counts that.
pub fn touch(turn: &Turn<'_>, key: &[u8], exptime: i64) -> Result<bool, WriteError> {
    let touched = !lease::is_placeholder(turn, key) && turn.server.store.touch(key, exptime::ttl(exptime))?;
    turn.counters.cmd_touch.add(1);
    if touched {
        turn.counters.touch_hits.add(1);
    } else {
        turn.counters.touch_misses.add(1);
        turn.missed(key);
    }
    Ok(touched)
}

/// Notes an access of a key whose UID is not at hand.
pub fn note_key(turn: &Turn<'_>, key: &[u8], fetched: bool) {
    if let Ok(Some(meta)) = turn.server.store.metadata(key) {
        turn.note(meta.uid, fetched);
    }
}

/// Gives a key a new expiry and fetches it, with the counting that goes with it.
pub fn touch_and_fetch(turn: &Turn<'_>, key: &[u8], exptime: i64) -> Result<Option<Item>, WriteError> {
    let item = match lease::is_placeholder(turn, key) {
        true => None,
        false => turn.server.store.get_and_touch(key, exptime::ttl(exptime))?,
    };
    let counters = turn.counters;
    counters.cmd_touch.add(1);
    counters.cmd_get.add(1);
    requests::fetched(turn, key, item.is_some());
    turn.server.detail.fetched(key, item.is_some());
    if let Some(item) = &item {
        counters.touch_hits.add(1);
        counters.get_hits.add(1);
        turn.note(item.metadata.uid, true);
    } else {
        counters.touch_misses.add(1);
        counters.get_misses.add(1);
        turn.missed(key);
    }
    Ok(item)
}
