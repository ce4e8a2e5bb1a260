//! Dropping what has expired key by key, wherever it is.
//!
//! Cleaning and eviction drop what has expired where a segment is worth it. That leaves the records in the segments
//! that writers append to, which in a small store are all; so dropping it on request goes through the index.

use crate::engine::{Engine, KeyHash, Writer};
use crate::error::{ReadError, WriteError};
use crate::fault::{self, Fault};
use hashmere_format::feed::Operation;
use hashmere_format::row::Stat;
use hashmere_format::uid::Scan;
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// Removes every key whose time is over. A death leaves some removed and others not: each is a removal like any
    /// other.
    pub(super) fn expire_all(&self, writer: &mut Writer) -> Result<(), WriteError> {
        let mut at = Scan::START;
        while at.tree < 2 {
            let root = self.root_word();
            let step = self.scan_step(root, at, &mut { usize::MAX })?;
            at = step.next;
            let Some((uid, slot_offset, slot)) = step.entry else { continue };
            // One that moves or changes just then is left to the next request.
            let past = self.read_slot(root, uid, slot_offset, slot, |found| {
                if !self.has_expired(found) {
                    return Ok(None);
                }
                let mut key = Vec::new();
                key.try_reserve_exact(found.key_len())
                    .map_err(|_| ReadError::OutOfMemory { bytes: found.key_len() as u64 })?;
                self.mem.append_to(found.key(), found.key_len(), &mut key);
                Ok(Some((key, self.supplied_with(found), found.record)))
            })?;
            if let Some(Some((key, supplied, record))) = past {
                let kh = supplied.map_or_else(|| self.hash(&key), |hash| KeyHash { hash, is_supplied: true });
                self.expire_record(writer, &key, kh, record)?;
            }
        }
        Ok(())
    }

    /// Removes a key if this record is still what it has, and its time is still over.
    fn expire_record(&self, writer: &mut Writer, key: &[u8], kh: KeyHash, record: u64) -> Result<(), WriteError> {
        let done = self.mutate_record(writer, (key, kh), record, |engine, writer, root, found, held| {
            // As it is now, under the lock: it may have been touched.
            if engine.has_expired(found) || fault::is(Fault::PastBelieved) {
                engine.commit_removal(writer, root, found, held, Operation::Expire);
                engine.count_at(writer.row, Stat::Expired, 1);
            }
        });
        self.leave(writer);
        done
    }
}
