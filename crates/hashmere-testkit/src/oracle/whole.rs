//! Actions on many keys, and the comparison of everything.

use super::driver::{is_hashed, Driver};
use super::Whole;
use hashmere::{Attributes, Cursor, Filter, Options, Pair};
use std::collections::HashSet;
use std::sync::Mutex;

impl Driver {
    /// Does an action on many keys, and compares.
    pub(super) fn whole(&mut self, action: &Whole) {
        match action {
            Whole::GetMany(keys) => {
                let found = self.store().get_many(keys).unwrap();
                assert_eq!(found.len(), keys.len());
                for (key, value) in keys.iter().zip(&found) {
                    self.compare_value(key, value.as_deref());
                }
            }
            Whole::GetManyWith(keys) => {
                let mut found = Vec::new();
                let each = |index, value: Option<&[u8]>| found.push((index, value.map(<[u8]>::to_vec)));
                self.store().get_many_with(keys, each).unwrap();
                assert!(found.iter().map(|(index, _)| *index).eq(0..keys.len()), "in order: {found:?}");
                for (key, (_, value)) in keys.iter().zip(&found) {
                    self.compare_value(key, value.as_deref());
                }
            }
            Whole::SetMany(pairs) => {
                assert_eq!(self.store().set_many(pairs).unwrap(), pairs.len());
                for (key, value) in pairs {
                    if self.plan.cache {
                        // It may be evicted while room is made for those before it, and come back elsewhere.
                        self.model.remove(key);
                    }
                    self.model.put(key, value, Attributes::NONE);
                }
                pairs.iter().for_each(|(key, _)| self.verify_meta(key, false));
            }
            Whole::DeleteMany(keys) => {
                let removed = self.store().delete_many(keys).unwrap();
                let expected = keys.iter().filter(|key| self.model.remove(key)).count();
                assert!(removed == expected || self.plan.cache && removed < expected, "{removed} of {expected}");
            }
            Whole::ScanPrefix(prefix) => {
                let filter = Filter::all().prefix(prefix.clone());
                self.compare_filtered(filter, |key| key.starts_with(prefix));
            }
            Whole::ScanGlob(pattern) => {
                let filter = Filter::all().glob(pattern.clone()).expect("a good pattern");
                self.compare_filtered(filter, |key| matches_glob(pattern, key));
            }
            Whole::Random => match self.store().random().unwrap() {
                Some(pair) => self.compare_pair(&pair),
                None => assert!(self.model.entries.is_empty() || self.plan.cache, "random() found nothing"),
            },
            Whole::Clear => {
                self.store().clear().unwrap();
                self.model.entries.clear();
                self.model.ghosts.clear();
                assert_eq!(self.store().len(), 0, "count after clear");
            }
            Whole::Maintain => {
                self.store().compact().unwrap();
            }
            Whole::Reopen => {
                let second = Options::new().create(false).open(&self.plan.path).unwrap();
                self.store = Some(second);
            }
            Whole::CloseAndOpen => {
                self.store = None;
                self.store = Some(Options::new().create(false).open(&self.plan.path).unwrap());
            }
        }
    }

    fn compare_value(&mut self, key: &[u8], value: Option<&[u8]>) {
        let expected = self.model.entries.get(key).map(|entry| &entry.value[..]);
        if value != expected {
            if value.is_none() && self.plan.cache {
                self.model.remove(key);
                return;
            }
            self.fail(key, &format!("bulk get found {value:?}"));
        }
    }

    fn compare_pair(&self, pair: &Pair) {
        let Some(entry) = self.model.entries.get(&pair.key) else {
            let ghost = self.model.ghosts.contains(&pair.key);
            self.fail(&pair.key, &format!("was found but is not there (expired: {ghost}): {:?}", pair.metadata));
        };
        let same = entry.value == pair.value
            && entry.flags == pair.metadata.flags
            && entry.expiry.allows(pair.metadata.expires_at_ms)
            && entry.uid.is_none_or(|uid| uid == pair.metadata.uid.0);
        if !same {
            self.fail(&pair.key, &format!("was found as {pair:?}"));
        }
    }

