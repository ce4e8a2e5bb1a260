//! Computing a value once for all processes.

use crate::error::QueueError;
use crate::mutex::{Holder, Mutex};
use hashmere_engine::{SharedEngine, StoreHandle};
use hashmere_os::fork;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The prefix of a key in the key of its lease.
const LEASE: &[u8] = b"\0once\0";

/// A value that this thread is computing: of which store and key; in which process, for a forked child computes
/// nothing.
#[derive(PartialEq, Eq)]
struct Computation {
    path: PathBuf,
    key: Vec<u8>,
    born: u64,
}

thread_local! {
    static COMPUTING: RefCell<Vec<Computation>> = const { RefCell::new(Vec::new()) };
}

/// Says that this thread computes the value of a key, as long as it is kept.
struct Computing;

impl Computing {
    fn begin(store: &Arc<SharedEngine>, key: &[u8]) -> Result<Computing, QueueError> {
        let own = Computation { path: store.path().into(), key: key.into(), born: fork::generation() };
        COMPUTING.with_borrow_mut(|all| {
            if all.contains(&own) {
                return Err(QueueError::Reentered { what: "once", key: String::from_utf8_lossy(key).into() });
            }
            all.push(own);
            Ok(Computing)
        })
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        // One that is begun later ends earlier.
        let _ = COMPUTING.try_with(|all| all.borrow_mut().pop());
    }
}

fn lease(store: &Arc<SharedEngine>, key: &[u8]) -> Result<Mutex, QueueError> {
    Mutex::new(store, &[LEASE, key].concat())
}

/// Who computes the value of a key by [`once`], at about this moment.
///
/// # Errors
/// As [`Mutex::holder`].
pub fn once_holder(store: &impl StoreHandle, key: &[u8]) -> Result<Option<Holder>, QueueError> {
    lease(store.shared(), key)?.holder()
}

/// The value of a key; if there is none, `compute` makes it, in one process at a time, and it is stored. The others
/// wait for it. If the one that computes dies, or `compute` fails, the next one does it. `Ok(None)`: a living process
/// was computing all the time: [`once_holder`] says which process.
///
/// # Errors
/// [`Reentered`](QueueError::Reentered) if it is called by `compute` for the same key; the store's, and what `compute`
/// returns.
pub fn once<E: From<QueueError>>(
    store: &impl StoreHandle,
    key: &[u8],
    timeout: Duration,
    compute: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<Option<Vec<u8>>, E> {
    let store = store.shared();
    let get = || store.get(key).map_err(|error| E::from(error.into()));
    if let Some(value) = get()? {
        return Ok(Some(value));
    }
    let _computing = Computing::begin(store, key)?;
    let lease = lease(store, key)?;
    let held = lease.lock(timeout)?;
    // Another process may have made it by now.
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
