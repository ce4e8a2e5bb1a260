//! Reading one key of an open store: a copy of the value, long ones under a pin; or a view of it.

use crate::engine::{Fetched, Found, KeyHash, Showing};
use crate::error::ReadError;
use crate::fork_handle::SharedEngine;
use crate::open::FileEngine;
use crate::types::{Item, Metadata};
use crate::view::View;
use hashmere_mem::Mem;
use std::sync::Arc;

impl FileEngine {
    /// A copy of the key of a record.
    #[inline]
    pub fn key_of(&self, found: &Found) -> Vec<u8> {
        let mut key = Vec::with_capacity(found.key_len());
        self.mem.append_to(found.key(), found.key_len(), &mut key);
        key
    }

    /// A copy of its value.
    ///
    /// # Errors
    /// [`ReadError::OutOfMemory`].
    #[inline]
    pub fn value_of(&self, found: &Found) -> Result<Vec<u8>, ReadError> {
        let (mut value, len) = (Vec::new(), found.value_len());
        value.try_reserve_exact(len).map_err(|_| ReadError::OutOfMemory { bytes: len as u64 })?;
        self.append_value(found, &mut value);
        Ok(value)
    }

    /// Copies its value to the end of a buffer.
    #[inline(always)]
    pub fn append_value(&self, found: &Found, buffer: &mut Vec<u8>) {
        self.mem.append_to(found.value(), found.value_len(), buffer);
    }

    /// Copies its value to the start of a buffer, if it fits.
    #[inline]
    pub fn copy_value(&self, found: &Found, buffer: &mut [u8]) -> bool {
        let Some(room) = buffer.get_mut(..found.value_len()) else { return false };
        self.mem.read(found.value(), room);
        true
    }

    /// Copies its key to the start of a buffer, if it fits.
    #[inline]
    pub fn copy_key(&self, found: &Found, buffer: &mut [u8]) {
        if let Some(room) = buffer.get_mut(..found.key_len()) {
            self.mem.read(found.key(), room);
        }
    }
}

impl SharedEngine {
    /// Copies a value to the end of a buffer; `false` on a miss.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[inline(always)]
    pub fn fetch_bytes(
        self: &Arc<Self>,
        engine: &FileEngine,
        key: &[u8],
        kh: KeyHash,
        buffer: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        match engine.fetch(key, kh, buffer, |_| ())? {
            None => Ok(false),
            Some(Fetched::Copied(())) => Ok(true),
            Some(Fetched::Long) => Ok(self.fetch_long(key, kh, buffer)?.is_some()),
        }
    }

    /// The value of a key with the rest of the item.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn item(self: &Arc<Self>, key: &[u8], kh: KeyHash) -> Result<Option<Item>, ReadError> {
        let mut value = Vec::new();
        Ok(self.fetch(key, kh, &mut value)?.map(|metadata| Item { value, metadata }))
    }

    /// Copies a value to the end of a buffer, long ones under a pin, and returns the rest of the item.
    fn fetch(self: &Arc<Self>, key: &[u8], kh: KeyHash, buffer: &mut Vec<u8>) -> Result<Option<Metadata>, ReadError> {
        let engine = self.engine();
        match engine.fetch(key, kh, buffer, |found| engine.meta_of_found(found))? {
            None => Ok(None),
            Some(Fetched::Copied(meta)) => Ok(Some(meta)),
            Some(Fetched::Long) => self.fetch_long(key, kh, buffer),
        }
    }

    #[cold]
    fn fetch_long(
        self: &Arc<Self>,
        key: &[u8],
        kh: KeyHash,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Metadata>, ReadError> {
        let Some(view) = self.view_of(key, kh)? else { return Ok(None) };
        let bytes = view.len();
        buffer.try_reserve_exact(bytes).map_err(|_| ReadError::OutOfMemory { bytes: bytes as u64 })?;
        buffer.extend_from_slice(&view);
        Ok(Some(view.metadata()))
    }

    /// A view of the value of a key where it is stored, without a copy: see [`View`]. Nothing is counted.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[inline(always)]
    pub fn view_of(self: &Arc<Self>, key: &[u8], kh: KeyHash) -> Result<Option<View>, ReadError> {
        let engine = self.engine();
        match engine.show_key(key, kh) {
            Showing::Pinned(found, pin, root) => {
                engine.visit(&found);
                Ok(Some(View::pinned(self, engine, pin, (&found, root), engine.meta_of_found(&found))))
            }
            Showing::Copied(found, epoch) => {
                let bytes = engine.value_of(&found)?;
                engine.visit(&found);
                if engine.validate(&found, epoch) {
                    return Ok(Some(View::owned(self, bytes, kh, engine.meta_of_found(&found))));
                }
                self.view_slowly(engine, key, kh)
            }
            Showing::Absent => Ok(None),
            Showing::Unsure => self.view_slowly(engine, key, kh),
        }
    }

    #[cold]
    #[inline(never)]
    fn view_slowly(self: &Arc<Self>, engine: &FileEngine, key: &[u8], kh: KeyHash) -> Result<Option<View>, ReadError> {
        let mut exhausted = engine.access.read_only;
        loop {
            let root = engine.root_word();
            let seen = engine.read(key, kh, |found| {
                if !exhausted && !found.header.is_value_first() {
                    return Ok((*found, None));
                }
                // A copy by generation: as good as a view, only not free of charge.
                let bytes = engine.value_of(found)?;
                engine.visit(found);
                Ok((*found, Some(View::owned(self, bytes, kh, engine.meta_of_found(found)))))
            })?;
            let found = match seen {
                None => return Ok(None),
                Some((_, Some(copied))) => return Ok(Some(copied)),
                Some((found, None)) => found,
            };
            if let Some(pin) = engine.pin(found.slot_offset, found.slot, root, &mut exhausted) {
                // Between the look and the pin the slot may have gone elsewhere and come back: what counts is what is
                // there now, and stays.
                let again = engine.look_again(&found, key, kh).filter(|found| !found.header.is_value_first());
                let Some(found) = again else {
                    engine.unpin(pin);
                    continue;
                };
                engine.visit(&found);
                return Ok(Some(View::pinned(self, engine, pin, (&found, root), engine.meta_of_found(&found))));
            }
        }
    }
}