    fn compare_filtered(&mut self, filter: Filter, wanted: impl Fn(&[u8]) -> bool) {
        let found: Vec<Pair> = self.store().scan(Cursor::START, filter).collect::<Result<_, _>>().expect("scan");
        found.iter().for_each(|pair| self.compare_pair(pair));
        let keys: HashSet<&[u8]> = found.iter().map(|pair| &pair.key[..]).collect();
        assert_eq!(keys.len(), found.len(), "a scan returned a key twice");
        for key in self.model.entries.keys().filter(|key| wanted(key)) {
            if !keys.contains(&key[..]) && !self.plan.cache {
                self.fail(key, "was not found by a filtered scan");
            }
        }
        let foreign = keys.iter().find(|key| !wanted(key));
        assert!(foreign.is_none(), "a filtered scan found {foreign:?}");
    }

    /// Compares every key, the number of keys, and has the store check itself.
    pub(super) fn compare_everything(&mut self) {
        let store = self.store().clone();
        let pairs: Vec<Pair> = store.iter().collect::<Result<_, _>>().expect("scan");
        pairs.iter().for_each(|pair| self.compare_pair(pair));
        let seen: HashSet<&[u8]> = pairs.iter().map(|pair| &pair.key[..]).collect();
        assert_eq!(seen.len(), pairs.len(), "step {}: a scan returned a key twice", self.step);
        if self.plan.cache {
            self.model.entries.retain(|key, _| seen.contains(&key[..]));
        }
        if let Some(key) = self.model.entries.keys().find(|key| !seen.contains(&key[..])) {
            self.fail(key, "was not found by a scan");
        }
        let (least, most) = (seen.len() as u64, (seen.len() + self.model.ghosts.len()) as u64);
        let count = store.len();
        let step = self.step;
        assert!((least..=most).contains(&count), "step {step}: count() is {count}, not {least} to {most}");
        assert_eq!(store.is_empty(), count == 0);
        assert_eq!(store.stats().items, count, "step {step}: items in the statistics");
        let report = store.check();
        assert!(report.is_clean(), "step {step}: check() found {:#?}", report.problems);
        self.compare_other_scans(&store, &seen);
    }

    /// The other ways to see all keys see the same ones.
    fn compare_other_scans(&self, store: &hashmere::Store, seen: &HashSet<&[u8]>) {
        let keys: Vec<Vec<u8>> = store.keys().collect::<Result<_, _>>().expect("keys");
        assert!(keys.len() == seen.len() && keys.iter().all(|key| seen.contains(&key[..])), "keys()");
        let parallel = Mutex::new(Vec::new());
        let each = |pair: Pair| parallel.lock().expect("not poisoned").push(pair.key);
        store.parallel_scan(3, &Filter::all(), each).expect("parallel scan");
        let parallel = parallel.into_inner().expect("not poisoned");
        assert!(parallel.len() == seen.len() && parallel.iter().all(|key| seen.contains(&key[..])), "parallel_scan()");
        for key in seen.iter().filter(|key| !is_hashed(key)).take(50) {
            let value = store.get(key).unwrap();
            assert!(value.is_some_and(|value| value == self.model.entries[*key].value), "get of {key:?}");
        }
    }
}

/// A slow and obvious matcher: `*`, `?`, `[set]`, `[!set]`.
fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|skip| matches_glob(rest, &text[skip..])),
        [b'?', rest @ ..] => !text.is_empty() && matches_glob(rest, &text[1..]),
        [b'[', rest @ ..] => {
            let end = rest.iter().position(|&byte| byte == b']').expect("a closed set");
            let (negated, set) = match &rest[..end] {
                [b'!', set @ ..] => (true, set),
                set => (false, set),
            };
            let Some(&byte) = text.first() else { return false };
            let within = match set {
                [low, b'-', high] => (*low..=*high).contains(&byte),
                _ => set.contains(&byte),
            };
            within != negated && matches_glob(&rest[end + 1..], &text[1..])
        }
        [byte, rest @ ..] => text.first() == Some(byte) && matches_glob(rest, &text[1..]),
    }
}
