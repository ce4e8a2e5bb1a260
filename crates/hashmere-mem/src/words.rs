//! The one copy routine: bytes at any offset, by aligned words.
//!
//! Every byte operation of [`Mem`](crate::Mem) is *defined* as what these functions do: relaxed
//! loads and stores of the aligned words that cover the range, and of no others.
//! [`HeapMem`](crate::HeapMem) runs them as they are, and so do Miri, the sanitizers and every
//! machine for which [`MapMem`](crate::MapMem) has no assembly; a memory of one's own (that of a
//! tracer, or of a model checker) needs only implement [`Words`].
//!
//! An unaligned range is read by shifting pairs of words, each loaded once.

/// Access to one aligned word. Offsets are bytes and multiples of 8.
pub trait Words {
    /// A relaxed load.
    fn load_word(&self, off: u64) -> u64;
    /// A relaxed store.
    fn store_word(&self, off: u64, value: u64);
}

/// A word's byte offset within the word that covers it, and that word's offset.
#[inline(always)]
fn split(off: u64) -> (usize, u64) {
    ((off & 7) as usize, off & !7)
}

/// The words of an unaligned range one after the other, shifted into place.
struct Shifted<'a, W: ?Sized> {
    words: &'a W,
    /// Offset of the next word to load.
    next: u64,
    /// Bits of `low` that lie before the range; 0 if the range starts on a word.
    skip: u32,
    /// The word that holds the start of what comes next; meaningless if `skip` is 0.
    low: u64,
}

impl<'a, W: Words + ?Sized> Shifted<'a, W> {
    /// The range from `off` on must not be empty.
    #[inline(always)]
    fn new(words: &'a W, off: u64) -> Self {
        let (lead, base) = split(off);
        if lead == 0 {
            Shifted { words, next: base, skip: 0, low: 0 }
        } else {
            let low = words.load_word(base);
            Shifted { words, next: base + 8, skip: 8 * lead as u32, low }
        }
    }

    /// The next 8 bytes of the range.
    #[inline(always)]
    fn whole(&mut self) -> u64 {
        let high = self.words.load_word(self.next);
        self.next += 8;
        if self.skip == 0 {
            return high;
        }
        let value = self.low >> self.skip | high << (64 - self.skip);
        self.low = high;
        value
    }

    /// The last `len` bytes of the range, 1 to 7, in the low bytes; what is above them is not
    /// defined.
    #[inline(always)]
    fn tail(&mut self, len: usize) -> u64 {
        if self.skip != 0 && 8 * len as u32 + self.skip <= 64 {
            return self.low >> self.skip; // all in the word that we have: load no other
        }
        self.whole()
    }
}

/// Fills `dst` with the bytes from `off` on.
#[inline]
pub fn read<W: Words + ?Sized>(words: &W, off: u64, dst: &mut [u8]) {
    // SAFETY: the slice is valid for writes of its own length.
    unsafe { read_raw(words, off, dst.as_mut_ptr(), dst.len()) }
}

/// Appends the `len` bytes from `off` on to `dst`.
#[inline]
pub fn append_to<W: Words + ?Sized>(words: &W, off: u64, len: usize, dst: &mut Vec<u8>) {
    dst.reserve(len);
    // SAFETY: `reserve` made room for `len` bytes behind the present ones, and `read_raw` fills all
    // of them.
    unsafe {
        read_raw(words, off, dst.as_mut_ptr().add(dst.len()), len);
        dst.set_len(dst.len() + len);
    }
}

/// Writes the `len` bytes from `off` on to `dst`.
///
/// # Safety
/// `dst` is valid for writes of `len` bytes; they need not be initialised before, and all are
/// afterwards.
#[inline]
unsafe fn read_raw<W: Words + ?Sized>(words: &W, off: u64, dst: *mut u8, len: usize) {
    if len == 0 {
        return;
    }
    let mut source = Shifted::new(words, off);
    let mut done = 0;
    while done + 8 <= len {
        let bytes = source.whole().to_le_bytes();
        // SAFETY: `done + 8 <= len`, within what the caller vouches for.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), dst.add(done), 8) };
        done += 8;
    }
    if done < len {
        let bytes = source.tail(len - done).to_le_bytes();
        // SAFETY: `len - done` is less than 8, and `done` plus that is `len`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), dst.add(done), len - done) };
    }
}

/// Writes `src` at `off`. The words at both edges are loaded, merged and stored.
#[inline]
pub fn write<W: Words + ?Sized>(words: &W, off: u64, src: &[u8]) {
    let (lead, mut at) = split(off);
    let mut src = src;
    if lead != 0 && !src.is_empty() {
        let (head, rest) = src.split_at(src.len().min(8 - lead));
        merge(words, at, lead, head);
        at += 8;
        src = rest;
    }
    while let Some((bytes, rest)) = src.split_first_chunk::<8>() {
        words.store_word(at, u64::from_le_bytes(*bytes));
        at += 8;
        src = rest;
    }
    if !src.is_empty() {
        merge(words, at, 0, src);
    }
}

/// Replaces the bytes from `lead` on in the word at `at`, which they do not leave.
#[inline(always)]
fn merge<W: Words + ?Sized>(words: &W, at: u64, lead: usize, bytes: &[u8]) {
    let mut word = words.load_word(at).to_le_bytes();
    word[lead..lead + bytes.len()].copy_from_slice(bytes);
    words.store_word(at, u64::from_le_bytes(word));
}

