//! The Python module `hashmere._hashmere`: the engine's calls as methods of one class, on bytes.
//!
//! What Python programs see is the package around it (`python/hashmere`): mapping, coders, caches. Here is what has to
//! be fast or has to touch the engine. `hot` has the calls of the inner loops, made by hand; everything else is PyO3.

mod atomic;
mod attributes;
mod backup;
mod bytes;
mod change;
mod dump;
mod endpoint;
mod error;
mod feed;
mod handle;
mod hot;
mod item;
mod key;
mod key_lock;
mod locks;
mod log;
mod log_drain;
mod log_line;
mod log_manual_drainer;
mod many;
mod pool;
mod raw;
mod reserve;
mod room;
mod scan;
mod stats;
mod store;
mod transaction;
mod view;
mod wait;
mod write_batch;

use pyo3::prelude::*;

/// The engine behind the package ``hashmere``.
#[pymodule(gil_used = false)]
mod _hashmere {
    use super::*;

    #[pymodule_export]
    use crate::atomic::{Atomic, Atomics};
    #[pymodule_export]
    use crate::endpoint::{Element, Endpoint};
    #[pymodule_export]
    use crate::feed::Feed;
    #[pymodule_export]
    use crate::key::HashedKey;
    #[pymodule_export]
    use crate::key_lock::KeyLock;
    #[pymodule_export]
    use crate::locks::{RwLock, RwLockGuard, Semaphore, SemaphoreGuard};
    #[pymodule_export]
    use crate::log::Log;
    #[pymodule_export]
    use crate::log_drain::{Drainer, Follower};
    #[pymodule_export]
    use crate::log_manual_drainer::ManualDrainer;
    #[pymodule_export]
    use crate::pool::{Pool, Queue, ReadyFd};
    #[pymodule_export]
    use crate::scan::Scan;
    #[pymodule_export]
    use crate::store::{path_of, remove};

    #[pymodule_export]
    use crate::transaction::Transaction;
    #[pymodule_export]
    use crate::wait::{Barrier, Mutex, WaitOutcome};
    #[pymodule_export]
    use crate::write_batch::WriteBatch;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        hashmere_os::futex::around_sleeps(crate::handle::let_others_run);
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("Store", hot::make(module.py())?)?;
        module.add("Reservation", reserve::make(module.py())?)?;
        module.add("Room", room::make(module.py())?)?;
        module.add("View", view::make(module.py())?)?;
        Ok(())
    }
}
