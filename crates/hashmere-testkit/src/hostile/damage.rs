//! What is changed in a file.

use super::places::{word, Kind, Places, KINDS};
use super::shapes::Shape;
use crate::rng::Rng;
use hashmere_format::header::{self, at};

/// A shape with what is known of it.
#[derive(Debug)]
pub struct Victim {
    /// The valid file.
    pub shape: Shape,
    places: Places,
    /// Pages that are not all zero: elsewhere a change hits nothing.
    pages: Vec<usize>,
}

const PAGE: usize = 4096;

impl Victim {
    /// Looks at a valid file.
    pub fn new(shape: Shape) -> Victim {
        let places = Places::of(&shape.bytes);
        let used = |(_, page): &(usize, &[u8])| page.iter().any(|byte| *byte != 0);
        let pages = shape.bytes.chunks(PAGE).enumerate().filter(used).map(|(number, _)| number).collect();
        Victim { shape, places, pages }
    }

    /// A damaged copy, and what was done to it.
    pub fn damage(&self, rng: &mut Rng) -> (Vec<u8>, String) {
        let mut bytes = self.shape.bytes.clone();
        let mut done = String::new();
        let most = if rng.chance(70) { 3 } else { 12 };
        let many = 1 + rng.below(most);
        for _ in 0..many {
            let what = match rng.below(10) {
                0 => self.scribble(&mut bytes, rng),
                1 => self.copy(&mut bytes, rng),
                _ => self.change_word(&mut bytes, rng),
            };
            done.push_str(&what);
        }
        if rng.chance(2) {
            let len = rng.index(bytes.len());
            bytes.truncate(len);
            done.push_str(&format!(" cut at {len};"));
        }
        seal(&mut bytes);
        (bytes, done)
    }

    /// A word anywhere in the pages that are in use, behind the words by which the file is recognised.
    pub(super) fn anywhere(&self, rng: &mut Rng) -> Option<u64> {
        let offset = rng.pick(&self.pages) * PAGE + rng.index(PAGE / 8) * 8;
        (offset >= at::COMPAT as usize).then_some(offset as u64)
    }

    /// A word of a kind, given what words hold now, and what it is to hold.
    pub(super) fn stroke(&self, kind: Kind, now: impl Fn(u64) -> u64, rng: &mut Rng) -> Option<(u64, u64)> {
        let words = self.places.words(kind);
        if words.is_empty() {
            return None;
        }
        let offset = *rng.pick(words);
        Some((offset, self.value(&self.shape.bytes, now(offset), kind, rng)))
    }

    /// Random bytes anywhere.
    fn scribble(&self, bytes: &mut [u8], rng: &mut Rng) -> String {
        let start = rng.pick(&self.pages) * PAGE + rng.index(PAGE);
        let most = if rng.chance(80) { 8 } else { 200 };
        let end = (start + 1 + rng.index(most)).min(bytes.len());
        if start >= end || start < at::COMPAT as usize {
            return String::new();
        }
        bytes[start..end].iter_mut().for_each(|byte| *byte = rng.word() as u8);
        format!(" bytes {start}..{end};")
    }

    /// Bytes from elsewhere in the file, which look right there.
    fn copy(&self, bytes: &mut [u8], rng: &mut Rng) -> String {
        let len = *rng.pick(&[8, 64, 256, 512]);
        let place = |rng: &mut Rng| rng.pick(&self.pages) * PAGE + rng.index(PAGE / len) * len;
        let (from, to) = (place(rng), place(rng));
        if from.max(to) + len > bytes.len() || to < at::COMPAT as usize {
            return String::new();
        }
        bytes.copy_within(from..from + len, to);
        format!(" {len} bytes of {from} at {to};")
    }

    /// A word that means something gets a value that may mean something else.
    fn change_word(&self, bytes: &mut [u8], rng: &mut Rng) -> String {
        let kind = *rng.pick(&KINDS);
        let words = self.places.words(kind);
        if words.is_empty() {
            return String::new();
        }
        let offset = *rng.pick(words);
        let old = word(bytes, offset);
        let value = self.value(bytes, old, kind, rng);
        if let Some(target) = bytes.get_mut(offset as usize..offset as usize + 8) {
            target.copy_from_slice(&value.to_le_bytes());
        }
        format!(" {kind:?} {offset} {old:#x} -> {value:#x};")
    }

    fn value(&self, bytes: &[u8], old: u64, kind: Kind, rng: &mut Rng) -> u64 {
        let end = at::DATA + self.places.segments * self.places.segment_bytes;
        match rng.below(16) {
            0 => 0,
            1 => u64::MAX,
            2 | 3 => old ^ 1 << rng.below(64),
            4 => old.wrapping_add(*rng.pick(&[1, 8, 64, 4096, u64::MAX, 8u64.wrapping_neg(), 64u64.wrapping_neg()])),
            // A word of the same kind, or of another, from elsewhere.
            5 | 6 => word(bytes, *rng.pick(self.places.words(kind))),
            7 => {
                let words = self.places.words(*rng.pick(&KINDS));
                if words.is_empty() {
                    old
                } else {
                    word(bytes, *rng.pick(words))
                }
            }
            // The offset of something.
            8 | 9 => {
                let words = self.places.words(*rng.pick(&KINDS));
                if words.is_empty() {
                    end
                } else {
                    *rng.pick(words)
                }
            }
            10 => end.wrapping_sub(*rng.pick(&[0, 1, 8, 64, 4096])),
            // A record elsewhere, with the right hash bits.
            11 => (old & 0x3ff_ffff) | (rng.below(end + 8192) / 8) << 26,
            12 => rng.below(self.places.segments + 3),
            // Lengths of a record, or the owner of a lock, and the like.
            13 => (old & !0x3f_ffff) | rng.below(1 << 22),
            14 => old & !0xffff_ff00 | rng.below(1 << 24) << 8,
            _ => rng.word() >> rng.below(64),
        }
    }
}

/// Makes the checksum of the header right again: it is there against damage, not against malice.
fn seal(bytes: &mut [u8]) {
    let words: Vec<u64> = (0..at::CHECKSUM / 8).map(|number| word(bytes, 8 * number)).collect();
    let sum = header::checksum(&words).to_le_bytes();
    if let Some(target) = bytes.get_mut(at::CHECKSUM as usize..at::CHECKSUM as usize + 8) {
        target.copy_from_slice(&sum);
    }
}
