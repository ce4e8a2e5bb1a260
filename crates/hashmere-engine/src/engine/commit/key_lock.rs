//! The lock of a key: that of its first bucket, and of one in the overflow tree if it overflows.

use crate::engine::commit::held::HeldKey;
use crate::engine::index::{Path, Place, Tree};
use crate::engine::{Engine, KeyHash, Writer};
use crate::error::{ReadError, WriteError};
use crate::fault::{self, Fault};
use hashmere_format::leaf::{LockWord, LOCK_WORD};
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Locks the first bucket of a hash; `None` if its leaf changed before the lock was ours.
    pub(in crate::engine) fn lock_key(
        &self,
        writer: &Writer,
        root: u64,
        hash: u64,
    ) -> Result<Option<(Place, LockWord)>, WriteError> {
        let path = self.home(root, hash)?;
        let place = self.place(path.leaf, hash);
        Ok(self.lock_place(writer, root, path, place)?.map(|word| (place, word)))
    }

    /// The same, when it is known already where this is.
    #[inline(always)]
    pub(in crate::engine) fn lock_place(
        &self,
        writer: &Writer,
        root: u64,
        path: Path,
        place: Place,
    ) -> Result<Option<LockWord>, WriteError> {
        self.mem.store(writer.row + row::at::LOCK, place.first, Ordering::Relaxed);
        let word = match self.try_acquire(writer.slot, place.first + LOCK_WORD) {
            Some(word) => word,
            None => self.acquire_key_slowly(writer, place.first + LOCK_WORD).inspect_err(|_| {
                self.mem.store(writer.row + row::at::LOCK, 0, Ordering::Relaxed);
            })?,
        };
        if self.is_still(root, Tree::First, path) || fault::is(Fault::LeafBelieved) {
            return Ok(Some(word));
        }
        self.unlock_bucket(writer, place, word);
        Ok(None)
    }

    /// The version in the lock word of a hash's first bucket: that of the last write to a key with this bucket.
    pub(crate) fn version_of_bucket(&self, kh: KeyHash) -> Result<u64, ReadError> {
        loop {
            let root = self.root();
            match self.path_of(root, Tree::First, kh.hash) {
                Ok(Some(path)) => {
                    let place = self.place(path.leaf, kh.hash);
                    let version = LockWord(self.mem.load(place.first + LOCK_WORD, Ordering::Acquire)).version();
                    // Where the leaf was split during the look the word may be of before.
                    self.mem.fence(Ordering::Acquire);
                    if self.is_still(root, Tree::First, path) {
                        return Ok(version);
                    }
                }
                Err(error) if self.root() == root => return Err(error),
                _ if self.root() == root => return Err(crate::engine::corrupt("the index has no directory", root)),
                _ => {}
            }
        }
    }

    pub(in crate::engine) fn home(&self, root: u64, hash: u64) -> Result<Path, WriteError> {
        match self.path_of(root, Tree::First, hash)? {
            Some(path) => Ok(path),
            None => Err(WriteError::Corrupt { what: "the index has no directory", offset: root }),
        }
    }

    pub(in crate::engine) fn unlock_key(&self, writer: &Writer, held: &HeldKey) {
        if let Some((bucket, word)) = held.second {
            self.release(bucket + LOCK_WORD, word);
            self.mem.store(writer.row + row::at::LOCK_2, 0, Ordering::Release);
        }
        self.unlock_bucket(writer, held.place, held.word);
    }

    /// Gives a key's lock back, if that is the only one held.
    #[inline(always)]
    pub(in crate::engine) fn unlock_bucket(&self, writer: &Writer, place: Place, word: LockWord) {
        self.release(place.first + LOCK_WORD, word);
        // SYNC(dead): while this is set, the segment of the superseded record is held back (`is_held_back`).
        self.mem.store(writer.row + row::at::LOCK, 0, Ordering::Release);
    }

    /// Locks the bucket of a hash in the overflow tree, and gives the one back that was locked there before.
    #[cold]
    pub(in crate::engine) fn lock_overflow(
        &self,
        writer: &Writer,
        root: u64,
        hash: u64,
        held: &mut HeldKey,
    ) -> Result<Place, WriteError> {
        loop {
            let Some(leaf) = self.leaf_of(root, Tree::Overflow, hash)? else {
                return Err(WriteError::Corrupt {
                    what: "a bucket overflows into a tree that is not there",
                    offset: held.place.first,
                });
            };
            let place = self.place(leaf, hash);
            match held.second.take() {
                Some((bucket, word)) if bucket == place.first => {
                    held.second = Some((bucket, word));
                    return Ok(place);
                }
                Some((bucket, word)) => self.release(bucket + LOCK_WORD, word),
                None => {}
            }
            self.mem.store(writer.row + row::at::LOCK_2, place.first, Ordering::Release);
            let word = match self.try_acquire(writer.slot, place.first + LOCK_WORD) {
                Some(word) => word,
                None => self.acquire_key_slowly(writer, place.first + LOCK_WORD)?,
            };
            if self.leaf_of(root, Tree::Overflow, hash)? == Some(leaf) {
                held.second = Some((place.first, word));
                return Ok(place);
            }
            self.release(place.first + LOCK_WORD, word);
        }
    }
}
