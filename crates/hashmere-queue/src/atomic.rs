//! Shared atomics: words of 64 bits with names, in a region of the store's file, that every process changes in place.

use crate::error::QueueError;
use crate::options::no_room;
use hashmere_engine::{Region, StoreHandle};
use hashmere_format::region::{kind, NAME_MAX};
use hashmere_mem::{MapMem, Mem};
use hashmere_os::backoff::Backoff;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// `"MEATOMIC"`, with the version of this layout added.
const MAGIC: u64 = u64::from_le_bytes(*b"MEATOMIC") + 1;
/// Words of the header.
const MAGIC_AT: u64 = 0;
const CAPACITY_AT: u64 = 8;
/// Bytes of the header and of an atomic: two lines, for processors fetch lines in pairs.
const SIZE: u64 = 128;
/// Words of an atomic: its value, whether a process sleeps until it changes, what that sleeps on.
const VALUE: u64 = 0;
const SLEEPERS: u64 = 8;
const EVENT: u64 = 16;
/// 0: there is none. The word that decides, stored last.
const LEN: u64 = 64;
const NAME: u64 = 72;
const LONGEST: usize = (SIZE - NAME) as usize;
/// Atomics of a set: with the headers they fit into the smallest region there is.
const CAPACITY: u64 = 1024;

/// A set of shared atomics. Clones share it. Sets are regions of the store's file, as pools are: `clear` leaves them as
/// they are, a backup does not copy them, and after a crash of the machine a durable store is rebuilt without them.
#[derive(Clone)]
pub struct Atomics {
    region: Arc<Region>,
}

/// A shared atomic: a word of 64 bits, 0 at first, that processes read and change in place by one instruction each.
/// Clones share it.
///
/// What is done to it is no part of a transaction or of the change feed. A process that dies has done each operation
/// wholly or not at all. All operations are sequentially consistent; each that changes the word wakes those who
/// [`wait`](Self::wait).
#[derive(Clone)]
pub struct Atomic {
    region: Arc<Region>,
    offset: u64,
}

fn check_name(name: &[u8], longest: usize, what: &'static str) -> Result<(), QueueError> {
    if (1..=longest).contains(&name.len()) && !name.contains(&0) {
        return Ok(());
    }
    Err(QueueError::BadOption(what))
}

fn check_set(name: &str) -> Result<(), QueueError> {
    check_name(name.as_bytes(), NAME_MAX, "the name of a set of atomics has 1 to 128 bytes, none of them NUL")
}

impl Atomics {
    /// Opens the set of this name; creates it if there is none. It has room for 1024 atomics.
    ///
    /// # Errors
    /// [`BadOption`](QueueError::BadOption) for a name that cannot be; the store's: `Full`, `NoSpace`, `AddressSpace`
    /// if there is no room, `ReadOnly`, `Corrupt` if the set is damaged.
    pub fn open(store: &impl StoreHandle, name: &str) -> Result<Atomics, QueueError> {
        check_set(name)?;
        let store = store.shared();
        let bytes = SIZE * (1 + CAPACITY);
        let fill = |mem: &MapMem, base: u64| {
            for word in (0..bytes).step_by(8) {
                mem.store(base + word, 0, Ordering::Relaxed);
            }
            mem.store(base + MAGIC_AT, MAGIC, Ordering::Relaxed);
            mem.store(base + CAPACITY_AT, CAPACITY, Ordering::Relaxed);
        };
        loop {
            if let Some(region) = store.open_region(kind::ATOMICS, name.as_bytes())? {
                let word = |at| region.mem().load(region.offset() + at, Ordering::Acquire);
                if region.len() < bytes || word(MAGIC_AT) != MAGIC || word(CAPACITY_AT) != CAPACITY {
                    return Err(QueueError::damaged("a set of atomics has a wrong header", region.offset()));
                }
                return Ok(Atomics { region: Arc::new(region) });
            }
            let made = store.create_region(kind::ATOMICS, name.as_bytes(), bytes, fill);
            if let Some(region) = made.map_err(|error| no_room(error, bytes))? {
                return Ok(Atomics { region: Arc::new(region) });
            }
        }
    }

