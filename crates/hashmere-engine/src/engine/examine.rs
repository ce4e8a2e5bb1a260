//! Believing nothing in the header of an existing store.

use crate::engine::create::{Access, FROZEN};
use crate::engine::layout::Layout;
use crate::engine::Engine;
use hashmere_format::hash::HASH_ID;
use hashmere_format::header::{self, at, feature, limit, RootWord, Shape, PAGE};
use hashmere_format::root;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Why a file is not opened: text for [`OpenError::NotAStore`](crate::OpenError::NotAStore).
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) String);

impl<M: Mem, H: Host> Engine<M, H> {
    /// Opens what another process wrote. Nothing is scanned.
    #[cfg(test)]
    pub(crate) fn attach(mem: M, host: H, length: impl Fn(&M) -> u64, access: Access) -> Result<Engine<M, H>, Refusal> {
        let engine = Engine::examine(mem, host, &length, access)?;
        engine.check_extent(length)?;
        Ok(engine)
    }

    /// Believes what never changes in a header: after a power cut the rest may be anything.
    pub(crate) fn examine(
        mem: M,
        host: H,
        length: impl Fn(&M) -> u64,
        access: Access,
    ) -> Result<Engine<M, H>, Refusal> {
        let file_len = length(&mem);
        let refuse = |text: String| Err(Refusal(text));
        let get = |at: u64| mem.load(at, Ordering::Acquire);
        if file_len < at::CLIENTS + PAGE {
            return refuse(format!("it has {file_len} bytes, which is too short for a header"));
        }
        let magic = get(at::MAGIC);
        if magic == header::MAGIC.swap_bytes() {
            return refuse("it was written on a big-endian machine; such files cannot be opened here".into());
        }
        if magic != header::MAGIC {
            return refuse("it does not begin with the magic number of a store".into());
        }
        let format = get(at::FORMAT);
        if format != header::FORMAT {
            let advice = if format > header::FORMAT {
                "upgrade hashmere"
            } else {
                "dump it with the version that wrote it and load it with this one"
            };
            return refuse(format!("it has format {format}, this version opens format {}; {advice}", header::FORMAT));
        }
        let words: Vec<u64> = (0..FROZEN).map(|w| get(8 * w)).collect();
        if get(at::CHECKSUM) != header::checksum(&words) {
            return refuse("the checksum of its header is wrong; the file is damaged".into());
        }
        // From here on what was summed up, whatever becomes of the file.
        let get = |at: u64| words.get((at / 8) as usize).copied().unwrap_or(0);
        let unknown = get(at::INCOMPAT) & !feature::DURABLE;
        if unknown != 0 {
            return refuse(format!(
                "it uses features this version does not know (mask {unknown:#x}); upgrade hashmere"
            ));
        }
        if get(at::RO_COMPAT) != 0 && !access.read_only {
            return refuse(format!(
                "it uses features this version can only read (mask {:#x}); open it read-only or upgrade hashmere",
                get(at::RO_COMPAT)
            ));
        }
        if get(at::LAYOUT) != hashmere_format::layout::layout_hash() || get(at::HASH_ID) != HASH_ID {
            return refuse(
                "it was written by a build with another layout or hash function; dump it with that build".into(),
            );
        }
        let Some(shape) = Shape::unpack(get(at::SHAPE)) else {
            let (segment, leaf) = (get(at::SHAPE) & 0xff, get(at::SHAPE) >> 8 & 0xff);
            return refuse(format!(
                "its shape cannot be: segments of 2^{segment} bytes (12 to 26 are possible), leaves of 2^{leaf} (8 to 15, \
                 and at most an eighth of a segment); the file is damaged"
            ));
        };
        let fixed = get(at::FIXED);
        let fixed = ((fixed as u32).checked_sub(1), ((fixed >> 32) as u32).checked_sub(1));
        let seed = get(at::SEED);
        let durable = get(at::INCOMPAT) & feature::DURABLE != 0;
        let layout = Layout::new(shape, fixed, durable, seed);
        if let Some(reason) = layout.contradiction() {
            return refuse(format!("{reason}; the file is damaged"));
        }
        Ok(Engine::assemble(mem, host, layout, access))
    }

    /// Refuses a file that is shorter than its header says.
    pub(crate) fn check_extent(&self, length: impl Fn(&M) -> u64) -> Result<(), Refusal> {
        let refuse = |text: String| Err(Refusal(text));
        let root = RootWord::unpack(self.root());
        let segments = self.segments_said();
        // The file may have grown since; segments count only once the file reaches to their end.
        let file_len = length(&self.mem);
        let root_end = self.segment_offset(root.segment) + root::BYTES.max(self.leaf_bytes());
        if root.segment >= segments || root_end > file_len {
            return refuse(format!("it is cut short: its index begins at byte {root_end}, the file has {file_len}"));
        }
        let end = self.segment_offset(segments);
        if segments > limit::SEGMENTS || end > file_len {
            return refuse(format!(
                "it is cut short: its {segments} segments end at byte {end}, the file has {file_len}"
            ));
        }
        Ok(())
    }

    /// Refuses a maximum size that no store of this shape can have.
    pub(crate) fn check_max(&self) -> Result<(), Refusal> {
        let max = self.max_bytes();
        if max == 0 && self.layout.is_cache() {
            return Err(Refusal("it is a cache without a maximum size, and there is none; the file is damaged".into()));
        }
        let least = self.layout.least_max();
        if max != 0 && max < least {
            return Err(Refusal(format!(
                "its maximum size is {max} bytes, and with its segments and lengths it needs {least}; the file is damaged"
            )));
        }
        Ok(())
    }
}
