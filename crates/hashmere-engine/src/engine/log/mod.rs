//! Where records are: a file of segments, each filled from its start to its end like a log.
//!
//! [`segments`] claims and frees them by one state word each; [`backing`] knows which have memory behind them;
//! [`growth`] adds more at the end of the file and [`reach`] maps what others added; [`append`] writes records into the
//! segment of a writer, and [`large`] into segments of their own; [`records`] reads them in order; [`pin`] keeps a
//! segment from being reused; [`extent`] finds several that are side by side; [`region`] gives such an extent to a
//! named object; [`maximum`] bounds how many are in use, and [`spare`] keeps one free for what cannot be refused.

pub(super) mod append;
pub(super) mod backing;
pub(super) mod checksums;
pub(super) mod extent;
pub(super) mod growth;
pub(super) mod large;
pub(super) mod maximum;
pub(super) mod pending_sync;
pub(super) mod pin;
pub(super) mod reach;
pub(super) mod records;
pub(super) mod region;
pub(super) mod segments;
pub(super) mod snapshot;
mod spare;

/// What this process knows of the segments.
#[derive(Debug, Default)]
pub(super) struct Log {
    reach: reach::Reach,
    refused: backing::Refused,
    maximum: maximum::Maximum,
    spare: spare::Spare,
}

impl Log {
    /// Bytes of the segments that exist, as far as this process knows and can reach them.
    #[inline(always)]
    pub(super) fn known(&self) -> u64 {
        self.reach.known()
    }

    /// Whether the file may outgrow its maximum size from now on: while it is rebuilt, or filled by a backup.
    pub(super) fn lift_maximum(&self, is_lifted: bool) {
        self.maximum.lift(is_lifted);
    }
}
