//! Does random actions on a store and on the model, and compares.

use super::generate::Generator;
use super::model::{Entry, Model};
use super::perform::{perform, Done, Known};
use super::{hash_of, Action, Hashed, Outcome, Want};
use crate::rng::{run_seed, Rng};
use hashmere::{Key, Metadata, Options, Store, Stored, WriteError};
use std::collections::VecDeque;
use std::path::PathBuf;

/// Actions between two flips from growing to shrinking and back.
const PHASE: u64 = 1500;
/// How many past actions a failure shows at most, and how many are looked through for them.
const TRACE_SHOWN: usize = 12;
const TRACE_KEPT: usize = 4000;
/// Stands for all keys in the trace.
const ALL: &[u8] = b"(all)";
/// Values that appending has made longer than this are replaced.
const VALUE_MAX: usize = 40_000;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Path of the store (it is created there).
    pub path: PathBuf,
    /// How it is created.
    pub options: Options,
    /// Whether keys may vanish by eviction.
    pub cache: bool,
    /// Number of actions.
    pub steps: u64,
    /// Actions between two comparisons of everything.
    pub whole_every: u64,
    /// Number of ordinary keys.
    pub keys: u64,
    /// Whether values longer than a segment are stored.
    pub long_values: bool,
}

/// A store and its model, side by side.
#[derive(Debug)]
pub struct Driver {
    pub(super) plan: Plan,
    pub(super) model: Model,
    /// Always there, except between closing and opening.
    pub(super) store: Option<Store>,
    pub(super) step: u64,
    generator: Generator,
    trace: VecDeque<(u64, Vec<u8>, String)>,
}

impl Driver {
    /// Creates the store.
    ///
    /// # Panics
    /// If that fails.
    pub fn new(plan: Plan, rng: Rng) -> Driver {
        let store = plan.options.open(&plan.path).unwrap_or_else(|error| panic!("create: {error}"));
        let generator = Generator { rng, keys: plan.keys, long_values: plan.long_values, removals: 5 };
        let trace = VecDeque::new();
        Driver { plan, model: Model::default(), store: Some(store), step: 0, generator, trace }
    }

    /// The store, for what a test wants to know of it afterwards.
    ///
    /// # Panics
    /// Never after [`new`](Self::new).
    pub fn store(&self) -> &Store {
        self.store.as_ref().expect("open")
    }

    /// Runs the plan.
    ///
    /// # Panics
    /// On the first difference between store and model.
    pub fn run(&mut self) {
        for step in 0..self.plan.steps {
            self.step = step;
            self.generator.removals = if (step / PHASE) % 2 == 0 { 4 } else { 55 };
            self.act();
            if step % self.plan.whole_every == 0 {
                self.compare_everything();
            }
        }
        self.compare_everything();
    }

    /// Does one action for each seed: which one, and on which key, depends on its own seed only, so any part of a
    /// history is one.
    ///
    /// # Panics
    /// On the first difference between store and model.
    pub fn run_seeds(&mut self, seeds: &[u64]) {
        for (step, seed) in (0..).zip(seeds) {
            self.step = step;
            self.generator.rng = Rng::from_seed(*seed);
            self.generator.removals = 20;
            self.act();
        }
        self.compare_everything();
    }

    /// One random action.
    fn act(&mut self) {
        match self.generator.rng.below(100) {
            0..4 => {
                let action = self.generator.whole();
                self.note(ALL, &action);
                self.whole(&action);
            }
            4..14 => {
                let (key, action) = self.generator.hashed();
                self.single(&key, &Action::Hashed(action));
            }
            _ => {
                let key = self.generator.key();
                let action = self.generator.action();
                self.single(&key, &action);
            }
        }
    }