    /// Takes the set's name off it. Its room in the file is free again when no process has it open; until then its
    /// atomics can be used by those who have it. `false`: there is none.
    ///
    /// # Errors
    /// [`BadOption`](QueueError::BadOption) for a name that cannot be; the store's.
    pub fn remove(store: &impl StoreHandle, name: &str) -> Result<bool, QueueError> {
        check_set(name)?;
        Ok(store.shared().drop_region(kind::ATOMICS, name.as_bytes())?)
    }

    /// The atomic of this name, of 1 to 56 bytes; made if there is none, and kept until the set is removed.
    ///
    /// # Errors
    /// [`BadOption`](QueueError::BadOption) for a name that cannot be; [`TooMany`](QueueError::TooMany) if the set has
    /// 1024; [`Forked`](QueueError::Forked) in a forked child; [`Removed`](QueueError::Removed).
    pub fn atomic(&self, name: &[u8]) -> Result<Atomic, QueueError> {
        check_name(name, LONGEST, "the name of an atomic has 1 to 56 bytes, none of them NUL")?;
        if !self.region.is_ours() {
            return Err(QueueError::Forked);
        }
        if self.region.is_dropped() {
            return Err(QueueError::Removed);
        }
        let offset = match self.find(name) {
            Ok(offset) => offset,
            // Another process may have made it, or another one there, by now.
            Err(_) => self.region.exclusively(|| self.find(name).or_else(|free| self.make(name, free)))??,
        };
        Ok(Atomic { region: self.region.clone(), offset })
    }

    /// Where the atomic of a name is, or the first place that is free. None is removed, so there is none behind that.
    fn find(&self, name: &[u8]) -> Result<u64, Option<u64>> {
        let mem = self.region.mem();
        let mut found = [0; LONGEST];
        for index in 0..CAPACITY {
            let at = self.region.offset() + SIZE * (1 + index);
            // SYNC(atomic): a process that sees the length sees the name.
            match mem.load(at + LEN, Ordering::Acquire) {
                0 => return Err(Some(at)),
                len if len == name.len() as u64 => {
                    mem.read(at + NAME, &mut found[..name.len()]);
                    if &found[..name.len()] == name {
                        return Ok(at);
                    }
                }
                _ => {}
            }
        }
        Err(None)
    }

    /// A death before the last store leaves the place free.
    fn make(&self, name: &[u8], free: Option<u64>) -> Result<u64, QueueError> {
        let at = free.ok_or(QueueError::TooMany("the set has 1024 atomics; use another set"))?;
        let mem = self.region.mem();
        mem.write(at + NAME, name);
        // SYNC(atomic): see `find`.
        mem.store(at + LEN, name.len() as u64, Ordering::Release);
        Ok(at)
    }
}

impl Atomic {
    /// The word itself, for what the calls below do not do. It stays where it is as long as this is open. After a
    /// change call [`notify`](Self::notify), else those who wait see it within 128 ms.
    ///
    /// # Errors
    /// [`Forked`](QueueError::Forked): this process was forked from the one that opened the set; open it again.
    #[inline]
    pub fn word(&self) -> Result<&AtomicU64, QueueError> {
        if !self.region.is_ours() {
            return Err(QueueError::Forked);
        }
        Ok(self.region.mem().atomic(self.offset + VALUE))
    }

    /// The value.
    ///
    /// # Errors
    /// [`Forked`](QueueError::Forked) as of [`word`](Self::word), as all of these.
    #[inline]
    pub fn load(&self) -> Result<u64, QueueError> {
        Ok(self.word()?.load(Ordering::SeqCst))
    }

