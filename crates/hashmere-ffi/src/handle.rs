//! `hm_store`: open stores as C sees them.
//!
//! What a caller holds is a pointer to a *tag*, which is never given back to the allocator: so a call on a store that
//! is closed finds a tag that says so. Closed tags are used again, the longest closed one first, when more than
//! [`QUARANTINE`] are.

use crate::failure::Failure;
use hashmere::Store;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

/// Closed tags that are not yet used again. The header promises it.
const QUARANTINE: usize = 256;

const OPEN: u64 = u64::from_le_bytes(*b"hm_open\0");
const CLOSED: u64 = u64::from_le_bytes(*b"hm_shut\0");

/// `hm_store`.
pub struct HmStore {
    state: AtomicU64,
    store: UnsafeCell<MaybeUninit<Store>>,
}

// SAFETY: `Store` may be shared and sent. The cell is written only by `open`, before any other thread has the pointer,
// and by the one `close` that changes the state.
unsafe impl Sync for HmStore {}

/// Never waited for: in a forked child its owner may be a thread that does not exist there.
static CLOSED_TAGS: Mutex<VecDeque<&'static HmStore>> = Mutex::new(VecDeque::new());

impl HmStore {
    pub(crate) fn open(store: Store) -> &'static HmStore {
        let again = CLOSED_TAGS.try_lock().ok().and_then(|mut tags| {
            let many = tags.len() > QUARANTINE;
            many.then(|| tags.pop_front()).flatten()
        });
        let tag = again.unwrap_or_else(|| {
            let store = UnsafeCell::new(MaybeUninit::uninit());
            Box::leak(Box::new(HmStore { state: AtomicU64::new(CLOSED), store }))
        });
        // SAFETY: the tag is closed and in no other list: it is ours alone, and holds no store.
        unsafe { (*tag.store.get()).write(store) };
        tag.state.store(OPEN, Ordering::Release);
        tag
    }

    /// The store of a tag.
    ///
    /// # Safety
    /// `tag` is NULL, or was returned by [`open`](Self::open); no thread closes it while the result is used.
    #[inline(always)]
    pub(crate) unsafe fn store<'a>(tag: *const HmStore) -> Result<&'a Store, Failure> {
        // SAFETY: a tag is never freed.
        match unsafe { tag.as_ref() } {
            Some(tag) if tag.state.load(Ordering::Acquire) == OPEN => {
                // SAFETY: an open tag holds a store.
                Ok(unsafe { (*tag.store.get()).assume_init_ref() })
            }
            _ => Err(closed(tag)),
        }
    }

    /// Takes the store out of a tag; exactly one of several callers gets it.
    ///
    /// # Safety
    /// As [`store`](Self::store), and no thread uses it.
    pub(crate) unsafe fn close(tag: *const HmStore) -> Result<Store, Failure> {
        // SAFETY: a tag is never freed.
        let Some(shared) = (unsafe { tag.as_ref::<'static>() }) else { return Err(closed(tag)) };
        if shared.state.compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Err(closed(tag));
        }
        // SAFETY: it was open, so it holds a store, and no other thread takes it.
        let store = unsafe { (*shared.store.get()).assume_init_read() };
        if let Ok(mut tags) = CLOSED_TAGS.try_lock() {
            tags.push_back(shared);
        }
        Ok(store)
    }
}

#[cold]
fn closed(tag: *const HmStore) -> Failure {
    if tag.is_null() {
        Failure::Argument("store", "it is NULL; open one with hm_open")
    } else {
        Failure::Closed
    }
}