    fn single(&mut self, key: &[u8], action: &Action) {
        let before = self.model.entries.get(key).cloned();
        let known = before.as_ref().map(|entry| Known { value: entry.value.clone(), version: entry.version });
        let long = known.as_ref().is_some_and(|known| known.value.len() > VALUE_MAX);
        let action = if long { &Action::Set(b"short again".to_vec()) } else { action };
        self.note(key, action);
        let mut expected = self.model.apply(key, action);
        let (outcome, stored) = self.done(key, perform(self.store(), key, action, &known.unwrap_or_default()));
        if outcome != expected && self.plan.cache && before.is_some() {
            // It may have been evicted just before.
            self.model.remove(key);
            expected = match action {
                // The version that was asked for is one that an absent key does not have.
                Action::Cas(Want::ThisVersion, _) => Outcome::Absent,
                _ => self.model.apply(key, action),
            };
        }
        if outcome != expected {
            self.fail(key, &format!("returned {outcome:?}\n instead of {expected:?}"));
        }
        if self.plan.cache && before.is_some() && !self.is_as_stored(key) {
            // Evicted just before, and the outcome is that of an absent key as well: a counter of 0 becomes 1, a
            // missing one too.
            self.model.remove(key);
            expected = self.model.apply(key, action);
            assert_eq!(outcome, expected, "step {}, key {key:?}: another entry than both models have", self.step);
        }
        if let Some(stored) = stored {
            self.verify_stored(key, stored);
        }
        let touched = matches!(action, Action::Touch(_) | Action::GetAndTouch(_));
        match action {
            Action::Hashed(action) => self.verify_hashed(key, action),
            _ => self.verify_meta(key, touched),
        }
    }

    /// In a cache, a number may have become stale while the call made room for its own value.
    fn done(&self, key: &[u8], result: Result<Done, WriteError>) -> Done {
        match result {
            Ok(done) => done,
            Err(WriteError::Stale) if self.plan.cache => (Outcome::Absent, None),
            Err(error) => self.fail(key, &format!("failed: {error:?}")),
        }
    }

    fn verify_stored(&mut self, key: &[u8], stored: Stored) {
        let newest = self.model.newest.get(key).copied().unwrap_or(0);
        if stored.version.0 <= newest {
            self.fail(key, &format!("got version {} after {newest}", stored.version.0));
        }
        self.model.newest.insert(key.to_vec(), stored.version.0);
        // It is not there when it was stored with a time that is past.
        let Some(entry) = self.model.entries.get_mut(key) else { return };
        let uid = *entry.uid.get_or_insert(stored.uid.0);
        (entry.version, entry.changed) = (stored.version.0, false);
        if uid != stored.uid.0 {
            self.fail(key, &format!("got UID {:#x}, had {uid:#x}", stored.uid.0));
        }
    }

    fn verify_hashed(&mut self, key: &[u8], action: &Hashed) {
        if self.plan.cache || *action == Hashed::OtherHash {
            return;
        }
        let uid = self.store().metadata(Key::with_hash(key, hash_of(key)));
        let uid =
            uid.unwrap_or_else(|error| self.fail(key, &format!("metadata() failed: {error:?}"))).map(|meta| meta.uid);
        let Some(entry) = self.model.entries.get_mut(key) else {
            if let Some(uid) = uid {
                self.fail(key, &format!("has UID {:#x} but is not there", uid.0));
            }
            return;
        };
        let Some(uid) = uid else { self.fail(key, "has no UID") };
        let had = *entry.uid.get_or_insert(uid.0);
        if had != uid.0 {
            self.fail(key, &format!("got UID {:#x}, had {had:#x}", uid.0));
        }
        let (named, item) = (self.store().key_of(uid).unwrap(), self.store().get_item(uid).unwrap());
        let value = &self.model.entries[key].value;
        let Some(item) = item.filter(|item| named.as_deref() == Some(key) && item.value == *value) else {
            self.fail(key, &format!("its UID {:#x} names {named:?}", uid.0));
        };
        self.learn_version(key, item.metadata, false);
    }

