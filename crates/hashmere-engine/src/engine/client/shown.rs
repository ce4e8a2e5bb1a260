//! Keys that this thread is showing to a function of the caller's ([`update`](Engine::update)).
//!
//! Such a function may use the store. If it wrote the very key that it was called with, its result would come too
//! late each time, and it would be called again without end; so such a write is refused. The hot path does not check
//! for this: while a function runs, the thread's own writer counts as taken, and only a write that finds it so looks
//! here.

use crate::engine::client::writer::WriterGuard;
use crate::engine::{Engine, KeyHash};
use crate::error::WriteError;
use hashmere_mem::{Host, Mem};
use std::cell::RefCell;

/// A key that is being shown: of which engine of this process, and what it is.
struct Shown {
    engine: usize,
    hash: KeyHash,
    key: Box<[u8]>,
}

thread_local! {
    static SHOWN: RefCell<Vec<Shown>> = const { RefCell::new(Vec::new()) };
}

/// Says that this thread shows a key, as long as it is kept.
pub(crate) struct Showing<'a> {
    /// This thread's own writer, so that its writes come by [`Engine::refuse_shown`].
    _writer: Option<WriterGuard<'a>>,
}

impl Drop for Showing<'_> {
    fn drop(&mut self) {
        // One that was shown later is done with earlier.
        let _ = SHOWN.try_with(|shown| shown.borrow_mut().pop());
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// From now on this thread shows a key.
    pub(crate) fn show(&self, key: &[u8], hash: KeyHash) -> Showing<'_> {
        SHOWN.with_borrow_mut(|shown| shown.push(Shown { engine: self.address(), hash, key: key.into() }));
        Showing { _writer: self.take_own_writer() }
    }

    /// Refuses to write what is being shown by this thread: one of these keys.
    #[cold]
    pub(in crate::engine) fn refuse_shown<'k>(
        &self,
        mut keys: impl Iterator<Item = (&'k [u8], KeyHash)>,
    ) -> Result<(), WriteError> {
        SHOWN.with_borrow(|shown| {
            let is_shown = |(key, hash): (&[u8], KeyHash)| {
                shown.iter().any(|s| s.engine == self.address() && s.hash == hash && *s.key == *key)
            };
            match keys.find(|name| is_shown(*name)) {
                None => Ok(()),
                Some((key, _)) => Err(WriteError::Reentered { key: String::from_utf8_lossy(key).into() }),
            }
        })
    }

    /// The same for all keys at once.
    #[cold]
    pub(in crate::engine) fn refuse_if_showing(&self) -> Result<(), WriteError> {
        SHOWN.with_borrow(|shown| match shown.iter().find(|s| s.engine == self.address()) {
            None => Ok(()),
            Some(s) => Err(WriteError::Reentered { key: String::from_utf8_lossy(&s.key).into() }),
        })
    }
}
