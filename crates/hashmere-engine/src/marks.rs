//! Marks: what several readers agree on about a key, such as who computes it again. For the front ends, whose clients
//! share them.

use crate::error::WriteError;
use crate::fork_handle::SharedEngine;
use crate::types::{Attributes, Item, Metadata, Stored, Ttl};

/// The mark of a value that a replicator between two sites applied. It is none of a front end's.
pub const APPLIED: u32 = 1 << 5;

impl SharedEngine {
    /// Stores a value with flags, expiry and *marks* if the key is still as it was `seen` (`None`: absent). `None`:
    /// another writer changed it.
    ///
    /// Marks are 32 bits beside the flags, seen by every process in [`Metadata::marks`]. Any other write of the key
    /// clears them; a touch keeps them. They say something about one value of the key: that it is stale, or that a
    /// process is computing the next one.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn set_marked(
        &self,
        key: &[u8],
        value: &[u8],
        attributes: Attributes,
        marks: u32,
        seen: Option<&Metadata>,
    ) -> Result<Option<Stored>, WriteError> {
        self.set_marked_as((key, None), value, attributes, marks, seen)
    }

    /// The same for a key and the hash that was supplied with it.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn set_marked_as(
        &self,
        (key, supplied): (&[u8], Option<u64>),
        value: &[u8],
        attributes: Attributes,
        marks: u32,
        seen: Option<&Metadata>,
    ) -> Result<Option<Stored>, WriteError> {
        let engine = self.engine();
        let kh = supplied.map_or_else(|| engine.hash(key), |hash| engine.supplied(hash));
        let mut writer = engine.writer_for(key, kh)?;
        engine.store_marked(&mut writer, (key, kh), value, (attributes, marks), seen, false)
    }

    /// Gives a key other marks, if it is still the item that was seen; value, flags, expiry and version stay. Of
    /// several that saw the same item, one succeeds.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn remark(&self, key: &[u8], item: &Item, marks: u32) -> Result<bool, WriteError> {
        self.remark_with_ttl(key, item, marks, item.metadata.expires_at_ms.map_or(Ttl::Never, Ttl::At))
    }

    /// The same, with another expiry.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn remark_with_ttl(&self, key: &[u8], item: &Item, marks: u32, ttl: Ttl) -> Result<bool, WriteError> {
        let engine = self.engine();
        let name = (key, engine.hash(key));
        let mut writer = engine.writer_for(name.0, name.1)?;
        let attributes = Attributes { flags: item.metadata.flags, ttl, ..Attributes::NONE };
        let stored =
            engine.store_marked(&mut writer, name, &item.value, (attributes, marks), Some(&item.metadata), true)?;
        Ok(stored.is_some())
    }
}