/// Whether the bytes from `off` on equal `bytes`. Stops at the first word that differs.
#[inline]
pub fn matches<W: Words + ?Sized>(words: &W, off: u64, bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        return true;
    }
    let mut source = Shifted::new(words, off);
    let mut rest = bytes;
    while let Some((expected, behind)) = rest.split_first_chunk::<8>() {
        if source.whole() != u64::from_le_bytes(*expected) {
            return false;
        }
        rest = behind;
    }
    // Shifting drops the bytes that are not part of the range.
    rest.is_empty() || (source.tail(rest.len()) ^ short(rest)) << (64 - 8 * rest.len()) == 0
}

/// Up to 7 bytes as the low bytes of a word, the others zero, without a loop over bytes.
#[inline(always)]
fn short(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    debug_assert!(len < 8);
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // Two halves that overlap where there are fewer than 8 bytes.
        let (low, high) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(low) | u64::from(high) << (8 * (len - 4));
    }
    if len == 0 {
        return 0;
    }
    // Of 1 to 3 bytes: the first, the middle and the last, which may be the same.
    u64::from(bytes[0]) | u64::from(bytes[len / 2]) << (8 * (len / 2)) | u64::from(bytes[len - 1]) << (8 * (len - 1))
}

/// Copies `len` bytes word by word; offsets and `len` are multiples of 8, and the ranges do not
/// overlap.
#[inline]
pub fn copy<W: Words + ?Sized>(words: &W, from: u64, to: u64, len: u64) {
    debug_assert!((from | to | len) % 8 == 0);
    for at in (0..len).step_by(8) {
        words.store_word(to + at, words.load_word(from + at));
    }
}

/// Stores zero in `len / 8` words; `off` and `len` are multiples of 8.
#[inline]
pub fn zero<W: Words + ?Sized>(words: &W, off: u64, len: u64) {
    debug_assert!((off | len) % 8 == 0);
    for at in (0..len).step_by(8) {
        words.store_word(off + at, 0);
    }
}

/// The byte operations of an `impl Mem` for something that has [`Words`]: what this module defines, and no prefetch.
/// `zero` is not among them, as some memories have a quicker one.
#[macro_export]
macro_rules! bytes_by_words {
    () => {
        #[inline]
        fn prefetch(&self, _off: u64) {}

        #[inline]
        fn read(&self, off: u64, dst: &mut [u8]) {
            $crate::words::read(self, off, dst);
        }

        #[inline]
        fn append_to(&self, off: u64, len: usize, dst: &mut Vec<u8>) {
            $crate::words::append_to(self, off, len, dst);
        }

        #[inline]
        fn write(&self, off: u64, src: &[u8]) {
            $crate::words::write(self, off, src);
        }

        #[inline]
        fn matches(&self, off: u64, bytes: &[u8]) -> bool {
            $crate::words::matches(self, off, bytes)
        }

        fn copy(&self, from: u64, to: u64, len: u64) {
            $crate::words::copy(self, from, to, len);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Words that remember which of them were loaded, and how often.
    struct Traced {
        words: Vec<Cell<u64>>,
        loads: RefCell<Vec<u64>>,
    }

    impl Traced {
        fn new(bytes: &[u8]) -> Traced {
            let word = |bytes: &[u8]| Cell::new(u64::from_le_bytes(bytes.try_into().unwrap()));
            Traced { words: bytes.chunks_exact(8).map(word).collect(), loads: RefCell::default() }
        }

        /// Asserts that each word that covers the range was loaded once, and no other.
        fn expect_loads(&self, off: u64, len: usize) {
            let end = off + len as u64;
            let cover = if len == 0 { 0..0 } else { off & !7..end };
            let expected: Vec<u64> = cover.step_by(8).collect();
            assert_eq!(self.loads.take(), expected, "{off}+{len}");
        }
    }

    impl Words for Traced {
        fn load_word(&self, off: u64) -> u64 {
            self.loads.borrow_mut().push(off);
            self.words[(off / 8) as usize].get()
        }

        fn store_word(&self, off: u64, value: u64) {
            self.words[(off / 8) as usize].set(value);
        }
    }

    #[test]
    fn each_covering_word_is_loaded_once_and_no_other() {
        let bytes: Vec<u8> = (0..64).map(|i| i * 3 + 1).collect();
        let traced = Traced::new(&bytes);
        // Under Miri only some: it finds there what no comparison shows.
        for off in (0..16).step_by(if cfg!(miri) { 5 } else { 1 }) {
            for len in (0..40).step_by(if cfg!(miri) { 3 } else { 1 }) {
                let expected = &bytes[off..off + len];
                let mut got = vec![0; len];
                read(&traced, off as u64, &mut got);
                assert_eq!(got, expected);
                traced.expect_loads(off as u64, len);
                assert!(matches(&traced, off as u64, expected));
                traced.expect_loads(off as u64, len);
            }
        }
    }

    #[test]
    fn short_is_the_low_bytes() {
        let bytes = [1, 2, 3, 4, 5, 6, 7];
        for len in 0..8 {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(short(&bytes[..len]), u64::from_le_bytes(word));
        }
    }
}
