//! Reading into a reply: what goes before a value, then the value, into one buffer without another copy.

use crate::engine::{Ahead, Fetched, Found, KeyHash, Lookahead, BATCH, PIN_FROM};
use crate::error::ReadError;
use crate::fork_handle::SharedEngine;
use crate::types::Metadata;
use crate::view::View;
use hashmere_mem::Mem;
use std::sync::Arc;

/// What [`SharedEngine::get_framed`] found.
#[derive(Debug)]
pub enum Framed {
    /// No such key. The buffer is as it was.
    Absent,
    /// The frame and the value are in the buffer.
    Copied(Metadata),
    /// The value is long: the buffer is as it was, and here is a view of it.
    Long(View),
}

impl SharedEngine {
    /// Appends to `buffer` what `frame` puts in front of a value, then the value: for servers that answer from one
    /// buffer. `frame` may be called several times, with the buffer cut back between. A value of more than 32 KiB is
    /// returned as a view instead.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[inline]
    pub fn get_framed(
        self: &Arc<Self>,
        key: &[u8],
        buffer: &mut Vec<u8>,
        frame: impl Fn(&Metadata, &mut Vec<u8>),
    ) -> Result<Framed, ReadError> {
        self.framed((key, self.engine().hash(key)), None, buffer, frame)
    }

    /// The same for any number of keys, with overlapping cache misses. `each` gets the outcome of each key, in order,
    /// and the buffer, to append what follows a value. It ends the call early by returning `false`.
    ///
    /// # Errors
    /// See [`ReadError`]; keys before the one that failed were answered.
    pub fn get_many_framed(
        self: &Arc<Self>,
        keys: &[&[u8]],
        buffer: &mut Vec<u8>,
        frame: impl Fn(&[u8], &Metadata, &mut Vec<u8>),
        mut each: impl FnMut(usize, Framed, &mut Vec<u8>) -> bool,
    ) -> Result<(), ReadError> {
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            let all = self.engine().look_ahead(keys.iter().copied());
            for (i, (key, ahead)) in keys.iter().zip(all.each()).enumerate() {
                let framed = self.framed((key, ahead.hash()), Some((&all, ahead)), buffer, |meta, buffer| {
                    frame(key, meta, buffer);
                })?;
                if !each(batch * BATCH + i, framed, buffer) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn framed(
        self: &Arc<Self>,
        (key, kh): (&[u8], KeyHash),
        ahead: Option<(&Lookahead, &Ahead)>,
        buffer: &mut Vec<u8>,
        frame: impl Fn(&Metadata, &mut Vec<u8>),
    ) -> Result<Framed, ReadError> {
        let engine = self.engine();
        let start = buffer.len();
        let mut take = |found: &Found| {
            buffer.truncate(start);
            if found.header.value_len > PIN_FROM {
                return Ok(Fetched::Long);
            }
            let meta = engine.meta_of_found(found);
            frame(&meta, buffer);
            engine.mem.append_to(found.value(), found.value_len(), buffer);
            engine.visit(found);
            Ok(Fetched::Copied(meta))
        };
        let taken = ahead.and_then(|(all, ahead)| {
            let found = engine.found_ahead(key, ahead)?;
            let taken = take(&found);
            engine.validate(&found, all.epoch).then_some(taken)
        });
        let fetched = match taken {
            Some(taken) => taken.map(Some),
            None => engine.read(key, kh, take),
        };
        let framed = match fetched {
            Ok(Some(Fetched::Copied(meta))) => Framed::Copied(meta),
            Ok(Some(Fetched::Long)) => self.view_of(key, kh)?.map_or(Framed::Absent, Framed::Long),
            Ok(None) => Framed::Absent,
            Err(error) => {
                buffer.truncate(start);
                return Err(error);
            }
        };
        if !matches!(framed, Framed::Copied(_)) {
            buffer.truncate(start);
        }
        engine.count_read(!matches!(framed, Framed::Absent), key, kh);
        Ok(framed)
    }
}
