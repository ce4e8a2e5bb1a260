//! Any moment of a store: a backup, and behind it the changes in a feed directory up to that moment.
//!
//! The result is a new store. A change that the backup has already is known by its version and passed over. Where a
//! consumer had to begin again in the directory (a reset), the keys that were read then are what the store had: what is
//! not among them is gone. A transaction is applied when all of it is there.

use crate::dir::read_dir;
use crate::sink::SinkError;
use hashmere::{
    Attributes, BackupError, Cursor, Error, Filter, Key, Metadata, OpenError, Options, Store, Ttl, Version,
};
use hashmere_feed::{Change, Event, Operation, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// What is restored.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestoreOptions {
    /// The moment, in milliseconds since 1970: changes up to it. `None`: all.
    pub until_ms: Option<u64>,
    /// Replace the store that is there.
    pub replace: bool,
}

/// What was restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Changes that were applied.
    pub applied: u64,
    /// Changes that the backup had already, or that came twice.
    pub passed_over: u64,
    /// Changes after the moment.
    pub later: u64,
    /// Keys of the store.
    pub items: u64,
}

/// Why nothing was restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// The directory cannot be read.
    Feed(SinkError),
    /// The backup cannot be opened.
    Open(OpenError),
    /// It cannot be copied.
    Backup(BackupError),
    /// The new store does not take the changes.
    Store(Error),
    /// Backup, directory and moment do not fit together: the text says how.
    Unfit(String),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Feed(error) => write!(f, "the feed directory: {error}"),
            RestoreError::Open(error) => error.fmt(f),
            RestoreError::Backup(error) => error.fmt(f),
            RestoreError::Store(error) => error.fmt(f),
            RestoreError::Unfit(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for RestoreError {}

impl From<OpenError> for RestoreError {
    fn from(error: OpenError) -> RestoreError {
        RestoreError::Open(error)
    }
}

impl From<BackupError> for RestoreError {
    fn from(error: BackupError) -> RestoreError {
        RestoreError::Backup(error)
    }
}

/// Makes a store at `target` that is what the store of the backup was at a moment after it.
///
/// If it fails, there is no store at `target`.
///
/// # Errors
/// [`RestoreError`].
pub fn restore(
    backup: &Path,
    dir: &Path,
    target: &Path,
    options: RestoreOptions,
) -> Result<RestoreReport, RestoreError> {
    // At the latest: a copy of the file may be younger.
    let changed = Store::path_of(backup)?.metadata().and_then(|metadata| metadata.modified()).ok();
    let made_ms = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|time| time.as_millis() as u64);
    let source = Options::new().create(false).open(backup)?;
    // Beside it, so that what is under its name is complete.
    let target = Store::path_of(target)?;
    let mut partial = target.clone().into_os_string();
    partial.push(format!(".{}.mere", std::process::id()));
    let partial = Path::new(&partial);
    let _ = std::fs::remove_file(partial);
    source.backup(partial).run()?;
    let restored = replay(partial, dir, options.until_ms, made_ms).and_then(|report| {
        let store = Options::new().create(false).open(partial)?;
        store.backup(&target).replace(options.replace).run()?;
        Ok(report)
    });
    let _ = Store::remove(partial);
    restored
}

fn replay(
    store: &Path,
    dir: &Path,
    until_ms: Option<u64>,
    made_ms: Option<u64>,
) -> Result<RestoreReport, RestoreError> {
    let store = Options::new().create(false).open(store)?;
    let until = until_ms.unwrap_or(u64::MAX);
    let mut replay = Replay {
        store: &store,
        until,
        report: RestoreReport::default(),
        versions: HashMap::new(),
        unknown: HashSet::new(),
        transaction: Vec::new(),
        copying: None,
        was_reset: false,
        failed: None,
    };
    let read = read_dir(dir, |event, ts_ms| {
        replay.event(event, ts_ms).map_err(|error| {
            let text = error.to_string();
            replay.failed = Some(error);
            SinkError::Refused(text)
        })
    });
    if let Some(error) = replay.failed.take() {
        return Err(error);
    }
    let read = read.map_err(RestoreError::Feed)?;
    if !replay.was_reset && made_ms.is_some_and(|made| made < read.started_ms) {
        let text = "the feed directory was begun after the backup was made, so what happened between is not known; \
                    use a later backup";
        return Err(RestoreError::Unfit(text.into()));
    }
    if replay.copying.is_some() {
        let text = "at that moment the feed directory was being filled again from the store's keys, so it does not \
                    know what the store had; choose a later moment, or one before that";
        return Err(RestoreError::Unfit(text.into()));
    }
    if let Some(key) = replay.unknown.iter().next() {
        let text = format!(
            "the values of {} keys at that moment are not known, `{}` among them: the feed did not keep them, because \
             they were too long for it; choose a later moment",
            replay.unknown.len(),
            String::from_utf8_lossy(key)
        );
        return Err(RestoreError::Unfit(text));
    }
    let mut report = replay.report;
    report.items = store.len();
    Ok(report)
}

