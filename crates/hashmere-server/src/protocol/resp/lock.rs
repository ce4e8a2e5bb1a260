//! Locks of what connections share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock; what a thread left that failed within it is still a value.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
