//! Reading into memory that the caller makes once it knows how much: for bindings, whose values are objects of a
//! language.

use crate::engine::{Fetched, PIN_FROM};
use crate::error::ReadError;
use crate::fork_handle::SharedEngine;
use crate::view::View;
use hashmere_mem::Mem;
use std::sync::Arc;

/// What [`SharedEngine::get_in`] found.
#[derive(Debug)]
pub enum Roomed<B> {
    /// No such key.
    Absent,
    /// The value is in this room.
    Copied(B),
    /// The value is long, and here is a view of it.
    Long(View),
}

impl SharedEngine {
    /// Copies a value into the buffer that `room` returns for its length, without a copy between. Now and then it is
    /// asked a second time, and what it returned the first time is dropped. A value of more than 32 KiB is returned as
    /// a view instead.
    ///
    /// # Errors
    /// [`ReadError::OutOfMemory`] if `room` returns none, or room of another length. Otherwise see [`ReadError`].
    #[inline]
    pub fn get_in<B: AsMut<[u8]>>(
        self: &Arc<Self>,
        key: &[u8],
        mut room: impl FnMut(usize) -> Option<B>,
    ) -> Result<Roomed<B>, ReadError> {
        let engine = self.engine();
        let kh = engine.hash(key);
        let mut made = None;
        let fetched = engine.read(key, kh, |found| {
            let len = found.header.value_len;
            if len > PIN_FROM {
                return Ok(Fetched::Long);
            }
            let refused = ReadError::OutOfMemory { bytes: len };
            let Some(bytes) = room(len as usize) else { return Err(refused) };
            let bytes = made.insert(bytes).as_mut();
            if bytes.len() as u64 != len {
                return Err(refused);
            }
            engine.mem.read(found.value(), bytes);
            engine.visit(found);
            Ok(Fetched::Copied(()))
        })?;
        engine.count_read(fetched.is_some(), key, kh);
        Ok(match (fetched, made) {
            (Some(Fetched::Copied(())), Some(made)) => Roomed::Copied(made),
            (Some(Fetched::Long), _) => self.view_of(key, kh)?.map_or(Roomed::Absent, Roomed::Long),
            _ => Roomed::Absent,
        })
    }
}
