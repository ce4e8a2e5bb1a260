//! What a first copy ends with: the target's keys that the source does not have are deleted.

use crate::error::{At, ReplicaError};
use hashmere::{Cursor, Filter, Key, Pair, Store};

/// Deletes every key of a store that is to have none but these.
pub(crate) fn sweep(to: &Store, has: impl Fn(&Pair) -> Result<bool, ReplicaError>) -> Result<(), ReplicaError> {
    for pair in to.scan(Cursor::START, Filter::all().keys_only()) {
        let pair = pair.at(to)?;
        if !has(&pair)? {
            to.delete(key_of(&pair)).at(to)?;
        }
    }
    Ok(())
}

/// The key of a pair.
pub(crate) fn key_of(pair: &Pair) -> Key<'_> {
    pair.supplied_hash.map_or(Key::Bytes(&pair.key), |hash| Key::Hashed(&pair.key, hash))
}
