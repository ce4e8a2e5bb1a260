//! Large records: segments of their own, in a row, so that a view of one is one slice.

use crate::engine::log::segments::Memory;
use crate::engine::{Draft, Engine, KeyHash, Writer};
use crate::error::WriteError;
use hashmere_format::header::RootWord;
use hashmere_format::record::Head;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// Writes head and key of a large record in fresh segments.
    #[cold]
    pub(super) fn draft_large(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        head: Head,
        bytes: u64,
    ) -> Result<Draft, WriteError> {
        self.refuse_if_poisoned()?;
        let n = bytes.div_ceil(self.segment_bytes());
        let segment = self.claim_extent(writer, n)?;
        let offset = self.segment_offset(segment);
        self.set_field(segment, segment::at::BORN, RootWord::unpack(self.root()).generation);
        self.set_field(segment, segment::at::DEAD, 0);
        self.set_field(segment, segment::at::USED, bytes);
        self.set_field(segment, segment::at::EXPIRE_MIN, head.expires.unwrap_or(u64::MAX));
        self.set_field(segment, segment::at::EXPIRE_MAX, head.expires.unwrap_or(0));
        self.set_field(segment, segment::at::EXPIRING, if head.expires.is_some() { bytes } else { 0 });
        if let Some(expires) = head.expires {
            self.lower(hashmere_format::header::at::NEXT_EXPIRY, expires);
        }
        let draft = self.write_head(offset, key, kh, head, true);
        Ok(draft)
    }

    /// After its commit a large record has no owner.
    #[cold]
    pub(in crate::engine) fn finish_large(&self, draft: &Draft, root: u64) {
        let segment = self.segment_of(draft.offset);
        self.set_field(segment, segment::at::USED, draft.bytes);
        self.set_field(segment, segment::at::BORN, RootWord::unpack(root).generation);
        let word = self.state(segment);
        self.set_state(segment, Word { state: State::Large, owner: 0, ..word });
    }

    /// Gives a draft up.
    pub(crate) fn abandon(&self, writer: &Writer, draft: &Draft) {
        if draft.is_large() {
            let segment = self.segment_of(draft.offset);
            self.free(segment, u64::from(self.state(segment).length), writer.slot, Memory::All);
        }
    }

    /// Frees a large record that was superseded, unless another client is freeing it already.
    pub(in crate::engine) fn reclaim_large(&self, segment: u64, slot: u32) -> Result<bool, WriteError> {
        let word = self.state(segment);
        let is_dead = || self.field(segment, segment::at::DEAD) != 0 || self.is_stale(segment);
        if word.state != State::Large || !is_dead() {
            return Ok(false);
        }
        if !self.change_state(segment, word, Word { state: State::Cleaning, owner: slot + 1, ..word }) {
            return Ok(false);
        }
        // Between the look and the claim it may have been freed and filled with another record of the same length.
        if !is_dead() {
            self.set_state(segment, word);
            return Ok(false);
        }
        if self.layout.is_durable() {
            self.stamp(self.segment_offset(segment));
        }
        self.free_records(segment, slot)
    }
}
