//! Reading into memory that the caller provides, without a `Vec`.

use crate::engine::{Found, KeyHash, Probe, PIN_FROM};
use crate::error::ReadError;
use crate::fork_handle::SharedEngine;
use crate::open::FileEngine;
use crate::view::View;
use hashmere_mem::Mem;
use std::sync::Arc;

impl SharedEngine {
    /// Copies a value to the start of `buffer` if it fits, and answers what `answer` makes of its record, or
    /// `answer_long` of a view of it.
    ///
    /// # Errors
    /// See [`ReadError`].
    // Looks, copies and proves with everything in registers; what does not end well at once is done again from the
    // start.
    #[inline(always)]
    pub fn copy_hashed<R>(
        self: &Arc<Self>,
        engine: &FileEngine,
        key: &[u8],
        kh: KeyHash,
        buffer: &mut [u8],
        answer: impl Fn(&FileEngine, &Found) -> R,
        answer_long: impl Fn(&View) -> R,
    ) -> Result<Option<R>, ReadError> {
        match engine.probe(key, kh) {
            Probe::At(found, epoch) if found.header.value_len <= PIN_FROM => {
                if let Some(room) = buffer.get_mut(..found.value_len()) {
                    engine.mem.read(found.value(), room);
                    engine.visit(&found);
                }
                let answer = answer(engine, &found);
                if engine.validate(&found, epoch) {
                    engine.count_read(true, key, kh);
                    return Ok(Some(answer));
                }
            }
            Probe::Absent => {
                engine.count_read(false, key, kh);
                return Ok(None);
            }
            _ => {}
        }
        self.copy_slowly(engine, key, kh, buffer, answer, answer_long)
    }

    #[cold]
    #[inline(never)]
    fn copy_slowly<R>(
        self: &Arc<Self>,
        engine: &FileEngine,
        key: &[u8],
        kh: KeyHash,
        buffer: &mut [u8],
        answer: impl Fn(&FileEngine, &Found) -> R,
        answer_long: impl Fn(&View) -> R,
    ) -> Result<Option<R>, ReadError> {
        // The inner `None`: it fits, but copying takes so long that it needs a pin.
        let copied = engine.read_by_generation(key, kh, &mut |found| {
            if let Some(room) = buffer.get_mut(..found.value_len()) {
                if found.header.value_len > PIN_FROM {
                    return Ok(None);
                }
                engine.mem.read(found.value(), room);
                engine.visit(found);
            }
            Ok(Some(answer(engine, found)))
        })?;
        engine.count_read(copied.is_some(), key, kh);
        match copied {
            None => Ok(None),
            Some(Some(answer)) => Ok(Some(answer)),
            Some(None) => {
                let Some(view) = self.view_of(key, kh)? else { return Ok(None) };
                if let Some(room) = buffer.get_mut(..view.len()) {
                    room.copy_from_slice(&view);
                }
                Ok(Some(answer_long(&view)))
            }
        }
    }
}
