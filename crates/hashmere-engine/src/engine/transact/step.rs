//! What the commit of a transaction does with one of its keys.

use hashmere_format::leaf::Slot;

/// What the commit needs of a part that has a cell, in words side by side: its loops are as short as this is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The slot that changes; 0: none, the record only says that an absent key was deleted.
    pub(super) slot: u64,
    /// What it holds, and what it is to hold.
    pub(super) old: Slot,
    pub(super) new: Slot,
    /// The record that was written, and its header word without version; 0: none.
    pub(super) record: u64,
    pub(super) word: u64,
    /// The least version that it is to get, and the one that it gets.
    pub(super) least: u64,
    pub(super) version: u64,
    /// It keeps the version of the record that it replaces.
    pub(super) keeps_version: bool,
}

/// What a transaction counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    /// By how much items and bytes grow.
    pub(super) items: u64,
    pub(super) bytes: u64,
    /// Keys that are set, and keys that go.
    pub(super) sets: u64,
    pub(super) deletes: u64,
}
