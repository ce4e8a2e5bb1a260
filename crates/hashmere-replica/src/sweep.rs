//! What a first copy ends with: the target's keys that the source does not have are deleted.

use crate::error::{At, ReplicaError};
use hashmere::{Cursor, Filter, Key, Pair, Store};

/// Deletes every key of `to` that `from` does not have at the moment at which it is looked up. Returns how many.
pub(crate) fn sweep(from: &Store, to: &Store) -> Result<u64, ReplicaError> {
    let mut deleted = 0;
    for pair in to.scan(Cursor::START, Filter::all().keys_only()) {
        let pair = pair.at(to)?;
        if !from.contains_key(key_of(&pair)).at(from)? && to.delete(key_of(&pair)).at(to)? {
            deleted += 1;
        }
    }
    Ok(deleted)
}

fn key_of(pair: &Pair) -> Key<'_> {
    pair.supplied_hash.map_or(Key::Bytes(&pair.key), |hash| Key::Hashed(&pair.key, hash))
}