    /// Compares everything about a key but its bytes.
    pub(super) fn verify_meta(&mut self, key: &[u8], touched: bool) {
        let meta =
            self.store().metadata(key).unwrap_or_else(|error| self.fail(key, &format!("meta() failed: {error:?}")));
        match (meta, self.model.entries.contains_key(key)) {
            (None, false) => {}
            (None, true) if self.plan.cache => {
                self.model.remove(key);
            }
            (Some(meta), true) => self.compare_meta(key, meta, touched),
            (meta, _) => self.fail(key, &format!("meta() is {meta:?}")),
        }
    }

    /// Whether the store has the key as the model does, or not at all.
    fn is_as_stored(&self, key: &[u8]) -> bool {
        match (self.store().metadata(key), self.model.entries.get(key)) {
            (Ok(Some(meta)), Some(entry)) => is_entry(&meta, entry),
            _ => true,
        }
    }

    fn compare_meta(&mut self, key: &[u8], meta: Metadata, touched: bool) {
        if !is_entry(&meta, &self.model.entries[key]) {
            let entry = &self.model.entries[key];
            let length = entry.value.len();
            let Some(entry) = self.model.entries.get_mut(key) else { return };
            entry.value.clear();
            let text = format!("meta() is {meta:?}, not {length} bytes {entry:?}");
            self.fail(key, &text);
        }
        self.learn_version(key, meta, touched);
    }

    fn learn_version(&mut self, key: &[u8], meta: Metadata, touched: bool) {
        let newest = self.model.newest.get(key).copied().unwrap_or(0);
        let Some(entry) = self.model.entries.get_mut(key) else { return };
        let version = meta.version.0;
        let right = match (entry.changed, touched) {
            (false, _) => version == entry.version,
            (true, true) => version >= newest,
            (true, false) => version > newest,
        };
        let had = std::mem::replace(&mut entry.version, version);
        entry.changed = false;
        entry.uid = Some(meta.uid.0);
        self.model.newest.insert(key.to_vec(), version);
        if !right {
            self.fail(key, &format!("has version {version}, had {had} (largest ever {newest})"));
        }
    }

    fn note(&mut self, key: &[u8], action: &impl std::fmt::Debug) {
        if self.trace.len() == TRACE_KEPT {
            self.trace.pop_front();
        }
        self.trace.push_back((self.step, key.to_vec(), format!("{action:?}")));
    }

    /// Ends the run with what led there.
    pub(super) fn fail(&self, key: &[u8], problem: &str) -> ! {
        let name: String = String::from_utf8_lossy(key).chars().take(20).collect();
        let mut text = format!("step {}, key {name:?} of {} bytes: {problem}\n", self.step, key.len());
        // Actions on many keys count if they name this one, or none.
        let named = format!("{key:?}");
        let relevant = |(_, on, action): &&(u64, Vec<u8>, String)| {
            on == key || on == ALL && (action.contains(&named) || !action.contains('('))
        };
        let mut shown: Vec<_> = self.trace.iter().rev().filter(relevant).take(TRACE_SHOWN).collect();
        shown.reverse();
        for (step, _, action) in shown {
            let action: String = action.chars().take(200).collect();
            text += &format!("  step {step}: {action}\n");
        }
        panic!("{text}replay with HASHMERE_SEED={:#x}", run_seed());
    }
}

/// Whether a key belongs to the family with caller-supplied hashes, which plain calls do not find.
pub(super) fn is_hashed(key: &[u8]) -> bool {
    key.first() == Some(&b'h')
}

/// Whether this is the metadata of what the model has, as far as it knows.
fn is_entry(meta: &Metadata, entry: &Entry) -> bool {
    meta.value_len == entry.value.len() as u64
        && meta.flags == entry.flags
        && entry.expiry.allows(meta.expires_at_ms)
        && entry.uid.is_none_or(|uid| uid == meta.uid.0)
}
