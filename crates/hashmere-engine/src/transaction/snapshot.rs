//! Several keys as they were at one moment, without a lock.
//!
//! All keys are read, and then each is looked at again. One that is at the version it was read at had it all the time
//! between: versions of a key never come again. One that was absent both times was absent all the time if the version
//! of its bucket is the same: a writer that creates a key in between releases the bucket's lock with a later one, and
//! one that has not released it yet has made one change at most. So if all are as they were, all were so at the moment
//! between the two passes.

use crate::engine::{Engine, KeyHash};
use crate::error::ReadError;
use crate::fault::{self, Fault};
use crate::transaction::backoff::Backoff;
use crate::transaction::Reader;
use crate::types::{Item, Metadata};
use hashmere_mem::{Host, Mem};

/// Attempts of a snapshot read.
const ATTEMPTS: u32 = 1000;

/// What a key was when it was read.
pub(crate) struct Seen {
    /// The version of its bucket, before that.
    pub(crate) version: u64,
    pub(crate) metadata: Option<Metadata>,
}

impl Seen {
    /// Whether two looks saw the same, so that nothing else was there in between.
    pub(super) fn is_same(&self, later: &Seen) -> bool {
        match (&self.metadata, &later.metadata) {
            (None, None) => self.version == later.version || fault::is(Fault::AbsenceUnproved),
            (Some(a), Some(b)) => a.is_same_but_expiry(b) && a.expires_at_ms == b.expires_at_ms,
            _ => false,
        }
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Whether a key is as it was seen, and was so all the time since.
    pub(crate) fn is_as_seen(&self, key: &[u8], kh: KeyHash, seen: &Seen) -> Result<bool, ReadError> {
        let metadata = self.peek(key, kh)?;
        // Behind the look: see above.
        let version = self.version_of_bucket(kh)?;
        Ok(seen.is_same(&Seen { version, metadata }))
    }

    /// The values of several keys as they were at one moment of this call. `Err` within: the number of a key that was
    /// changed each time.
    pub(crate) fn snapshot_of(
        &self,
        keys: &[(&[u8], KeyHash)],
        read: &Reader<'_>,
    ) -> Result<Result<Vec<Option<Item>>, usize>, ReadError> {
        let mut backoff = Backoff::default();
        let mut seen = Vec::with_capacity(keys.len());
        let mut changed = 0;
        for _ in 0..ATTEMPTS {
            let root = self.root_word();
            seen.clear();
            let mut items = Vec::with_capacity(keys.len());
            for (key, kh) in keys {
                let version = self.version_of_bucket(*kh)?;
                let item = read(key, *kh)?;
                seen.push(Seen { version, metadata: item.as_ref().map(|item| item.metadata) });
                items.push(item);
            }
            let mut differs = None;
            for (at, ((key, kh), seen)) in keys.iter().zip(&seen).enumerate() {
                if !self.is_as_seen(key, *kh, seen)? && !fault::is(Fault::SnapshotBelieved) {
                    differs = Some(at);
                    break;
                }
            }
            match differs {
                None if self.root_word() == root => return Ok(Ok(items)),
                None => {}
                Some(at) => changed = at,
            }
            backoff.wait(&self.mem);
        }
        Ok(Err(changed))
    }
}
