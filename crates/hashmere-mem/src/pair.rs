//! Two words in one instruction.

/// Whether this processor has it.
#[inline(always)]
pub(crate) fn is_supported() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // One load and one test: the answer is kept.
        std::is_x86_feature_detected!("cmpxchg16b")
    }
    // Every 64-bit ARM processor has the pair of exclusive accesses.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        true
    }
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
    {
        false
    }
}

/// Compare-exchange of two words, acquiring and releasing. Whether they were `current`.
///
/// # Safety
/// `at` is a multiple of 16, the 16 bytes there are mapped for writing, and [`is_supported`] says so.
#[inline(always)]
pub(crate) unsafe fn compare_exchange(at: *mut u8, current: [u64; 2], new: [u64; 2]) -> bool {
    debug_assert!(at as usize % 16 == 0, "a pair of words is aligned");
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let done: u8;
        // SAFETY: reads and writes the 16 bytes and nothing else; `rbx`, which cannot be named as an operand, has its
        // own value again afterwards. The address is in a register with a name: the compiler might choose `rbx` for it.
        unsafe {
            core::arch::asm!(
                "xchg {low}, rbx",
                "lock cmpxchg16b xmmword ptr [rdi]",
                "mov rbx, {low}",
                "sete {done}",
                low = inout(reg) new[0] => _,
                in("rdi") at,
                done = out(reg_byte) done,
                inout("rax") current[0] => _,
                inout("rdx") current[1] => _,
                in("rcx") new[1],
                options(nostack),
            );
        }
        done != 0
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let done: u64;
        // SAFETY: reads and writes the 16 bytes and nothing else. The loop ends: it goes on only if another core
        // touched the line between the two accesses. What differs is stored back, which alone makes the pair that was
        // loaded one that was there at one moment.
        unsafe {
            core::arch::asm!(
                "2:",
                "ldaxp {low}, {high}, [{at}]",
                "cmp {low}, {is_low}",
                "ccmp {high}, {is_high}, #0, eq",
                "cset {done}, eq",
                "csel {low}, {to_low}, {low}, eq",
                "csel {high}, {to_high}, {high}, eq",
                "stlxp {again:w}, {low}, {high}, [{at}]",
                "cbnz {again:w}, 2b",
                low = out(reg) _,
                high = out(reg) _,
                again = out(reg) _,
                done = out(reg) done,
                at = in(reg) at,
                is_low = in(reg) current[0],
                is_high = in(reg) current[1],
                to_low = in(reg) new[0],
                to_high = in(reg) new[1],
                options(nostack),
            );
        }
        done != 0
    }
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
    {
        let _ = (at, current, new);
        false
    }
}
