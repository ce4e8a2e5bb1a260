//! One key of a transaction: what it must be, what it is to become, and what is known of it on the way, from the read
//! by the caller's function to the commit. Nothing of it is converted or copied between these.

use crate::engine::commit::locate::{Reach, Site};
use crate::engine::index::{Path, Place, Tree};
use crate::engine::transact::step::{Step, Totals};
use crate::engine::{Draft, KeyHash};
use crate::error::WriteError;
use crate::types::{Metadata, Version};
use hashmere_format::leaf::Slot;

/// Where a key or a value is among the bytes of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// How many bytes these are.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }

    /// The bytes.
    #[inline(always)]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.end]
    }
}

/// What a key must be for the transaction to take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Whatever it is.
    Any,
    /// Absent; its bucket had this version before it was looked for.
    Absent(u64),
    /// At this version, without marks and expiry.
    Version(u64),
    /// As it was seen: version, marks and expiry.
    Seen(Metadata),
}

impl Guard {
    /// What the key was seen to be, as far as it is compared; `None`: nothing was seen, or that it is absent.
    pub(crate) fn seen(&self) -> Option<Metadata> {
        match *self {
            Guard::Any | Guard::Absent(_) => None,
            Guard::Version(version) => Some(Metadata { version: Version(version), ..Metadata::default() }),
            Guard::Seen(seen) => Some(seen),
        }
    }
}

/// What is to become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing: it is only looked at.
    Same,
    /// It goes.
    Remove,
    /// It gets this value.
    Put(Value),
}

/// A value and what is attached to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) bytes: Span,
    /// Wall clock of its expiry.
    pub(crate) expires: Option<u64>,
    /// The caller's flags, and marks above them.
    pub(crate) flags: u64,
    /// The least version that it is to get.
    pub(crate) least: u64,
    /// It takes the place of a value of the same version, which it keeps.
    pub(crate) keeps_version: bool,
}

/// The same, when what is written is in the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Becomes {
    /// Nothing: it is only looked at.
    Same,
    /// This record takes its place, with a new version.
    Put(Draft),
    /// This record takes its place, with the version that it has.
    Refresh(Draft),
    /// It goes; in a durable store with a record that says so (a *tombstone*), for a rebuild.
    Gone(Option<Draft>),
}

impl Becomes {
    /// The record that the key gets.
    #[inline(always)]
    pub(super) fn draft(&self) -> Option<&Draft> {
        match self {
            Becomes::Put(draft) | Becomes::Refresh(draft) => Some(draft),
            Becomes::Same | Becomes::Gone(_) => None,
        }
    }

    /// The same, or the one that says that the key was deleted.
    #[inline(always)]
    pub(super) fn written(&self) -> Option<&Draft> {
        match self {
            Becomes::Gone(tombstone) => tombstone.as_ref(),
            _ => self.draft(),
        }
    }
}

/// How a hash led to its bucket under a root.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) root: u64,
    pub(super) path: Path,
    pub(super) place: Place,
}

/// One key of a transaction. No key is in it twice.
pub(crate) struct Part {
    pub(crate) key: Span,
    pub(crate) kh: KeyHash,
    pub(crate) guard: Guard,
    pub(crate) change: Change,
    pub(super) becomes: Becomes,
    /// With its lock held, and after the commit: whether the key is there, and has not expired.
    pub(crate) was_there: bool,
    pub(super) reach: Reach,
    /// How its hash leads to its bucket, as far as is known.
    pub(super) way: Option<Way>,
    /// The site says what was found before the locks were taken, at this epoch or later.
    pub(super) looked_up: Option<u64>,
    /// Which of the locks is the key's.
    pub(super) lock: usize,
    /// Where it was found, or can go.
    pub(super) site: Site,
    /// The site is known to be right: the locks are held.
    pub(super) is_located: bool,
    /// What the commit does with it; after the commit, what it did. `None`: it has no cell.
    pub(super) step: Option<Step>,
}

impl Part {
    /// A key that may be anything, and stays as it is.
    #[inline(always)]
    pub(crate) fn new(key: Span, kh: KeyHash) -> Part {
        Part {
            key,
            kh,
            guard: Guard::Any,
            change: Change::Same,
            becomes: Becomes::Same,
            was_there: false,
            reach: Reach::First,
            way: None,
            looked_up: None,
            lock: 0,
            site: Site { found: None, free: None, tree: Tree::First, leaf: 0, hash: kh.hash },
            is_located: false,
            step: None,
        }
    }

    /// Another look-up is to begin from nothing.
    pub(super) fn forget_way(&mut self) {
        (self.way, self.looked_up) = (None, None);
    }

    /// The bucket of the key.
    pub(super) fn place(&self) -> Result<Place, WriteError> {
        match self.way {
            Some(way) => Ok(way.place),
            None => Err(WriteError::InvalidState("a part without a bucket")),
        }
    }

    /// Whether a slot changes: not if a key that is absent is to go.
    #[inline(always)]
    pub(super) fn changes(&self) -> bool {
        match self.becomes {
            Becomes::Same => false,
            Becomes::Gone(_) => self.site.found.is_some(),
            Becomes::Put(_) | Becomes::Refresh(_) => true,
        }
    }

    /// With the key found, or a free slot for it: what the commit is to do with it, which counts in `totals`.
    #[inline(always)]
    pub(super) fn plan(&mut self, totals: &mut Totals) {
        let (slot, old, version, bytes) = match &self.site.found {
            Some(found) => (found.slot_offset, found.slot, found.version(), found.bytes()),
            None => (self.site.free.unwrap_or(0), Slot::EMPTY, 0, 0),
        };
        let is_new = old.is_empty();
        match &self.becomes {
            Becomes::Put(draft) | Becomes::Refresh(draft) => {
                let refreshes = matches!(self.becomes, Becomes::Refresh(_));
                self.step = Some(Step {
                    slot,
                    old,
                    new: Slot::new(self.site.hash, draft.offset),
                    record: draft.offset,
                    word: draft.word,
                    least: draft.least,
                    version,
                    keeps_version: refreshes && !is_new,
                });
                totals.items = totals.items.wrapping_add(u64::from(is_new));
                totals.bytes = totals.bytes.wrapping_add(draft.bytes).wrapping_sub(bytes);
                totals.sets += u64::from(!refreshes);
            }
            Becomes::Gone(tombstone) => {
                let (record, word) = tombstone.as_ref().map_or((0, 0), |draft| (draft.offset, draft.word));
                let slot = if is_new { 0 } else { slot };
                let step = Step { slot, old, new: Slot::EMPTY, record, word, least: 0, version, keeps_version: false };
                self.step = (slot | record != 0).then_some(step);
                // (Of a key that is not there the record is not counted: it is dead from the start.)
                totals.items = totals.items.wrapping_sub(u64::from(!is_new));
                let written = tombstone.as_ref().filter(|_| !is_new).map_or(0, |draft| draft.bytes);
                totals.bytes = totals.bytes.wrapping_add(written).wrapping_sub(bytes);
                totals.deletes += u64::from(self.was_there);
            }
            Becomes::Same => self.step = None,
        }
    }
}
