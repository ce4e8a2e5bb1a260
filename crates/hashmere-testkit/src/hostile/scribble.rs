//! Another process changes the bytes of a file while it is in use: what was checked a moment ago is something else by
//! the time it is used.
//!
//! Most changes are taken back at once. So the file stays whole enough to be used in depth, and each load of a word may
//! see something else than the load before it.

use super::damage::Victim;
use super::places::KINDS;
use crate::rng::Rng;
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use std::num::NonZeroUsize;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Turns of an empty loop, at most, that a change stays, and that pass until the next one. (A turn takes a few
/// nanoseconds, or forty, by the processor.)
const PACES: [(u64, u64); 5] = [(20, 20), (200, 200), (2000, 200), (200, 20_000), (20_000, 100_000)];

/// Runs something while this process, which is to be another than the one that uses the file, scribbles on it. The file
/// is opened first: the process that uses it may remove it.
pub(super) fn scribble_while<R>(path: &Path, victim: &Victim, rng: &mut Rng, act: impl FnOnce() -> R) -> R {
    let words = Words::of(path);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| scribble(&words, victim, rng, &stop));
        let result = act();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn scribble(words: &Words, victim: &Victim, rng: &mut Rng, stop: &AtomicBool) {
    let (stays, pause) = *rng.pick(&PACES);
    // How many of a hundred changes are taken back.
    let back = *rng.pick(&[60, 95, 100, 100]);
    let kinds: Vec<_> = KINDS.into_iter().filter(|_| rng.chance(60)).collect();
    while !stop.load(Ordering::Relaxed) {
        let word = match kinds.is_empty() || rng.chance(10) {
            true => victim.anywhere(rng).map(|offset| (offset, rng.word())),
            false => victim.stroke(*rng.pick(&kinds), |offset| words.load(offset), rng),
        };
        if let Some((offset, value)) = word {
            let before = words.swap(offset, value);
            turns(rng.below(stays));
            if rng.chance(back) {
                words.swap(offset, before);
            }
        }
        turns(rng.below(pause));
    }
}

fn turns(count: u64) {
    (0..count).for_each(|_| std::hint::spin_loop());
}

/// A file, mapped to be scribbled on.
struct Words {
    start: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: what the pointer leads to is only reached as atomic words, and stays mapped as long as this.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    fn of(path: &Path) -> Words {
        let file = std::fs::File::options().read(true).write(true).open(path).expect("open a file to scribble on");
        let len = file.metadata().expect("look at it").len() as usize & !7;
        let size = NonZeroUsize::new(len).expect("a file that is not empty");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping of a file that no process shortens.
        let start = unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, file, 0) };
        Words { start: start.expect("map a file to scribble on").cast(), len }
    }

    /// The word at an offset, if the file has it.
    fn word(&self, offset: u64) -> Option<&AtomicU64> {
        let index = offset as usize / 8;
        // SAFETY: inside the mapping, and aligned.
        (index < self.len / 8).then(|| unsafe { self.start.add(index).as_ref() })
    }

    fn load(&self, offset: u64) -> u64 {
        self.word(offset).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn swap(&self, offset: u64, value: u64) -> u64 {
        self.word(offset).map_or(0, |word| word.swap(value, Ordering::Relaxed))
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `of`, with this length, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}
