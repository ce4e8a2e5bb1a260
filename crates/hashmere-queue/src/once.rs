//! Computing a value once for all processes.

use crate::error::QueueError;
use crate::mutex::Mutex;
use hashmere::Store;
use std::time::Duration;

/// What stands before a key in the key of its lease.
const LEASE: &[u8] = b"\0once\0";

/// The value of a key; if there is none, `compute` makes it, in one process at a time, and it is stored. The others wait for it. If
/// the one that computes dies, or `compute` fails, the next one does it. `Ok(None)`: somebody alive was computing all the time.
///
/// # Errors
/// The store's, and what `compute` returns.
pub fn once<E: From<QueueError>>(
    store: &Store,
    key: &[u8],
    timeout: Duration,
    compute: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<Option<Vec<u8>>, E> {
    let get = || store.get(key).map_err(|error| E::from(error.into()));
    if let Some(value) = get()? {
        return Ok(Some(value));
    }
    let lease = Mutex::new(store, &[LEASE, key].concat())?;
    let held = lease.lock(timeout)?;
    // Somebody else may have made it meanwhile.
    if let Some(value) = get()? {
        return Ok(Some(value));
    }
    if held.is_none() {
        return Ok(None);
    }
    let value = compute()?;
    store.set(key, &value).map_err(|error| E::from(error.into()))?;
    Ok(Some(value))
}
