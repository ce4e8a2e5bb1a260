//! Turning the feed of a store on and off, and what it is now.

use crate::error::FeedError;
use hashmere_engine::{FeedInfo, StoreHandle};

/// Makes the store keep about this many bytes of changes, with values or without, for all processes that have it open.
/// A feed that is there stays as it is. Every change that is committed after this has returned is kept.
///
/// # Errors
/// [`InvalidState`](hashmere_engine::WriteError::InvalidState): a feed has 1 MiB to 32 GiB. No room for it. Busy: a
/// process was stopped within a write.
pub fn enable(store: &impl StoreHandle, bytes: u64, values: bool) -> Result<(), FeedError> {
    let engine = store.shared().engine();
    Ok(engine.enable_feed(&mut *engine.writer()?, bytes, values)?)
}

/// Makes the store keep no changes, and gives back what they took. `false`: it kept none.
///
/// # Errors
/// Those of a write.
pub fn disable(store: &impl StoreHandle) -> Result<bool, FeedError> {
    let engine = store.shared().engine();
    Ok(engine.disable_feed(&mut *engine.writer()?)?)
}

/// The feed of a store; `None`: it keeps no changes.
pub fn info(store: &impl StoreHandle) -> Option<FeedInfo> {
    store.shared().engine().feed_info()
}
