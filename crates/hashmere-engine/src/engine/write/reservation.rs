//! The commit of a reservation: a draft whose value its writer cannot give a second time.

use crate::engine::write::draft::When;
use crate::engine::{Decision, Draft, Engine, KeyHash, Outcome, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use crate::types::Uid;
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// Commits the draft of a reservation, and again after making room when the index had none to grow. Its caller
    /// cannot write the value again, so it is kept outside the file for that time: what moves to make room goes where a
    /// draft is.
    ///
    /// With `only` the key must be there and have that UID: a reservation for an entry does not create its key again.
    pub(crate) fn finish_reserved(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        mut draft: Draft,
        only: Option<Uid>,
    ) -> Result<(), WriteError> {
        writer.index_full = false;
        loop {
            self.seal(&draft);
            let mut outcome = match only {
                None => self.put_draft(writer, key, kh, draft, When::Always),
                Some(uid) => self.put_draft_at(writer, key, kh, draft, uid),
            };
            if std::mem::take(&mut writer.index_full) {
                match self.make_index_room(writer, &mut draft) {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(error) => outcome = Err(error),
                }
            }
            return match self.conclude(writer, (key, kh), draft, outcome)? {
                Outcome::Stored => Ok(()),
                Outcome::Kept | Outcome::Removed => Err(WriteError::Stale),
            };
        }
    }

    /// Makes a sealed draft the key's record, if the key has this UID.
    fn put_draft_at(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        draft: Draft,
        uid: Uid,
    ) -> Result<Outcome, WriteError> {
        self.mutate(writer, key, kh, |current| {
            let is_it = |found| self.meta_of_found(found).uid == uid || fault::is(Fault::ReservedForAny);
            Ok(if current.is_some_and(is_it) { Decision::Put(draft) } else { Decision::Keep })
        })
    }

    /// Makes room for the index while a draft waits, which may be elsewhere afterwards. `false`: there is none to be
    /// had.
    #[cold]
    fn make_index_room(&self, writer: &mut Writer, draft: &mut Draft) -> Result<bool, WriteError> {
        if draft.is_large() {
            // Nothing else goes to segments of its own.
            return self.free_for_index(writer);
        }
        let mut bytes = Vec::new();
        self.mem.append_to(draft.offset, draft.bytes as usize, &mut bytes);
        let freed = self.free_for_index(writer)?;
        let offset = self.room(writer, draft.bytes)?;
        self.mem.write(offset, &bytes);
        *draft = Draft { offset, value: offset + (draft.value - draft.offset), ..*draft };
        Ok(freed)
    }
}
