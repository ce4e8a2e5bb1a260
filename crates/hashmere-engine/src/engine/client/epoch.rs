//! What an operation holds back while it is under way: neither its index nor a segment that it may mark is reused.

use crate::engine::{Engine, Writer};
use hashmere_format::{header, row};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Says which root this writer works under, so that neither its index nor a segment in which it may mark a
    /// record dead is reused before it leaves.
    #[inline(always)]
    pub(in crate::engine) fn enter(&self, writer: &mut Writer) -> u64 {
        loop {
            let root = self.root();
            // SYNC(active): pairs with the fence in `free_unless_held`. The exchange orders our word before our second
            // look at the root: either we see that the store was cleared, or the client that frees sees us.
            self.mem.swap(writer.row + row::at::ACTIVE, root, Ordering::SeqCst);
            if self.mem.load(header::at::ROOT, Ordering::SeqCst) == root {
                writer.root = root;
                return root;
            }
        }
    }
}
