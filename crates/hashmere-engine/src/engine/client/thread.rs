//! Threads of this process: a number for each, by which it has writers of its own, and the way on which these go back
//! when it ends.

use hashmere_os::fork;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Weak;

/// Threads of a process that have writers of their own at a time.
pub(super) const OWN: usize = 64;
/// The number of a thread that shares writers, because all others were taken.
pub(super) const SHARES: usize = usize::MAX - 2;
/// The number of a thread that has none yet.
const NONE: usize = usize::MAX;
/// The number of a thread that is being torn down: it has no writer, and borrows one for each write.
const GONE: usize = usize::MAX - 1;

/// The numbers that living threads of this process have, a bit each. No lock: a child may be forked while another
/// thread would hold it.
static NUMBERS: AtomicU64 = AtomicU64::new(0);
const _: () = assert!(OWN == u64::BITS as usize);

/// Living threads that share writers because all numbers were taken, and [`RETURNING`].
static SHARING: AtomicU64 = AtomicU64::new(0);
/// A thread gives shared writers back, so no other may begin to use them.
const RETURNING: u64 = 1 << 63;

/// Something that has writers for threads, and is called when one ends.
pub(crate) trait Lender: Send + Sync {
    /// The thread with this number ends. With `all` no other shares writers: none of those is in use but by a write
    /// under way, and none will be before this returns.
    fn thread_ended(&self, number: usize, all: bool);
}

/// What a thread leaves behind when it ends.
struct Stay {
    number: usize,
    /// The process that it began to share writers in; `None`: it does not share.
    sharing: Option<u64>,
    /// The lenders that it has borrowed from.
    lenders: Vec<Weak<dyn Lender>>,
}

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    /// The lender that it borrowed from last.
    static LAST: Cell<u64> = const { Cell::new(0) };
    static STAY: RefCell<Stay> = const { RefCell::new(Stay { number: NONE, sharing: None, lenders: Vec::new() }) };
}

impl Drop for Stay {
    fn drop(&mut self) {
        // Whatever this thread still does on its way out is done with borrowed writers.
        NUMBER.set(GONE);
        if self.number == NONE {
            return;
        }
        let all = self.sharing.is_none_or(|born| born == fork::generation()) && stop_sharing(self.sharing.is_some());
        for lender in self.lenders.drain(..).filter_map(|lender| lender.upgrade()) {
            lender.thread_ended(self.number, all);
        }
        if all {
            // SYNC(sharing): pairs with the compare-exchange in `change_sharing`: the next thread to share finds all
            // given back.
            SHARING.fetch_and(!RETURNING, Ordering::Release);
        }
        if self.number < OWN {
            // SYNC(number): the thread that gets it next sees what this one did with its writers.
            NUMBERS.fetch_and(!(1 << self.number), Ordering::Release);
        }
    }
}

/// A number below [`OWN`] that no other living thread of this process has, or one that is not below it.
#[inline(always)]
pub(super) fn thread_number() -> usize {
    let number = NUMBER.get();
    if number != NONE {
        return number;
    }
    new_thread_number()
}

/// The same; no number of a writer if the thread has none yet.
#[inline(always)]
pub(super) fn known_number() -> usize {
    NUMBER.get()
}

#[cold]
fn new_thread_number() -> usize {
    let number = STAY.try_with(|stay| {
        let mut stay = stay.borrow_mut();
        stay.number = free_number();
        if stay.number == SHARES {
            begin_sharing();
            stay.sharing = Some(fork::generation());
        }
        stay.number
    });
    let number = number.unwrap_or(GONE);
    NUMBER.set(number);
    number
}

/// Takes the lowest free number; [`SHARES`] if there is none.
fn free_number() -> usize {
    loop {
        let number = NUMBERS.load(Ordering::Relaxed).trailing_ones() as usize;
        if number == OWN {
            return SHARES;
        }
        // SYNC(number): pairs with the release of the thread that gave it back.
        if NUMBERS.fetch_or(1 << number, Ordering::Acquire) >> number & 1 == 0 {
            return number;
        }
    }
}

/// Has the number of a thread that ended for as long as `act` runs; does nothing if a living one has it.
pub(super) fn with_number_of_none(number: usize, act: impl FnOnce()) {
    if NUMBERS.fetch_or(1 << number, Ordering::Acquire) >> number & 1 == 0 {
        act();
        NUMBERS.fetch_and(!(1 << number), Ordering::Release);
    }
}

/// Does something while no thread shares writers; nothing if one does.
pub(super) fn while_none_shares(act: impl FnOnce()) {
    if stop_sharing(false) {
        act();
        SHARING.fetch_and(!RETURNING, Ordering::Release);
    }
}

/// Changes the number of threads that share writers, when none are being given back; what it is now. A forked child
/// does not know how many there are, and gives none back.
fn change_sharing(change: impl Fn(u64) -> u64) -> u64 {
    let mut now = SHARING.load(Ordering::Relaxed);
    loop {
        if now & RETURNING != 0 && fork::generation() == 0 {
            std::thread::yield_now();
            now = SHARING.load(Ordering::Relaxed);
            continue;
        }
        let next = change(now);
        // SYNC(sharing): what was given back is seen to be, and what the others did with the writers is done.
        match SHARING.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return next,
            Err(seen) => now = seen,
        }
    }
}

/// Counts a thread that shares writers from now on.
fn begin_sharing() {
    change_sharing(|now| now + 1);
}

/// Counts a thread that ends. Whether none is left that shares writers: then none begins to before [`RETURNING`] is
/// off.
fn stop_sharing(one_of_them: bool) -> bool {
    let may_return = fork::generation() == 0;
    let left = |now: u64| match now.wrapping_sub(u64::from(one_of_them)) {
        0 if may_return => RETURNING,
        rest => rest,
    };
    change_sharing(left) == RETURNING && may_return
}

/// Notes that this thread uses writers of this lender, whose number is `id`.
#[inline(always)]
pub(super) fn borrow_from(id: u64, lender: impl FnOnce() -> Option<Weak<dyn Lender>>) {
    if LAST.get() != id {
        borrow_again(id, lender);
    }
}

#[cold]
fn borrow_again(id: u64, lender: impl FnOnce() -> Option<Weak<dyn Lender>>) {
    let Some(lender) = lender() else { return };
    let noted = STAY.try_with(|stay| {
        let mut stay = stay.borrow_mut();
        // Those that are no more go when as many again have come.
        if stay.lenders.len() == stay.lenders.capacity() {
            stay.lenders.retain(|lender| lender.strong_count() > 0);
        }
        if !stay.lenders.iter().any(|other| other.ptr_eq(&lender)) {
            stay.lenders.push(lender);
        }
    });
    if noted.is_ok() {
        LAST.set(id);
    }
}
