//! Canaries: known faults, one line each where the queues would have them, that the tests switch on to prove that they would
//! notice (see `docs/testing.md`). In any other build [`is`] is the constant `false`.

macro_rules! canaries {
    ($($(#[doc = $text:literal])+ $name:ident,)+) => {
        /// One fault: what the queues then do wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Canary {
            $($(#[doc = $text])+ $name,)+
        }

        #[cfg(test)]
        impl Canary {
            /// All of them.
            pub(crate) const ALL: &'static [Canary] = &[$(Canary::$name,)+];
        }
    };
}

canaries! {
    /// An operation is not announced in the hand.
    HandUnsaid,
    /// Whoever moves an end on does not tell the one who had moved it before.
    SuccessUntold,
    /// A pull takes what it read although another hand took it meanwhile.
    HeadStored,
    /// A pull takes a cell that is not filled yet.
    CellBelieved,
    /// A hand notes what it pulls after it has pulled it.
    HeldLate,
    /// A batch counts what it is about to pull.
    EndEarly,
    /// A hand forgets what it pushes before it is in the queue.
    SlotEarly,
    /// A push whose owner died is not completed.
    PushUndone,
    /// A hand is free before it is empty.
    HandEarly,
    /// The only producer or consumer of a queue stays that when it is gone.
    RolesKept,
    /// Hands are cleared up although their owners live.
    LivingRobbed,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn is(_: Canary) -> bool {
    false
}

#[cfg(test)]
pub(crate) use switch::{is, with};

#[cfg(test)]
mod switch {
    use super::Canary;
    use std::cell::Cell;

    thread_local! {
        static ON: Cell<Option<Canary>> = const { Cell::new(None) };
    }

    /// Whether this fault is to be made.
    pub(crate) fn is(canary: Canary) -> bool {
        ON.get() == Some(canary)
    }

    /// Runs something in queues with this fault.
    pub(crate) fn with<R>(canary: Canary, act: impl FnOnce() -> R) -> R {
        ON.set(Some(canary));
        let result = act();
        ON.set(None);
        result
    }
}
