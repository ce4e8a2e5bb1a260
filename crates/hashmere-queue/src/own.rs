//! What a thread took and did not release: a call that would wait for itself is refused.

use crate::error::QueueError;
use hashmere_os::fork;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Something that a thread of this process took: of which file and key, and in which process, for a forked child holds
/// nothing.
#[derive(Debug)]
pub(crate) struct Own {
    what: &'static str,
    file: (u64, u64),
    key: Vec<u8>,
    born: u64,
    released: AtomicBool,
}

thread_local! {
    /// What this thread took and, when it last looked, was not released.
    static OWN: RefCell<Vec<Arc<Own>>> = const { RefCell::new(Vec::new()) };
}

impl Own {
    /// How often this thread holds the lock of a key.
    pub(crate) fn count(what: &str, file: (u64, u64), key: &[u8]) -> usize {
        OWN.with_borrow_mut(|own| {
            own.retain(|o| !o.released.load(Ordering::Relaxed) && o.born == fork::generation());
            own.iter().filter(|o| o.what == what && o.file == file && o.key == key).count()
        })
    }

    pub(crate) fn took(what: &'static str, file: (u64, u64), key: &[u8]) -> Arc<Own> {
        let own = Own { what, file, key: key.into(), born: fork::generation(), released: AtomicBool::new(false) };
        let own = Arc::new(own);
        OWN.with_borrow_mut(|all| all.push(own.clone()));
        own
    }

    /// Notes, from whatever thread, that it was released; false in a forked child, which has nothing to release.
    pub(crate) fn release(&self) -> bool {
        let ours = self.born == fork::generation();
        if ours {
            self.released.store(true, Ordering::Relaxed);
        }
        ours
    }
}

/// The answer to a thread that would wait for itself. Without a time to wait there is no wait.
pub(crate) fn refuse<T>(what: &'static str, key: &[u8], timeout: Duration) -> Result<Option<T>, QueueError> {
    if timeout.is_zero() {
        return Ok(None);
    }
    Err(QueueError::Reentered { what, key: String::from_utf8_lossy(key).into() })
}
