//! Where the list of a transaction is: a short one in the client's own place, a longer one behind the drafts, where
//! nothing is appended before the transaction is over.

use crate::engine::transact::drafts::Drafts;
use crate::engine::{back_error, Engine, Writer};
use crate::error::WriteError;
use hashmere_format::cell::{self, own_list, List};
use hashmere_format::header::PAGE;
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// A list with room for these numbers of cells and locks, with memory behind it.
    #[inline(always)]
    pub(super) fn place_list(
        &self,
        writer: &mut Writer,
        drafts: &mut Drafts,
        cells: u64,
        locks: u64,
    ) -> Result<List, WriteError> {
        let list = List { offset: own_list(writer.slot), cells, locks };
        if writer.has_list && list.bytes() <= cell::BYTES {
            return Ok(list);
        }
        self.make_place(writer, drafts, list)
    }

    #[cold]
    #[inline(never)]
    fn make_place(&self, writer: &mut Writer, drafts: &mut Drafts, list: List) -> Result<List, WriteError> {
        if list.bytes() > cell::BYTES {
            let offset = self.room_behind(writer, drafts, list.bytes())?;
            return Ok(List { offset, ..list });
        }
        if !writer.has_list {
            let first = list.offset & !(PAGE - 1);
            let end = (list.offset + cell::BYTES).next_multiple_of(PAGE);
            self.mem.back(first, end - first).map_err(back_error)?;
            writer.has_list = true;
        }
        Ok(list)
    }
}
