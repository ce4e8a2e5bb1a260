//! `stats detail`: requests by the prefix of their key.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most prefixes. Requests with further ones are not counted, since clients choose the prefixes.
const PREFIXES_MAX: usize = 10_000;

/// What is counted of a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// The counts.
#[derive(Debug)]
pub struct Detail {
    on: AtomicBool,
    /// What a prefix ends with.
    pub delimiter: u8,
    prefixes: Mutex<BTreeMap<Box<[u8]>, Counts>>,
}

impl Detail {
    /// With a delimiter of its own it counts from the start.
    pub fn new(delimiter: Option<u8>) -> Detail {
        Detail {
            on: AtomicBool::new(delimiter.is_some()),
            delimiter: delimiter.unwrap_or(b':'),
            prefixes: Mutex::default(),
        }
    }

    /// Whether it counts.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Begins or ends counting; what was counted stays.
    pub fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// Forgets what was counted.
    pub fn reset(&self) {
        self.lock().clear();
    }

    /// A key was read.
    #[inline]
    pub fn fetched(&self, key: &[u8], found: bool) {
        if self.is_on() {
            self.count(key, |counts| {
                counts.gets += 1;
                counts.hits += u64::from(found);
            });
        }
    }

    /// A storing command named this key.
    #[inline]
    pub fn stored(&self, key: &[u8]) {
        if self.is_on() {
            self.count(key, |counts| counts.sets += 1);
        }
    }

    /// A deletion named this key.
    #[inline]
    pub fn deleted(&self, key: &[u8]) {
        if self.is_on() {
            self.count(key, |counts| counts.deletes += 1);
        }
    }

    #[cold]
    fn count(&self, key: &[u8], count: impl FnOnce(&mut Counts)) {
        let Some(end) = key.iter().position(|byte| *byte == self.delimiter) else { return };
        let (prefix, mut prefixes) = (&key[..end], self.lock());
        if let Some(counts) = prefixes.get_mut(prefix) {
            count(counts);
        } else if prefixes.len() < PREFIXES_MAX {
            count(prefixes.entry(prefix.into()).or_default());
        }
    }

    /// A line for each prefix.
    pub fn dump(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (prefix, Counts { gets, hits, sets, deletes }) in self.lock().iter() {
            text.extend_from_slice(b"PREFIX ");
            text.extend_from_slice(prefix);
            let mut counts = String::new();
            // Writing to a string does not fail.
            let _ = write!(counts, " get {gets} hit {hits} set {sets} del {deletes}\r\n");
            text.extend_from_slice(counts.as_bytes());
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<[u8]>, Counts>> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_counted_and_bounded() {
        let detail = Detail::new(Some(b'/'));
        detail.fetched(b"a/b", true);
        detail.fetched(b"a/c/d", false);
        detail.stored(b"/x");
        detail.deleted(b"none");
        detail.switch(false);
        detail.deleted(b"a/b");
        let text = "PREFIX  get 0 hit 0 set 1 del 0\r\nPREFIX a get 2 hit 1 set 0 del 0\r\n";
        assert_eq!(String::from_utf8(detail.dump()).unwrap(), text);
        detail.switch(true);
        (0..2 * PREFIXES_MAX).for_each(|i| detail.stored(format!("{i}/").as_bytes()));
        assert_eq!(detail.lock().len(), PREFIXES_MAX);
        detail.reset();
        assert!(detail.dump().is_empty());
    }
}
