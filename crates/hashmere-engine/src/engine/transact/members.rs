//! Transactions of a durable store: each record says which transaction it is a member of, and how many there are, so
//! that a rebuild after a power cut takes all of them or none. A deletion has a record too, a *tombstone*, to which no
//! slot leads. `docs/internals/durability.md` has the argument.

use crate::engine::transact::drafts::Drafts;
use crate::engine::{Draft, Engine, KeyHash, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::checksum::NEVER;
use hashmere_format::header::at;
use hashmere_format::member::{Member, NO_PERIOD};
use hashmere_format::record::{field, Head};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// What the members of this writer's next transaction say.
    pub(super) fn member_of_next(&self, writer: &Writer, members: u64) -> Member {
        let number = self.next_status(writer.row).number();
        Member { client: writer.slot, number, is_tombstone: false, members }
    }

    /// The status of a client's next transaction, pending. No number comes again, also after a rebuild.
    pub(super) fn next_status(&self, row: u64) -> hashmere_format::cell::Status {
        let status = self.transaction_status(row);
        let floor = if self.layout.is_durable() { self.mem.load(at::TRANSACTIONS, Ordering::Relaxed) } else { 0 };
        status.above(floor).next()
    }

    /// Writes the record that says that a key was deleted.
    pub(super) fn draft_tombstone(
        &self,
        writer: &mut Writer,
        drafts: &mut Drafts,
        (key, kh): (&[u8], KeyHash),
        member: Member,
    ) -> Result<Draft, WriteError> {
        let value_len = self.layout.fixed.1.map_or(0, u64::from);
        let id = Member { is_tombstone: true, ..member }.pack();
        let head = Head { member: Some((NO_PERIOD, id)), ..Self::plain_head(key, kh, value_len) };
        let draft = self.draft_for_transaction(writer, drafts, (key, kh), head)?;
        self.mem.write(draft.value, &vec![0; value_len as usize]);
        self.seal(&draft);
        Ok(draft)
    }

    /// After everything else: the members say in which period their transaction was complete.
    ///
    /// Everything that the transaction stored in any record comes before the number is loaded: so a sync with this
    /// number or a later one has it on the medium.
    pub(in crate::engine) fn complete_members(&self, records: impl Iterator<Item = u64> + Clone) {
        if fault::is(Fault::PeriodEarly) {
            return;
        }
        // SYNC(stamp): as in `stamp`.
        self.mem.fence(Ordering::SeqCst);
        let period = self.mem.load(at::SYNC_NEXT, Ordering::SeqCst);
        records.for_each(|record| self.set_period(record, period));
    }

    /// Writes the period of a member, if it has none yet.
    pub(in crate::engine) fn set_period(&self, record: u64, period: u64) {
        let Some(header) = self.header(record).filter(|header| header.is_member()) else { return };
        let word = record + header.member_at() - 8;
        if self.mem.load(word, Ordering::Relaxed) == NO_PERIOD {
            self.mem.store(word, period, Ordering::Release);
        }
    }

    /// A tombstone counted as long as the transaction was not complete. (It may be said twice, by a repair.)
    pub(in crate::engine) fn end_tombstone(&self, record: u64) {
        let Some(header) = self.header(record) else { return };
        if self.checksum_word(record).stamp() == NEVER {
            self.mark_live(record);
        }
        self.stamp(record);
        if !header.has(field::DEAD) {
            self.count_dead(record, header.bytes());
        }
    }
}
