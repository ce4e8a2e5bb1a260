//! What the segments of a file are used for.

use hashmere_format::segment::State;

/// What a segment is used for, as far as an observer cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SegmentUse {
    /// A client appends records to it.
    Open,
    /// It has records, and room for more.
    Partial,
    /// It is full of records.
    Sealed,
    /// A client moves what lives out of it.
    Cleaning,
    /// It is empty, and waits for views or for a sync.
    PendingFree,
    /// Part of a large record.
    Large,
    /// Index, segment table.
    Index,
    /// Part of a region: queues, a log, a feed, a replica's place.
    Region,
    /// Free, with memory behind it or without.
    Free,
    /// Out of use since the store got a smaller maximum.
    Offline,
}

impl SegmentUse {
    /// All of them.
    pub const ALL: [SegmentUse; 10] = [
        SegmentUse::Open,
        SegmentUse::Partial,
        SegmentUse::Sealed,
        SegmentUse::Cleaning,
        SegmentUse::PendingFree,
        SegmentUse::Large,
        SegmentUse::Index,
        SegmentUse::Region,
        SegmentUse::Free,
        SegmentUse::Offline,
    ];

    /// In lower case, as it is printed.
    pub fn name(self) -> &'static str {
        match self {
            SegmentUse::Open => "open",
            SegmentUse::Partial => "partial",
            SegmentUse::Sealed => "sealed",
            SegmentUse::Cleaning => "cleaning",
            SegmentUse::PendingFree => "pending_free",
            SegmentUse::Large => "large",
            SegmentUse::Index => "index",
            SegmentUse::Region => "region",
            SegmentUse::Free => "free",
            SegmentUse::Offline => "offline",
        }
    }

    /// That of a segment by its state; a tail is what the one before it is.
    fn of(state: State, before: SegmentUse) -> SegmentUse {
        match state {
            State::Free | State::Hole => SegmentUse::Free,
            State::Open | State::Claimed => SegmentUse::Open,
            State::Partial => SegmentUse::Partial,
            State::Sealed => SegmentUse::Sealed,
            State::Cleaning => SegmentUse::Cleaning,
            State::PendingFree => SegmentUse::PendingFree,
            State::Large | State::LargeNew => SegmentUse::Large,
            State::Index | State::Table => SegmentUse::Index,
            State::Region => SegmentUse::Region,
            State::Offline => SegmentUse::Offline,
            State::Tail => before,
        }
    }
}

/// The segments of a file, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// What each is used for.
    pub map: Vec<SegmentUse>,
    /// Bytes of each.
    pub bytes: u64,
    /// Regions, each of one or more segments.
    pub regions: u64,
}

impl Segments {
    pub(crate) fn new(states: &[State], bytes: u64) -> Segments {
        let mut before = SegmentUse::Free;
        let mut map = Vec::with_capacity(states.len());
        for state in states {
            before = SegmentUse::of(*state, before);
            map.push(before);
        }
        let regions = states.iter().filter(|state| **state == State::Region).count() as u64;
        Segments { map, bytes, regions }
    }

    /// How many are used for this.
    pub fn count(&self, use_: SegmentUse) -> u64 {
        self.map.iter().filter(|one| **one == use_).count() as u64
    }

    /// The map in `cells` cells: of those segments that fall into one, what most are used for. Fewer segments than
    /// cells have one cell each.
    pub fn condensed(&self, cells: usize) -> Vec<SegmentUse> {
        let n = self.map.len();
        if n <= cells {
            return self.map.clone();
        }
        let majority = |cell: usize| {
            let part = &self.map[cell * n / cells..(cell + 1) * n / cells];
            let count = |use_: SegmentUse| part.iter().filter(|one| **one == use_).count();
            SegmentUse::ALL.into_iter().max_by_key(|use_| count(*use_)).unwrap_or(SegmentUse::Free)
        };
        (0..cells).map(majority).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_what_leads_them_and_a_condensed_map_keeps_majorities() {
        let states = [State::Index, State::Region, State::Tail, State::Large, State::Tail, State::Hole];
        let segments = Segments::new(&states, 4096);
        use SegmentUse::{Free, Index, Large, Region};
        assert_eq!(segments.map, [Index, Region, Region, Large, Large, Free]);
        assert_eq!((segments.regions, segments.count(Region), segments.count(Large)), (1, 2, 2));
        assert_eq!(segments.condensed(100), segments.map);
        let mut states = vec![State::Sealed; 700];
        states.extend(vec![State::Free; 300]);
        let map = Segments::new(&states, 4096).condensed(10);
        assert_eq!(map, [vec![SegmentUse::Sealed; 7], vec![Free; 3]].concat());
    }
}
