//! Dropping large records: each is a segment's only one, so with its key go its segments.

use crate::engine::{Engine, Found, Writer};
use crate::error::WriteError;
use hashmere_format::feed::Operation;
use hashmere_format::row::Stat;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};

/// Which large records are to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Lot {
    /// Those that have expired.
    Expired,
    /// And those that were not visited; the others lose their mark (cache mode only).
    Unvisited,
    /// All of them.
    Any,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Removes the key of a large record, if this is its lot.
    pub(in crate::engine) fn drop_large(
        &self,
        writer: &mut Writer,
        segment: u64,
        whose: Lot,
    ) -> Result<(), WriteError> {
        let record = self.segment_offset(segment);
        let generation = self.generation(segment);
        let Some((head, key_offset)) = self.parse(record) else { return Ok(()) };
        let mut key = Vec::new();
        self.mem.append_to(key_offset, head.key_len as usize, &mut key);
        let kh = self.hash_of(&head, &key);
        let (mut referred, mut evicted) = (false, None);
        self.mutate_record(writer, (&key, kh), record, |engine, writer, root, found, held| {
            referred = true;
            let expired = engine.has_expired(found);
            let goes = match whose {
                Lot::Expired => false,
                Lot::Unvisited => !engine.use_up_mark(found),
                Lot::Any => true,
            };
            if expired || goes {
                let operation = if expired { Operation::Expire } else { Operation::Evict };
                engine.commit_removal(writer, root, found, held, operation);
                engine.count_at(writer.row, if expired { Stat::Expired } else { Stat::Evicted }, 1);
                evicted = if expired { None } else { engine.describe_evicted(found) };
            } else {
                engine.note_expiry(segment, found);
            }
        })?;
        self.note_evicted(&key, evicted);
        if !referred {
            self.give_up_large(writer.slot, segment, generation);
        }
        Ok(())
    }

    /// The entry of a large record says what the record does: it may have been touched, and shall not be looked at in
    /// vain again and again. Needs the key's lock.
    fn note_expiry(&self, segment: u64, found: &Found) {
        let expires = self.expiry_of(found);
        self.set_field(segment, segment::at::EXPIRE_MIN, expires.unwrap_or(u64::MAX));
        self.set_field(segment, segment::at::EXPIRE_MAX, expires.unwrap_or(0));
    }

    /// Nothing leads to this large record: the writer that superseded it died before it counted that. It may have been
    /// freed and filled again since it was of this generation.
    fn give_up_large(&self, slot: u32, segment: u64, generation: u64) {
        let word = self.state(segment);
        let mine = Word { state: State::Cleaning, owner: slot + 1, ..word };
        if word.state == State::Large && self.change_state(segment, word, mine) {
            if self.generation(segment) == generation {
                self.set_field(segment, segment::at::DEAD, 1);
            }
            self.set_state(segment, word);
        }
    }
}
