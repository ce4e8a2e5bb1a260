//! The byte operations of [`MapMem`](crate::MapMem) in x86-64 assembly.
//!
//! Their meaning is that of [`words`](crate::words), byte for byte: every byte of the range is
//! loaded (or stored) at least once, relaxed, and none outside the range is touched. Assembly,
//! because Rust has no access that is at once unaligned (so no shifting) and allowed to race with
//! another process: the compiler knows nothing of what these instructions see, and the processor,
//! which keeps loads in order, has no notion of a data race. A range that is written during the copy
//! gives a mixture, as the words would; the caller's validation finds out.
//!
//! Short ranges take no loop: two loads (or stores) that overlap in the middle cover 4 to 8
//! bytes with 4-byte ones, 8 to 16 with 8-byte ones, and so on. Of 1 to 3 bytes it is the first,
//! the middle and the last.

use crate::raw::Raw;
use core::arch::asm;
use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_packs_epi16,
    _mm_packs_epi32, _mm_set1_epi32, _mm_shuffle_ps,
};

/// From here on one `rep movsb` beats a loop of 16-byte moves. Measured on a processor with fast
/// short string operations: at 1500 bytes 29 ns against 25, at 2048 bytes 34 ns against 35. Stores
/// that straddle cache lines bring the point down to some 900 bytes, hence the middle.
const LONG: usize = 1536;

/// # Safety
/// 8 bytes at `at` are mapped.
#[inline(always)]
unsafe fn load8(at: *const u8) -> u64 {
    let value;
    // SAFETY: reads 8 mapped bytes and nothing else. Not `pure`: it may see another value each
    // time, so it must be neither merged with another nor moved across a fence.
    unsafe {
        asm!("mov {}, qword ptr [{}]", lateout(reg) value, in(reg) at,
            options(nostack, preserves_flags, readonly));
    }
    value
}

/// # Safety
/// 16 bytes at `at` are mapped.
#[inline(always)]
unsafe fn load16(at: *const u8) -> __m128i {
    let value;
    // SAFETY: as in `load8`.
    unsafe {
        asm!("movdqu {}, xmmword ptr [{}]", lateout(xmm_reg) value, in(reg) at,
            options(nostack, preserves_flags, readonly));
    }
    value
}

