//! Writing with marks: 32 bits beside the caller's flags that any ordinary write clears.

use crate::engine::{Decision, Draft, Engine, KeyHash, Outcome, Writer};
use crate::error::WriteError;
use crate::types::{Attributes, Metadata, Stored};
use hashmere_format::record::Head;
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// As [`begin`](Self::begin), with marks.
    pub(super) fn begin_marked(
        &self,
        writer: &mut Writer,
        (key, kh): (&[u8], KeyHash),
        value_len: u64,
        attributes: Attributes,
        marks: u32,
    ) -> Result<Draft, WriteError> {
        let plain = self.head(key, kh, value_len, attributes);
        self.begin_with(writer, key, kh, Head { flags: plain.flags | u64::from(marks) << 32, ..plain })
    }

    /// Stores a value with marks if the key is as it was seen (`None`: absent), expiry included. With `keep` the
    /// version stays. `None`: it is not as it was seen.
    pub fn store_marked(
        &self,
        writer: &mut Writer,
        name: (&[u8], KeyHash),
        value: &[u8],
        (attributes, marks): (Attributes, u32),
        seen: Option<&Metadata>,
        keep: bool,
    ) -> Result<Option<Stored>, WriteError> {
        self.with_index_room(writer, |writer| {
            let draft = self.begin_marked(writer, name, value.len() as u64, attributes, marks)?;
            self.mem.write(draft.value, value);
            self.seal(&draft);
            let outcome = self.mutate(writer, name.0, name.1, |current| {
                let now = current.map(|found| self.meta_of_found(found));
                let same = match (seen, &now) {
                    (None, None) => true,
                    (Some(seen), Some(now)) => now.is_same_but_expiry(seen) && now.expires_at_ms == seen.expires_at_ms,
                    _ => false,
                };
                Ok(match (same, keep) {
                    (false, _) => Decision::Keep,
                    (true, false) => Decision::Put(draft),
                    (true, true) => Decision::Refresh(draft),
                })
            });
            match outcome {
                Ok(Outcome::Stored) => {
                    if !keep {
                        self.count_set(writer.row, name.0, name.1);
                    }
                    Ok(Some(writer.stored))
                }
                other => {
                    self.abandon(writer, &draft);
                    other.map(|_| None)
                }
            }
        })
    }
}
