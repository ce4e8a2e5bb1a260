//! Seeded faults of the engine: known faults that its tests must find. How they are switched on:
//! [`hashmere_mem::seeded_faults`]. The table of who finds which is in `docs/internals/testing.md`.

use std::sync::atomic::Ordering;

hashmere_mem::seeded_faults! {
    // Writing.
    /// A commit comes before the head of the segment has passed the record.
    HeadLate,
    /// A commit is not announced in the row.
    IntentUnsaid,
    /// A writer takes a record with its key's hash and length for its key's.
    KeyUncompared,
    /// A writer that has locked a key does not check whether its leaf was split before that.
    LeafBelieved,
    /// The plain set does not look whether what it saw before it had the lock is still so.
    LookupBelieved,
    /// What was looked up before the lock counts though the value was replaced in place since.
    ReplacementUnseen,
    /// A value is replaced in place by two stores.
    PairDivided,
    /// In a cache a value that is replaced in place does not count as used.
    ReplacementUnvisited,
    /// A value is replaced in place though a backup wants it.
    ReplacedForBackup,
    /// A writer that creates a key does not look again under the lock.
    AbsenceBelieved,
    /// A writer takes a free slot without looking whether another key just did.
    SlotBelieved,
    /// A bucket does not say that one of its keys went to the overflow tree.
    OverflowUnsaid,
    /// A bucket of the overflow tree does not note that one of its keys is there under its second hash.
    SecondUnsaid,
    /// A counter is read before its key is locked.
    CountEarly,
    /// What this process has no addresses for is taken for something that is not there.
    RefusalIgnored,
    /// A repair, or an emergency reclaim, begins without the whole file within reach.
    ReachUnasked,
    /// A writer takes a lock although an update that was beaten again and again asks to go first.
    YieldIgnored,
    /// Compare and set does not compare.
    CasUncompared,
    /// An expired record is there.
    ExpiryIgnored,

    // Sampling.
    /// A slot of the ring is taken for the sample that is looked for, whatever its checksum.
    SampleBelieved,
    /// A client samples on though the observer is gone.
    SamplingUnended,

    // The change feed.
    /// What is about to be committed is not noted for a repair.
    FeedUnsaid,
    /// A repair does not report what the crashed client changed.
    FeedForgotten,
    /// A chunk is written again before its positions are given up.
    FloorUnraised,
    /// A writer takes a chunk that another one fills.
    ChunkShared,
    /// A consumer does not look again behind its copy of an entry.
    EntryBelieved,
    /// The position behind an entry is not said.
    TailUnmoved,
    /// Switching the feed off does not wait for those who write entries.
    FeedUnawaited,

    // Locks and death.
    /// A writer takes a lock that another client holds.
    LockIgnored,
    /// A waiter takes a lock over without proof that its owner is dead.
    OwnerRobbed,
    /// A waiter gives the crashed owner's liveness lock back before it repairs.
    RepairUnguarded,
    /// A dead owner's commit is not completed before its locks go.
    CommitForgotten,
    /// A lock taken from a crashed owner gives the next writer a version that the owner may have given out.
    VersionRepeated,
    /// A version that a write asks for is given without being known to repairs and clears.
    RaiseUnsaid,
    /// A repair clears the crashed owner's row before it is done.
    RepairUnnamed,
    /// A client slot is claimed without repairing what its last owner left.
    RowUnrepaired,
    /// A forked child goes on under its parent's name.
    ForkIgnored,

    // Transactions.
    /// A transaction takes place whatever became of what it read.
    GuardIgnored,
    /// The slots of a transaction name their cells before it is said to be pending.
    PendingLate,
    /// A reader does not look again whether the transaction of a cell is still the one that it was.
    CellBelieved,
    /// The locks of a transaction are not named before they are taken.
    LocksUnnamed,
    /// A snapshot of several keys is not compared with what they are afterwards.
    SnapshotBelieved,
    /// A key that was absent twice counts as absent in between.
    AbsenceUnproved,
    /// In a durable store the members of a transaction do not say when it was complete.
    PeriodEarly,
    /// A rebuild takes a member of a transaction whatever became of the others.
    MemberBelieved,
    /// A repair undoes what is committed and completes what is not.
    RepairBackward,

    // Reading.
    /// A read compares hash and length, and not the key.
    ReadUncompared,
    /// A read that found its key does not check whether a segment was recycled during it.
    EpochIgnored,
    /// A read does not look whether the value was replaced in place during it.
    HeaderBelieved,
    /// A read by generation does not look whether the record's own segment was.
    GenerationIgnored,
    /// A read that found nothing does not check whether the leaf was split during it.
    MissBelieved,
    /// An offset from the file is not compared with the size of the file.
    BoundsIgnored,
    /// A scan does not look whether the leaf was split before it read the slot.
    ScanBelieved,
    /// A scan goes on from where a leaf of today ends, not from where its interval does.
    CursorSlips,
    /// A UID means whatever key is in its place.
    UidUnchecked,
    /// An entry id means whatever key its UID means.
    EntryIdUnchecked,
    /// What was reserved for an entry becomes the value of another entry that its key has by then.
    ReservedForAny,

    // Splitting and the directory.
    /// A split clears the entries that moved before the directory leads to where they are.
    SplitClearsFirst,
    /// A split that had passed the point of no return is undone by a repair.
    SplitUndone,
    /// A directory is twice as deep before its new half is filled.
    DepthEarly,
    /// A split fails when a lock does not come.
    LockAwaited,
    /// A repair puts a leaf that got into the index on the list of spare ones.
    SpareTwice,

    // Segments and cleaning.
    /// A recycled segment has the generation of before, and so has the store.
    RecycleUnsaid,
    /// Freeing a segment does not look at pins.
    PinIgnored,
    /// A view does not look whether the record moved before it was pinned.
    PinBelieved,
    /// Freeing a segment does not look for operations that began before a clear.
    ActiveIgnored,
    /// Freeing a segment does not look for a writer that is about to count in it.
    MarkingIgnored,
    /// A cleaner moves what it found before it locked the key.
    MoveBelieved,
    /// What survives an eviction goes among what is new.
    SurvivorUnprotected,
    /// A cache goes on protecting what no client asks for any more.
    ShareUnlearned,
    /// Emergency cleaning ends at a record whose lock does not come.
    RecordAwaited,
    /// A writer is refused as soon as a lock is in the way of the room that it needs, or of its leaf.
    RefusedEarly,
    /// Writers take the segments that are kept for the cleaner.
    ReserveSpent,
    /// A segment is a hole for others before its memory is given back.
    HoleEarly,
    /// What got no memory counts as free, as if it had some.
    HoleForgotten,
    /// Memory is written to before it was asked for.
    MemoryUnasked,
    /// A large record whose writer died is freed although the index leads to it.
    LargeUnasked,
    /// A region whose dropper died half way stays half dropped.
    DropUnfinished,
    /// The head of a large record forgets a tail before the tail has an owner.
    TailForgotten,
    /// The later segments of one that takes several stay claimed by the client that took them.
    TailUnjoined,
    /// The index of before a clear goes before the new one is complete.
    RootEarly,
    /// What was seen to have expired is removed without a look under the lock whether it was touched since.
    PastBelieved,
    /// Evicting does not look whether a record was visited.
    MarkIgnored,
    /// A repair does not count the segments that are offline.
    OfflineUncounted,
    /// A segment is taken out of use without a second check, under the lock, that there are too many.
    OverBelieved,

    // Durable stores.
    /// What took a record's place is committed after the record is said to be dead.
    StampEarly,
    /// Records that died are not stamped.
    DeathUnstamped,
    /// A record lives before its commit.
    BornEarly,
    /// A repair leaves the stamps of an unfinished commit as they are.
    RepairUnstamped,
    /// What is emptied is free at once.
    QuarantineSkipped,
    /// A sync does not wait for commits under way.
    CommitsUnawaited,
    /// A sync writes its number before the writes it covers are on the medium.
    PointEarly,
    /// A sync returns before its number is on the medium.
    PointUnflushed,
    /// A sync writes its number over the last one.
    PointInPlace,
    /// After a flush that failed writing goes on.
    PoisonIgnored,
    /// A rebuild takes every record for whole.
    SumsBelieved,
    /// A rebuild takes the first record of a key that it meets.
    FirstWins,
    /// A rebuild does not look at what a clear left behind.
    FloorIgnored,
    /// A rebuild leaves what it cannot read where it is.
    GhostsLeft,

    // Backups.
    /// Under a backup, a write gives versions as always.
    VersionsUnraised,
    /// Under a backup, what is superseded is not marked.
    KeptUnmarked,
    /// It is marked only after the commit.
    KeptLate,
    /// Segments with retained records are reused.
    RetainedReused,
    /// A backup takes the marks of one that died for its own.
    OldMarksBelieved,
    /// A backup does not wait for those who do not know its floor.
    FloorUnawaited,
    /// A writer that finds the floor too low does not check whether the moment was before it could say so.
    MomentMissed,
    /// A backup does not wait for those who may still mark what they supersede.
    MarksUnawaited,

    // Orderings, for the enumeration of stores that come late.
    /// The store that commits a deletion does not wait for those before it.
    CommitRelaxed,
    /// The mark of death of a record that was moved does not wait for its slot.
    MarkRelaxed,
    /// A repair's row forgets a lock without waiting for its release.
    RowRelaxed,
}

/// The order of a store that must release, unless the seeded fault is on.
#[inline(always)]
pub(crate) fn relaxes(fault: Fault) -> Ordering {
    if is(fault) {
        Ordering::Relaxed
    } else {
        Ordering::Release
    }
}
