//! Seeded faults of the queues: known faults that their tests must find. How they are switched on:
//! [`hashmere_mem::seeded_faults`]. The table of who finds which is in `docs/internals/testing.md`.

hashmere_mem::seeded_faults! {
    /// An operation is not announced in the endpoint.
    IntentOmitted,
    /// A process that moves an end on does not tell the one that had moved it before.
    SuccessUnconfirmed,
    /// A pop takes what it read although another endpoint has taken it since.
    HeadStored,
    /// A push takes its place although another endpoint has taken it since.
    TailStored,
    /// A pop takes a cell that is not filled yet.
    CellUnchecked,
    /// An endpoint notes what it pops after it has popped it.
    HeldLate,
    /// A batch counts what it is about to pop.
    EndEarly,
    /// An endpoint forgets what it pushes before it is in the queue.
    SlotEarly,
    /// A peek does not check whether the element was taken during the copy.
    PeekUnchecked,
    /// A push whose owner died is not completed.
    PushUndone,
    /// An endpoint is free before it is empty.
    EndpointFreedEarly,
    /// A repair does not look whether another one is at it.
    OwnerOverwritten,
    /// The only producer or consumer of a queue stays that when it is gone.
    RolesRetained,
    /// Endpoints are cleared up although their owners live.
    LiveOwnerRecovered,
    /// Who sleeps has looked before it said so, and not after.
    CheckedEarly,
    /// Who sleeps reads the event after its last look.
    EventLate,
    /// Who wakes counts the event before it takes the flag off.
    FlagLate,
}