struct Replay<'a> {
    store: &'a Store,
    until: u64,
    report: RestoreReport,
    /// Versions of changes that were applied, where the store has another one: it had a larger one to give.
    versions: HashMap<Vec<u8>, Version>,
    /// Keys whose last change came without its value.
    unknown: HashSet<Vec<u8>>,
    /// Of a transaction, as far as it has come.
    transaction: Vec<Change>,
    /// Keys that were read since a reset.
    copying: Option<HashSet<Vec<u8>>>,
    /// The directory has a copy of every key at some moment, so it needs nothing from before.
    was_reset: bool,
    failed: Option<RestoreError>,
}

impl Replay<'_> {
    fn event(&mut self, event: Event, ts_ms: u64) -> Result<(), RestoreError> {
        let is_later = ts_ms > self.until;
        match event {
            Event::Read(change) | Event::Change(change) if is_later => self.later(&change)?,
            _ if is_later => self.report.later += 1,
            Event::Reset { .. } => {
                self.transaction.clear();
                self.copying = Some(HashSet::new());
                self.was_reset = true;
            }
            Event::Read(change) => self.apply(&change)?,
            Event::Change(change) => self.change(change)?,
            Event::Clear { .. } => {
                self.store.clear().map_err(|error| RestoreError::Store(error.into()))?;
                self.unknown.clear();
                self.versions.clear();
                if let Some(read) = &mut self.copying {
                    read.clear();
                }
                self.report.applied += 1;
            }
            Event::Synced { .. } => self.synced()?,
            _ => {}
        }
        Ok(())
    }

    /// A change after the moment is not applied. That the backup has it is an error.
    fn later(&mut self, change: &Change) -> Result<(), RestoreError> {
        self.report.later += 1;
        let is_set = matches!(change.operation, Operation::Set);
        if is_set && !self.versions.contains_key(&change.key) {
            if let Some(found) = self.metadata(change)? {
                if found.version >= change.version {
                    let text = format!(
                        "the backup is of a later moment: it has a change of `{}` from {} ms since 1970; choose an \
                         earlier backup, or a later moment",
                        String::from_utf8_lossy(&change.key),
                        change.ts_ms
                    );
                    return Err(RestoreError::Unfit(text));
                }
            }
        }
        Ok(())
    }

    fn change(&mut self, change: Change) -> Result<(), RestoreError> {
        let Some(part) = change.transaction else {
            return self.apply(&change);
        };
        if part.index == 0 {
            self.transaction.clear();
        }
        // One that came twice in part begins again.
        self.transaction.truncate(part.index as usize);
        self.transaction.push(change);
        if self.transaction.len() == part.len as usize {
            for change in std::mem::take(&mut self.transaction) {
                self.apply(&change)?;
            }
        }
        Ok(())
    }

    fn synced(&mut self) -> Result<(), RestoreError> {
        let Some(read) = self.copying.take() else { return Ok(()) };
        let mut gone = Vec::new();
        for pair in self.store.scan(Cursor::START, Filter::all().keys_only()) {
            let pair = pair.map_err(|error| RestoreError::Store(error.into()))?;
            if !read.contains(&pair.key) {
                gone.push(pair.key);
            }
        }
        for key in gone {
            self.store.delete(&key[..]).map_err(|error| RestoreError::Store(error.into()))?;
        }
        Ok(())
    }

    fn metadata(&self, change: &Change) -> Result<Option<Metadata>, RestoreError> {
        let found = match change.supplied_hash {
            Some(hash) => self.store.metadata(Key::with_hash(&change.key, hash)),
            None => self.store.metadata(&change.key[..]),
        };
        found.map_err(|error| RestoreError::Store(error.into()))
    }

    fn apply(&mut self, change: &Change) -> Result<(), RestoreError> {
        let found = self.metadata(change)?;
        let version = self.versions.get(&change.key).copied().or(found.map(|found| found.version));
        if self.copying.is_none() && version.is_some_and(|version| version > change.version) {
            self.report.passed_over += 1;
            return Ok(());
        }
        let is_there = version == Some(change.version) && self.copying.is_none();
        if let Some(read) = self.copying.as_mut().filter(|_| !change.operation.removes()) {
            read.insert(change.key.clone());
        }
        match change.operation {
            Operation::Touch if version != Some(change.version) => self.report.passed_over += 1,
            // What a backup has of a version may have been touched before or after: all touches come.
            Operation::Touch => self.touch(change, found)?,
            operation if operation.removes() => {
                self.delete(change)?;
                self.report.applied += 1;
            }
            Operation::Set if is_there => self.report.passed_over += 1,
            _ => self.set(change)?,
        }
        Ok(())
    }

    fn delete(&mut self, change: &Change) -> Result<(), RestoreError> {
        self.unknown.remove(&change.key);
        self.versions.remove(&change.key);
        let deleted = match change.supplied_hash {
            Some(hash) => self.store.delete(Key::with_hash(&change.key, hash)),
            None => self.store.delete(&change.key[..]),
        };
        deleted.map(|_| ()).map_err(|error| RestoreError::Store(error.into()))
    }

    fn set(&mut self, change: &Change) -> Result<(), RestoreError> {
        let value = match &change.value {
            Value::Bytes(value) => value,
            Value::Superseded => {
                self.unknown.insert(change.key.clone());
                self.report.passed_over += 1;
                return Ok(());
            }
            _ => {
                let text = "the feed directory has no values: it was written without `--values`";
                return Err(RestoreError::Unfit(text.into()));
            }
        };
        self.store_value(change, value, change.flags)?;
        self.unknown.remove(&change.key);
        self.report.applied += 1;
        Ok(())
    }

    fn touch(&mut self, change: &Change, found: Option<Metadata>) -> Result<(), RestoreError> {
        if found.is_none_or(|found| found.flags == change.flags) {
            let touched = match change.supplied_hash {
                Some(hash) => self.store.touch(Key::with_hash(&change.key, hash), ttl(change)),
                None => self.store.touch(&change.key[..], ttl(change)),
            };
            touched.map_err(|error| RestoreError::Store(error.into()))?;
        } else {
            let value = match change.supplied_hash {
                Some(hash) => self.store.get(Key::with_hash(&change.key, hash)),
                None => self.store.get(&change.key[..]),
            };
            if let Some(value) = value.map_err(|error| RestoreError::Store(error.into()))? {
                self.store_value(change, &value, change.flags)?;
            }
        }
        self.report.applied += 1;
        Ok(())
    }

    fn store_value(&mut self, change: &Change, value: &[u8], flags: u32) -> Result<(), RestoreError> {
        let least = change.version.min(Version::MIN_VERSION_MAX);
        let attributes = Attributes { flags, ttl: ttl(change), min_version: least };
        let stored = match change.supplied_hash {
            Some(hash) => self.store.set_with(Key::with_hash(&change.key, hash), value, attributes),
            None => self.store.set_with(&change.key[..], value, attributes),
        };
        let stored = stored.map_err(|error| RestoreError::Store(error.into()))?;
        if stored.version == change.version {
            self.versions.remove(&change.key);
        } else {
            self.versions.insert(change.key.clone(), change.version);
        }
        Ok(())
    }
}

fn ttl(change: &Change) -> Ttl {
    change.expires_at_ms.map_or(Ttl::Never, Ttl::At)
}