/// # Safety
/// 16 bytes at `at` are mapped for writing.
#[inline(always)]
unsafe fn store16(at: *mut u8, value: __m128i) {
    // SAFETY: writes 16 mapped bytes and nothing else.
    unsafe {
        asm!("movdqu xmmword ptr [{}], {}", in(reg) at, in(xmm_reg) value,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// 8 bytes at `at` are mapped for writing.
#[inline(always)]
unsafe fn store8(at: *mut u8, value: u64) {
    // SAFETY: writes 8 mapped bytes and nothing else.
    unsafe {
        asm!("mov qword ptr [{}], {}", in(reg) at, in(reg) value,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// 4 bytes at `at` are mapped for writing.
#[inline(always)]
unsafe fn store4(at: *mut u8, value: u32) {
    // SAFETY: writes 4 mapped bytes and nothing else.
    unsafe {
        asm!("mov dword ptr [{}], {:e}", in(reg) at, in(reg) value,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// The byte at `at` is mapped for writing.
#[inline(always)]
unsafe fn store1(at: *mut u8, value: u8) {
    // SAFETY: writes one mapped byte and nothing else.
    unsafe {
        asm!("mov byte ptr [{}], {}", in(reg) at, in(reg_byte) value,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// 4 bytes at `at` are mapped.
#[inline(always)]
unsafe fn load4(at: *const u8) -> u32 {
    let value: u32;
    // SAFETY: as in `load8`, with 4 bytes.
    unsafe {
        asm!("mov {:e}, dword ptr [{}]", lateout(reg) value, in(reg) at,
            options(nostack, preserves_flags, readonly));
    }
    value
}

/// # Safety
/// The byte at `at` is mapped.
#[inline(always)]
unsafe fn load1(at: *const u8) -> u8 {
    let value: u32;
    // SAFETY: as in `load8`, with one byte; the others of the register become zero.
    unsafe {
        asm!("movzx {:e}, byte ptr [{}]", lateout(reg) value, in(reg) at,
            options(nostack, preserves_flags, readonly));
    }
    value as u8
}

/// Fills `dst` with the bytes from `off` on.
#[inline(always)]
pub(crate) fn read(raw: &Raw, off: u64, dst: &mut [u8]) {
    // SAFETY: the slice is valid for writes of its length; `Raw` is a valid range.
    unsafe { read_to(raw.at(off), dst.as_mut_ptr(), dst.len()) }
}

/// Appends the `len` bytes from `off` on to `dst`.
#[inline(always)]
pub(crate) fn append_to(raw: &Raw, off: u64, len: usize, dst: &mut Vec<u8>) {
    dst.reserve(len);
    // SAFETY: `reserve` made room for `len` bytes behind the present ones, and `read_to` fills all
    // of them.
    unsafe {
        read_to(raw.at(off), dst.as_mut_ptr().add(dst.len()), len);
        dst.set_len(dst.len() + len);
    }
}

/// Copies from shared to private memory.
///
/// # Safety
/// `src` is mapped for `len` bytes; `dst` is valid for writes of `len` bytes.
#[inline(always)]
unsafe fn read_to(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: in each case all offsets lie in `0..len`, by the length just tested.
    unsafe {
        if len >= 16 {
            if len > 64 {
                return long(src, dst, len);
            }
            let out = |at: usize, value| dst.add(at).cast::<__m128i>().write_unaligned(value);
            let (first, last) = (load16(src), load16(src.add(len - 16)));
            if len > 32 {
                let (second, third) = (load16(src.add(16)), load16(src.add(len - 32)));
                out(16, second);
                out(len - 32, third);
            }
            out(0, first);
            out(len - 16, last);
        } else if len >= 8 {
            let (first, last) = (load8(src), load8(src.add(len - 8)));
            dst.cast::<u64>().write_unaligned(first);
            dst.add(len - 8).cast::<u64>().write_unaligned(last);
        } else if len >= 4 {
            let (first, last) = (load4(src), load4(src.add(len - 4)));
            dst.cast::<u32>().write_unaligned(first);
            dst.add(len - 4).cast::<u32>().write_unaligned(last);
        } else if len != 0 {
            for at in [0, len / 2, len - 1] {
                dst.add(at).write(load1(src.add(at)));
            }
        }
    }
}

/// Copies more than 64 bytes, either side shared or private.
///
/// # Safety
/// - `src` is mapped for `len` bytes and `dst` for writing as many; they do not overlap.
/// - `len` is at least 64.
#[inline]
unsafe fn long(src: *const u8, dst: *mut u8, len: usize) {
    if len >= LONG {
        // The stores of one string instruction may become visible in any order, but none after a
        // store that follows it, so publishing by a later store stays sound.
        // SAFETY: reads and writes what the caller vouches for; the direction flag is clear, as
        // everywhere in Rust.
        unsafe {
            asm!("rep movsb", inout("rcx") len => _, inout("rsi") src => _, inout("rdi") dst => _,
                options(nostack, preserves_flags));
        }
        return;
    }
    // Blocks of 64 bytes, then the last 64 again, wherever they begin.
    // SAFETY: the offset of each block runs up to `len - 64`; only scratch registers are named.
    unsafe {
        asm!(
            "2:",
            "movdqu {a}, xmmword ptr [{src} + {at}]",
            "movdqu {b}, xmmword ptr [{src} + {at} + 16]",
            "movdqu {c}, xmmword ptr [{src} + {at} + 32]",
            "movdqu {d}, xmmword ptr [{src} + {at} + 48]",
            "movdqu xmmword ptr [{dst} + {at}], {a}",
            "movdqu xmmword ptr [{dst} + {at} + 16], {b}",
            "movdqu xmmword ptr [{dst} + {at} + 32], {c}",
            "movdqu xmmword ptr [{dst} + {at} + 48], {d}",
            "add {at}, 64",
            "cmp {at}, {last}",
            "jb 2b",
            "movdqu {a}, xmmword ptr [{src} + {last}]",
            "movdqu {b}, xmmword ptr [{src} + {last} + 16]",
            "movdqu {c}, xmmword ptr [{src} + {last} + 32]",
            "movdqu {d}, xmmword ptr [{src} + {last} + 48]",
            "movdqu xmmword ptr [{dst} + {last}], {a}",
            "movdqu xmmword ptr [{dst} + {last} + 16], {b}",
            "movdqu xmmword ptr [{dst} + {last} + 32], {c}",
            "movdqu xmmword ptr [{dst} + {last} + 48], {d}",
            src = in(reg) src,
            dst = in(reg) dst,
            at = inout(reg) 0usize => _,
            last = in(reg) len - 64,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// Writes `src` at `off`. Unlike the words this needs no merging: no byte outside the range is
/// stored.
#[inline(always)]
pub(crate) fn write(raw: &Raw, off: u64, src: &[u8]) {
    let (dst, len) = (raw.at(off), src.len());
    let src = src.as_ptr();
    // SAFETY: `Raw` is a valid range; in each case all offsets lie in `0..len`.
    unsafe {
        if len >= 16 {
            if len > 64 {
                return long(src, dst, len);
            }
            let get = |at: usize| src.add(at).cast::<__m128i>().read_unaligned();
            store16(dst, get(0));
            if len > 32 {
                store16(dst.add(16), get(16));
                store16(dst.add(len - 32), get(len - 32));
            }
            store16(dst.add(len - 16), get(len - 16));
        } else if len >= 8 {
            store8(dst, src.cast::<u64>().read_unaligned());
            store8(dst.add(len - 8), src.add(len - 8).cast::<u64>().read_unaligned());
        } else if len >= 4 {
            store4(dst, src.cast::<u32>().read_unaligned());
            store4(dst.add(len - 4), src.add(len - 4).cast::<u32>().read_unaligned());
        } else if len != 0 {
            for at in [0, len / 2, len - 1] {
                store1(dst.add(at), src.add(at).read());
            }
        }
    }
}

/// Whether the bytes from `off` on equal `bytes`. The hottest code of the product.
#[inline(always)]
pub(crate) fn matches(raw: &Raw, off: u64, bytes: &[u8]) -> bool {
    let (at, len) = (raw.at(off), bytes.len());
    let key = bytes.as_ptr();
    // SAFETY: `Raw` is a valid range; in each case all offsets lie in `0..len`, of the
    // shared bytes and of the slice alike.
    unsafe {
        let differ = |i: usize| load8(at.add(i)) ^ key.add(i).cast::<u64>().read_unaligned();
        if len > 32 {
            return matches_long(at, bytes);
        }
        if len > 16 {
            return differ(0) | differ(8) | differ(len - 16) | differ(len - 8) == 0;
        }
        if len >= 8 {
            return differ(0) | differ(len - 8) == 0;
        }
        if len >= 4 {
            let differ = |i: usize| load4(at.add(i)) ^ key.add(i).cast::<u32>().read_unaligned();
            return differ(0) | differ(len - 4) == 0;
        }
        let differ = |i: usize| load1(at.add(i)) ^ key.add(i).read();
        len == 0 || differ(0) | differ(len / 2) | differ(len - 1) == 0
    }
}

/// # Safety
/// `at` is mapped for as many bytes as `bytes` has, which is at least 16.
#[inline]
unsafe fn matches_long(at: *const u8, bytes: &[u8]) -> bool {
    let (len, key) = (bytes.len(), bytes.as_ptr());
    // SAFETY: `i` runs up to `len - 16`, so all offsets lie in `0..len`.
    unsafe {
        let differ = |i: usize| load8(at.add(i)) ^ key.add(i).cast::<u64>().read_unaligned();
        let mut i = 0;
        while i < len - 16 {
            if differ(i) | differ(i + 8) != 0 {
                return false;
            }
            i += 16;
        }
        differ(len - 16) | differ(len - 8) == 0
    }
}

/// # Safety
/// 64 bytes at `at` are mapped.
#[inline(always)]
unsafe fn low_halves(at: *const u8) -> [__m128i; 2] {
    let (a, b, c, d);
    // SAFETY: as in `load16`, four times; SSE2 belongs to x86-64.
    unsafe {
        asm!("movdqu {a}, xmmword ptr [{at}]", "movdqu {b}, xmmword ptr [{at} + 16]",
            "movdqu {c}, xmmword ptr [{at} + 32]", "movdqu {d}, xmmword ptr [{at} + 48]",
            at = in(reg) at, a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = lateout(xmm_reg) d,
            options(nostack, preserves_flags, readonly));
        let low = |a, b| _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(_mm_castsi128_ps(a), _mm_castsi128_ps(b)));
        [low(a, b), low(c, d)]
    }
}

/// Which of the words of two lines agree with `pattern` under `mask`: see `Mem::agreeing`.
///
/// Only the low halves count, and an aligned half is never torn, however wide the load.
#[inline(always)]
pub(crate) fn agreeing(raw: &Raw, first: u64, second: u64, pattern: u32, mask: u32) -> u32 {
    // SAFETY: each `Raw` is 64 valid bytes; SSE2 belongs to x86-64.
    unsafe {
        let (pattern, mask) = (_mm_set1_epi32((pattern & mask) as i32), _mm_set1_epi32(mask as i32));
        let agree = |low| _mm_cmpeq_epi32(_mm_and_si128(low, mask), pattern);
        let [a, b] = low_halves(raw.at(first)).map(agree);
        let [c, d] = low_halves(raw.at(second)).map(agree);
        _mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d))) as u32
    }
}

/// Copies `len` bytes within the mapping. Where the ranges overlap, the target has any bytes afterwards.
#[inline(always)]
pub(crate) fn copy(raw: &Raw, from: u64, to: u64, len: u64) {
    let (from, to, len) = (raw.at(from), raw.at(to), len as usize);
    // SAFETY: each `Raw` is a valid range.
    unsafe {
        if len >= 64 {
            return long(from, to, len);
        }
        for at in (0..len).step_by(8) {
            store8(to.add(at), load8(from.add(at)));
        }
    }
}

/// Stores zero in `len` bytes.
#[inline(always)]
pub(crate) fn zero(raw: &Raw, off: u64, len: u64) {
    let (at, len) = (raw.at(off), len as usize);
    // SAFETY: `Raw` is a valid range; the direction flag is clear, as everywhere in Rust.
    unsafe {
        if len > 64 {
            asm!("rep stosb", inout("rcx") len => _, inout("rdi") at => _, in("al") 0u8,
                options(nostack, preserves_flags));
            return;
        }
        for i in (0..len).step_by(8) {
            store8(at.add(i), 0);
        }
    }
}
