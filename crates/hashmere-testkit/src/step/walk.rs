//! One run through a whole operation: whenever an instruction has changed the file, a copy of the file is looked at.
//!
//! No process holds a lock on a copy, so it is what a death at that instruction would leave. This takes time in
//! proportion to the length of an operation, where real deaths take the square of it; and the instructions between two
//! changes need not be tried.

use super::judge::Judge;
use super::run::{Case, Counts};
use super::trace::Stop;
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::ptr::NonNull;

const PAGE: usize = 4096;

impl<J: Judge> Case<'_, J> {
    /// Walks through it.
    pub(super) fn walk(&self, counts: &mut Counts) {
        let path = self.scratch.store("walked");
        self.before.write(&path);
        let tracee = self.start(&path);
        let mut watch = Watch::start(&path);
        let copy = self.scratch.store("copy");
        for at in 0.. {
            if at == 0 || watch.has_changed() {
                counts.states += 1;
                counts.add(at, self.judge.verify_copy(&path, &copy));
            }
            if tracee.steps(1).1 == Stop::Marker {
                counts.walked = at;
                return;
            }
        }
    }
}

/// A file with what it held when it was last looked at.
struct Watch {
    start: NonNull<u8>,
    held: Vec<u8>,
}

impl Watch {
    fn start(path: &Path) -> Watch {
        let file = File::open(path).expect("open the store that is worked on");
        let len = file.metadata().expect("look at it").len() as usize;
        let size = NonZeroUsize::new(len).expect("a store is not empty");
        // SAFETY: a new mapping of a file that is not shortened.
        let start = unsafe { mmap(None, size, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, file, 0) };
        let mut watch = Watch { start: start.expect("map the store").cast(), held: vec![0; len] };
        watch.has_changed();
        watch
    }

    /// Whether it holds something else than at the last look. (A part that the file has grown by does not count:
    /// nothing leads there before something else changes.)
    fn has_changed(&mut self) -> bool {
        let mut changed = false;
        for (page, held) in self.held.chunks_mut(PAGE).enumerate() {
            // SAFETY: inside the mapping, and the only process that writes to it is stopped.
            let now = unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(page * PAGE), held.len()) };
            if now != held {
                held.copy_from_slice(now);
                changed = true;
            }
        }
        changed
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `start`, with this length, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.cast(), self.held.len()) };
    }
}
