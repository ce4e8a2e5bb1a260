//! Canaries of the queues: known faults that their tests must find. How they are switched on: [`hashmere_mem::canaries`]. The table of who
//! finds which is in `docs/internals/testing.md`.

hashmere_mem::canaries! {
    /// An operation is not announced in the hand.
    HandUnsaid,
    /// Whoever moves an end on does not tell the one who had moved it before.
    SuccessUntold,
    /// A pull takes what it read although another hand took it meanwhile.
    HeadStored,
    /// A push takes its place although another hand took it meanwhile.
    TailStored,
    /// A pull takes a cell that is not filled yet.
    CellBelieved,
    /// A hand notes what it pulls after it has pulled it.
    HeldLate,
    /// A batch counts what it is about to pull.
    EndEarly,
    /// A hand forgets what it pushes before it is in the queue.
    SlotEarly,
    /// A peek does not look whether the element was taken meanwhile.
    PeekBelieved,
    /// A push whose owner died is not completed.
    PushUndone,
    /// A hand is free before it is empty.
    HandEarly,
    /// A repair does not look whether another one is at it.
    HandRobbed,
    /// The only producer or consumer of a queue stays that when it is gone.
    RolesKept,
    /// Hands are cleared up although their owners live.
    LivingRobbed,
    /// Who sleeps has looked before it said so, and not after.
    LookEarly,
    /// Who sleeps reads the event after its last look.
    EventLate,
    /// Who wakes counts the event before it takes the flag off.
    FlagLate,
}