    /// Stores a value.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn store(&self, value: u64) -> Result<(), QueueError> {
        self.swap(value).map(drop)
    }

    /// Stores a value; returns the one before.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn swap(&self, value: u64) -> Result<u64, QueueError> {
        self.changed(|word| word.swap(value, Ordering::SeqCst))
    }

    /// Adds, modulo 2^64, so that a negative number is added as its two's complement; returns the value before.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn fetch_add(&self, value: u64) -> Result<u64, QueueError> {
        self.changed(|word| word.fetch_add(value, Ordering::SeqCst))
    }

    /// Keeps the bits that are set in `value`, too; returns the value before.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn fetch_and(&self, value: u64) -> Result<u64, QueueError> {
        self.changed(|word| word.fetch_and(value, Ordering::SeqCst))
    }

    /// Sets the bits of `value`; returns the value before.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn fetch_or(&self, value: u64) -> Result<u64, QueueError> {
        self.changed(|word| word.fetch_or(value, Ordering::SeqCst))
    }

    /// Flips the bits of `value`; returns the value before.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn fetch_xor(&self, value: u64) -> Result<u64, QueueError> {
        self.changed(|word| word.fetch_xor(value, Ordering::SeqCst))
    }

    /// Stores `new` if the value is `current`; returns the value before, which says whether it was.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, QueueError> {
        match self.word()?.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(before) => {
                self.wake();
                Ok(before)
            }
            Err(before) => Ok(before),
        }
    }

    /// Waits until the value is another than `seen`, as long as `timeout`; returns it. `None`: it was `seen` whenever
    /// it was looked at.
    ///
    /// # Errors
    /// As [`load`](Self::load); [`Removed`](QueueError::Removed) if the set is removed while it waits.
    pub fn wait(&self, seen: u64, timeout: Duration) -> Result<Option<u64>, QueueError> {
        let mem = self.region.mem();
        let mut backoff = Backoff::new(timeout);
        loop {
            let event = mem.load(self.offset + EVENT, Ordering::Acquire);
            // SYNC(atomic sleepers): the flag is there before the last look; see `wake`.
            mem.swap(self.offset + SLEEPERS, 1, Ordering::SeqCst);
            let now = self.load()?;
            if now != seen {
                return Ok(Some(now));
            }
            let Some(time) = backoff.next() else { return Ok(None) };
            if self.region.is_dropped() {
                return Err(QueueError::Removed);
            }
            mem.wait(self.offset + EVENT, event as u32, time);
        }
    }

    /// Wakes those who [`wait`](Self::wait), to look again: after a change through [`word`](Self::word).
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn notify(&self) -> Result<(), QueueError> {
        self.word()?;
        self.wake();
        Ok(())
    }

    #[inline]
    fn changed(&self, change: impl FnOnce(&AtomicU64) -> u64) -> Result<u64, QueueError> {
        let before = change(self.word()?);
        self.wake();
        Ok(before)
    }

    #[inline]
    fn wake(&self) {
        let mem = self.region.mem();
        // SYNC(atomic sleepers): the change and this load are sequentially consistent, as are the flag and the look of
        // one that is about to sleep: one of the two sees the other. A death before the wake costs a sleep of 128 ms.
        if mem.load(self.offset + SLEEPERS, Ordering::SeqCst) != 0 {
            self.wake_sleepers();
        }
    }

    #[cold]
    fn wake_sleepers(&self) {
        let mem = self.region.mem();
        if mem.swap(self.offset + SLEEPERS, 0, Ordering::SeqCst) != 0 {
            mem.fetch_add(self.offset + EVENT, 1, Ordering::AcqRel);
            mem.wake(self.offset + EVENT);
        }
    }
}

impl std::fmt::Debug for Atomics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Atomics").field("region", &self.region).finish()
    }
}

impl std::fmt::Debug for Atomic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Atomic").field("value", &self.load().ok()).finish_non_exhaustive()
    }
}
