//! The door: a store, open read-only.

use crate::process;
use crate::segments::Segments;
use crate::snapshot::{LogSnapshot, Memory, PoolSnapshot, Snapshot};
use hashmere::{OpenError, Options, Store};
use hashmere_engine::StoreHandle;
use hashmere_format::region::kind;
use hashmere_log::Log;
use hashmere_os::clock;
use hashmere_queue::Pool;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A store that is looked at. It is mapped read-only: an observer takes no client record, no lock and no room in the
/// file, and the last process to close the store does not wait for it.
#[derive(Clone, Debug)]
pub struct Observer {
    store: Store,
    /// Device and inode number of the file that had the name when it was opened.
    file: Option<(u64, u64)>,
}

impl Observer {
    /// Opens an existing store by name or path.
    ///
    /// # Errors
    /// Those of opening a store read-only: see [`OpenError`].
    pub fn open(name_or_path: impl AsRef<Path>) -> Result<Observer, OpenError> {
        Ok(Observer::of(Options::new().read_only().open(name_or_path)?))
    }

    /// Looks at a store that this process has open, read-only or not.
    pub fn of(store: Store) -> Observer {
        let file = file_of(store.path());
        Observer { store, file }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether the name of the store means another file by now, or none: the store was removed, and perhaps another one
    /// was created.
    pub fn is_removed(&self) -> bool {
        file_of(self.store.path()) != self.file
    }

    /// The figures of this moment. Takes time in proportion to segments and clients, not to keys: below a millisecond
    /// for a store of some gigabytes. For each client two files of `/proc` are read.
    ///
    /// A store that was removed goes on giving figures: those of the removed file.
    pub fn snapshot(&self) -> Snapshot {
        let shared = self.store.shared();
        let activity = shared.activity();
        let segments = Segments::new(&activity.segments, activity.segment_bytes);
        let (mut pools, mut logs, mut is_replica) = (Vec::new(), Vec::new(), false);
        if segments.regions != 0 {
            for region in shared.regions() {
                let Ok(name) = String::from_utf8(region.name) else { continue };
                match region.kind {
                    kind::POOL => {
                        pools.extend(Pool::peek_stats(&self.store, &name).map(|stats| PoolSnapshot { name, stats }))
                    }
                    kind::LOG => {
                        logs.extend(Log::peek_stats(&self.store, &name).map(|stats| LogSnapshot { name, stats }))
                    }
                    kind::REPLICA => is_replica = true,
                    _ => {}
                }
            }
        }
        Snapshot {
            path: self.store.path().into(),
            taken_ms: clock::now_ms(),
            taken: clock::monotonic(),
            mode: activity.mode,
            durable: activity.durable,
            poisoned: activity.poisoned,
            items: activity.items,
            memory: Memory::of(&activity, &segments),
            no_space_since_ms: activity.no_space_since_ms,
            syncs: activity.syncs,
            segments,
            totals: activity.totals,
            processes: process::of_clients(&activity.clients),
            pools,
            logs,
            feed: activity.feed,
            replica: if is_replica { hashmere_replica::peek_status(&self.store) } else { None },
            backup_pid: activity.backup_pid,
            generation: activity.generation,
            by_slot: activity.by_slot,
        }
    }
}

fn file_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
