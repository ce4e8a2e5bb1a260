//! One key of a transaction: what it must be, what it is to become, and what is known of it on the way.

use crate::engine::commit::locate::{Reach, Site};
use crate::engine::index::{Path, Place, Tree};
use crate::engine::{Draft, KeyHash, Lookup};
use crate::error::WriteError;
use crate::types::Metadata;

/// What a key must be for the transaction to take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Whatever it is.
    Any,
    /// Absent.
    Absent,
    /// As it was seen: version, marks and expiry.
    Seen(Metadata),
}

/// What is to become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'k> {
    /// Nothing: it is only looked at.
    Same,
    /// It goes.
    Remove,
    /// It gets this value.
    Put(Value<'k>),
}

/// A value and what is attached to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value<'k> {
    pub(crate) bytes: &'k [u8],
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
pub(crate) struct Part<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) kh: KeyHash,
    pub(crate) guard: Guard,
    pub(super) change: Change<'k>,
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
    /// After the commit: the slot and the version that it got.
    pub(super) slot: u64,
    pub(super) version: u64,
}

impl<'k> Part<'k> {
    #[inline(always)]
    pub(crate) fn new(key: &'k [u8], kh: KeyHash, guard: Guard, change: Change<'k>) -> Part<'k> {
        Part {
            key,
            kh,
            guard,
            change,
            becomes: Becomes::Same,
            was_there: false,
            reach: Reach::First,
            way: None,
            looked_up: None,
            lock: 0,
            site: Site { found: None, free: None, tree: Tree::First, leaf: 0, hash: kh.hash },
            is_located: false,
            slot: 0,
            version: 0,
        }
    }

    /// Remembers where its key was found when it was read.
    #[inline(always)]
    pub(crate) fn remember(&mut self, lookup: &Lookup) {
        self.way = Some(Way { root: lookup.root, path: lookup.path, place: lookup.place });
        self.looked_up = Some(lookup.epoch);
        self.site.found = lookup.found;
        self.site.leaf = lookup.place.leaf;
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
}
