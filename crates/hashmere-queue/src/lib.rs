//! Queues between processes, without copies, in the file of a Hashmere store; and waiting for each other.
//!
//! A [`Pool`] has a fixed number of elements of a fixed size, and named [`Queue`]s, all of them in the store's file. An
//! element is moved from queue to queue by reference. It is always in one place: in a queue, or in an [`Endpoint`]. If
//! the process of an endpoint dies, at any instruction, what it held is found and goes back to where it came from,
//! exactly once.
//!
//! ```
//! # let dir = std::env::temp_dir().join(format!("hashmere-queue-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # std::env::set_var("HASHMERE_DIR", &dir);
//! use hashmere::Store;
//! use hashmere_queue::{Pool, PoolOptions};
//! use std::time::Duration;
//!
//! let store = Store::open("jobs")?;
//! let pool = PoolOptions::new(1000, 4096).open(&store, "jobs")?; // any process opens the same one
//! let todo = pool.queue("todo")?;
//!
//! let endpoint = pool.endpoint()?;
//! if let Some(mut job) = endpoint.pop(pool.free())? {
//!     job[..5].copy_from_slice(b"hello");
//!     job.push(&todo)?;
//! }
//! if let Some(job) = endpoint.pop_wait(&todo, Duration::from_secs(1))? {
//!     assert_eq!(&job[..5], b"hello");
//!     job.push(pool.free())?;
//! }
//! # drop(endpoint);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *It is not* a message broker: elements have one size, nothing is kept over a crash of the machine, and no process
//! outside the machine can take part. `docs/internals/queues.md` has the bytes, the protocol and the argument.

mod atomic;
mod barrier;
mod element;
mod endpoint;
mod error;
mod fault;
mod holders;
mod layout;
mod mutex;
mod once;
mod open_pool;
mod options;
mod own;
mod pool;
mod queue;
mod queue_options;
mod ready_fd;
mod recover;
mod ring;
mod rwlock;
mod semaphore;
mod transfer;
mod wait;

#[cfg(test)]
mod tests;

pub use atomic::{Atomic, Atomics};
pub use barrier::{Barrier, BarrierWaitResult};
pub use element::{Element, Plain};
pub use endpoint::Endpoint;
pub use error::QueueError;
pub use layout::Kind;
pub use mutex::{Holder, Mutex, MutexGuard};
pub use once::{once, once_holder};
pub use options::{OnDeath, PoolOptions};
pub use pool::{Pool, PoolStats};
pub use queue::{Queue, QueueStats};
pub use queue_options::QueueOptions;
pub use ready_fd::ReadyFd;
pub use rwlock::{RwLock, RwLockGuard, RwLockMode, RwLockWaiter};
pub use semaphore::{Semaphore, SemaphoreGuard};
