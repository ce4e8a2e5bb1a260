//! Seeded faults of the log: known faults that its tests must find. How they are switched on:
//! [`hashmere_mem::seeded_faults`]. The table of who finds which is in `docs/internals/testing.md`.

hashmere_mem::seeded_faults! {
    /// A writer does not say that a line is coming.
    BusyOmitted,
    /// A writer reads the clock before it says that a line is coming.
    ClockEarly,
    /// A line is in the log before it is written.
    LineEarly,
    /// A writer that overwrites does not say which lines it gives up.
    LowOmitted,
    /// A merge does not check whether the line that it copied was given up during the copy.
    GivenUpUnchecked,
    /// A half line is counted by each who comes upon it.
    HalfTwice,
    /// A ring is taken from a living writer.
    RingStolen,
    /// A dead writer's ring is free before it is recovered.
    RingEarly,
    /// The next owner of a ring does not say whose the lines before were.
    SuccessorOmitted,
    /// A merge that was committed is not finished by the next drainer.
    MergeUndone,
    /// Lines are taken out of their rings before the merge is committed.
    HeadsEarly,
    /// Text is on its way out before it is said how much of it was sent.
    ChunkEarly,
    /// Text counts as sent before it is.
    SentEarly,
    /// A drainer that goes on with a text begins at its start.
    ProgressForgotten,
    /// A reader of the history does not check whether the line was overwritten during the copy.
    OldestUnchecked,
    /// A reader of a process's name does not check whether the name was replaced in between.
    NameUnchecked,
    /// The drainer's role is taken from a live one.
    DrainerOverwritten,
    /// The drainer's role is taken although another has taken it since the look.
    RoleStored,
    /// A drainer goes to sleep without a last look at the rings.
    WakeFlagUnchecked,
    /// A writer that waits for room has looked before it says so, and not after.
    WaitingLate,
    /// A follower goes to sleep without a last look.
    NewsUnchecked,
}
