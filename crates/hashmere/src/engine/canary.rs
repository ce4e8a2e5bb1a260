//! Known faults that the models switch on, to prove that they would find them (see `docs/testing.md`).
//!
//! Outside the models [`is`] is the constant `false`: no build that anybody uses contains a canary.

/// One fault: what the engine then does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Canary {
    /// A read that found its key does not look whether a segment was recycled meanwhile.
    EpochIgnored,
    /// A read by generation does not look whether the record's own segment was.
    GenerationIgnored,
    /// A read that found nothing does not look whether the leaf was split meanwhile.
    MissBelieved,
    /// A scan does not look whether the leaf was split before it read the slot.
    ScanBelieved,
    /// A split clears the entries that moved before the directory leads to where they are.
    SplitClearsFirst,
    /// A waiter takes a lock over without proof that its owner is dead.
    OwnerRobbed,
    /// A waiter gives the dead owner's liveness lock back before it repairs.
    RepairUnguarded,
    /// A dead owner's commit is not completed before its locks go.
    CommitForgotten,
    /// Whoever frees a segment does not look at pins.
    PinIgnored,
    /// Whoever frees a segment does not look for operations that began before a clear.
    ActiveIgnored,
    /// Whoever frees a segment does not look for a writer that is about to count in it.
    BurialIgnored,
    /// A view does not look whether the record moved before it was pinned.
    PinBelieved,
    /// A writer that has locked a key does not look whether its leaf was split meanwhile.
    LeafBelieved,
    /// A writer that creates a key does not look again under the lock.
    AbsenceBelieved,
    /// A writer takes a free slot without looking whether another key just did.
    SlotBelieved,
}

#[cfg(not(all(test, feature = "shuttle")))]
#[inline(always)]
pub(super) const fn is(_: Canary) -> bool {
    false
}

#[cfg(all(test, feature = "shuttle"))]
pub(super) use switch::{is, with};

#[cfg(all(test, feature = "shuttle"))]
mod switch {
    use super::Canary;
    use std::cell::Cell;

    // Of the thread of the test, which runs all threads of its models.
    thread_local! {
        static ON: Cell<Option<Canary>> = const { Cell::new(None) };
    }

    pub(in crate::engine) fn is(canary: Canary) -> bool {
        ON.get() == Some(canary)
    }

    /// Runs something in an engine with this fault.
    pub(in crate::engine) fn with<R>(canary: Canary, act: impl FnOnce() -> R) -> R {
        ON.set(Some(canary));
        let result = act();
        ON.set(None);
        result
    }
}
