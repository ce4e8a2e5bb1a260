//! Pools: opened, listed, removed; their queues, found and made.

use crate::endpoint::Endpoint;
use crate::error::QueueError;
use crate::layout::{endpoint, limit, pool, queue, Geometry, Kind};
use crate::open_pool::{check_name, is_name, write_queue, OpenPool};
use crate::queue::{ring_stats, Queue, QueueStats};
use crate::queue_options::QueueOptions;
use crate::recover::PoolCore;
use crate::ring::Ring;
use hashmere_engine::{Region, StoreHandle};
use hashmere_format::region::kind;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// An open pool. Clones share it. A handle of a pool that was removed stays usable.
#[derive(Clone)]
pub struct Pool {
    pub(crate) inner: Arc<OpenPool>,
    free: Queue,
    recovered: u64,
}

impl Pool {
    pub(crate) fn new(region: Region, geometry: Geometry) -> Result<Pool, QueueError> {
        let mut name = vec![0; hashmere_format::region::NAME_MAX];
        let start = region.offset() - hashmere_format::region::DATA;
        let len = region.mem().load(start + hashmere_format::region::at::NAME_LEN, Ordering::Acquire) as usize;
        region.mem().read(start + hashmere_format::region::at::NAME, &mut name);
        name.truncate(len);
        let inner = Arc::new(OpenPool { region, geometry, name: String::from_utf8_lossy(&name).into() });
        let ring = inner.core().ring(0).ok_or(QueueError::damaged("a pool has no free queue", start))?;
        let free = Queue { pool: inner.clone(), ring };
        let recovered = inner.recover()?;
        Ok(Pool { inner, free, recovered })
    }

    /// Opens a pool, and clears up after processes that died with elements of it.
    ///
    /// # Errors
    /// [`NotFound`](QueueError::NotFound); [`BadOption`](QueueError::BadOption) for a name that cannot be; the store's
    /// errors, `Corrupt` if the pool is damaged.
    pub fn open(store: &impl StoreHandle, name: &str) -> Result<Pool, QueueError> {
        check_name(name)?;
        let region = store.shared().open_region(kind::POOL, name.as_bytes())?;
        let region = region.ok_or_else(|| QueueError::NotFound(format!("pool {name:?}").into()))?;
        let geometry = Geometry::read(region.mem(), region.offset(), region.len())?;
        Pool::new(region, geometry)
    }

    /// How many elements of crashed processes were given back when this handle was opened.
    pub fn recovered_on_open(&self) -> u64 {
        self.recovered
    }

    /// Names of the pools of a store.
    pub fn list(store: &impl StoreHandle) -> Vec<String> {
        let pools = store.shared().regions().into_iter().filter(|region| region.kind == kind::POOL);
        pools.map(|region| String::from_utf8_lossy(&region.name).into_owned()).collect()
    }

    /// Takes the pool's name off it. Its room in the file is free again when no process has it open. `false`: there is
    /// none.
    ///
    /// # Errors
    /// The store's.
    pub fn remove(store: &impl StoreHandle, name: &str) -> Result<bool, QueueError> {
        check_name(name)?;
        Ok(store.shared().drop_region(kind::POOL, name.as_bytes())?)
    }

    /// Whether it was removed.
    pub fn is_removed(&self) -> bool {
        self.inner.region.is_dropped()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        self.inner.geometry.elements
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> u64 {
        self.inner.geometry.bytes
    }

    /// The queue in which all elements are at first.
    pub fn free(&self) -> &Queue {
        &self.free
    }

    /// A queue of this name: MPMC, with room for every element. Creates it if there is none.
    ///
    /// # Errors
    /// As [`queue_with`](Self::queue_with).
    pub fn queue(&self, name: &str) -> Result<Queue, QueueError> {
        self.queue_with(name, QueueOptions::new())
    }

    /// A queue of this name; creates it if there is none. What the options say must be true of an existing one.
    ///
    /// # Errors
    /// [`Exists`](QueueError::Exists) if it is not; [`TooMany`](QueueError::TooMany) if the pool has as many queues as
    /// it can; [`BadOption`](QueueError::BadOption) for a bad name or bound.
    pub fn queue_with(&self, name: &str, options: QueueOptions) -> Result<Queue, QueueError> {
        if !is_name(name) {
            return Err(QueueError::BadOption("the name of a queue has 1 to 64 bytes, none of them NUL"));
        }
        if options.bound == Some(0) {
            return Err(QueueError::BadOption("a queue takes at least one element"));
        }
        if !self.inner.region.is_ours() {
            return Err(QueueError::Forked);
        }
        let queue = match self.find(name) {
            Some(queue) => queue,
            None => self.inner.region.exclusively(|| self.find(name).map_or_else(|| self.add(name, options), Ok))??,
        };
        let bound = options.bound.map(|bound| bound.min(self.elements()));
        if options.kind.is_some_and(|kind| kind != queue.kind()) || bound.is_some_and(|bound| bound != queue.bound()) {
            let is = format!("queue {name:?} of kind {:?} and bound {}", queue.kind(), queue.bound());
            return Err(QueueError::Exists(is.into()));
        }
        Ok(queue)
    }

    fn add(&self, name: &str, options: QueueOptions) -> Result<Queue, QueueError> {
        let core = self.inner.core();
        let geometry = &self.inner.geometry;
        let free = (0..geometry.queues).find(|id| core.word(geometry.queue(*id) + queue::STATE) == 0);
        let id =
            free.ok_or(QueueError::TooMany("the pool has as many queues as it was created for; create it with more"))?;
        let bound = options.bound.unwrap_or(u64::MAX).min(geometry.elements);
        write_queue(&core, id, name, options.kind.unwrap_or(Kind::Mpmc), bound);
        self.find(name).ok_or(QueueError::damaged("a queue was not found after it was made", core.base))
    }

    fn find(&self, name: &str) -> Option<Queue> {
        self.queues().into_iter().find(|queue| queue.name() == name)
    }

    /// All its queues.
    pub fn queues(&self) -> Vec<Queue> {
        let core = self.inner.core();
        let rings: Vec<Ring> = core.rings().collect();
        rings.into_iter().map(|ring| Queue { pool: self.inner.clone(), ring }).collect()
    }

    /// Takes part: elements are popped and pushed with an endpoint.
    ///
    /// # Errors
    /// [`TooMany`](QueueError::TooMany) if all endpoints are taken by living processes; [`Forked`](QueueError::Forked);
    /// [`Removed`](QueueError::Removed).
    pub fn endpoint(&self) -> Result<Endpoint, QueueError> {
        if self.is_removed() {
            return Err(QueueError::Removed);
        }
        Endpoint::new(&self.inner)
    }

    /// Looks for processes that died with elements, completes or undoes what they were doing, and gives the elements
    /// back. Returns how many. Pops from empty queues and waits do this by themselves.
    ///
    /// # Errors
    /// The store's; [`Forked`](QueueError::Forked).
    pub fn recover(&self) -> Result<u64, QueueError> {
        self.inner.recover()
    }

    /// Figures of about now; no process is stopped for them.
    pub fn stats(&self) -> PoolStats {
        stats_of(&self.inner.core())
    }

    /// The same of a pool that is not opened, also by a process that has the store open read-only: nothing is repaired
    /// or held for it. `None`: there is none of this name, or it is damaged.
    pub fn peek_stats(store: &impl StoreHandle, name: &str) -> Option<PoolStats> {
        let seen = store.shared().peek_region(kind::POOL, name.as_bytes(), |mem, base, len| {
            let geometry = Geometry::read(mem, base, len).ok()?;
            Some(stats_of(&PoolCore { mem, base, geometry: &geometry }))
        });
        seen.flatten()
    }
}

fn stats_of<M: Mem>(core: &PoolCore<'_, M>) -> PoolStats {
    let geometry = core.geometry;
    let queues: Vec<_> = core.rings().map(|ring| ring_stats(core.mem, &ring)).collect();
    let queued = queues.iter().fold(0u64, |sum, queue| sum.saturating_add(queue.len));
    let endpoints = (0..geometry.endpoints).filter(|index| core.word(geometry.endpoint(*index) + endpoint::OWNER) != 0);
    PoolStats {
        elements: geometry.elements,
        element_bytes: geometry.bytes,
        bytes: geometry.size(),
        endpoints: endpoints.count() as u64,
        max_endpoints: geometry.endpoints,
        max_queues: geometry.queues.min(limit::QUEUES),
        held: geometry.elements.saturating_sub(queued),
        recovered: core.word(pool::RECOVERED),
        queues,
    }
}

/// What [`Pool::stats`] returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolStats {
    /// Elements of the pool.
    pub elements: u64,
    /// Bytes of one.
    pub element_bytes: u64,
    /// Bytes of the pool with all that belongs to it.
    pub bytes: u64,
    /// Endpoints in use.
    pub endpoints: u64,
    /// Endpoints that there can be.
    pub max_endpoints: u64,
    /// Queues that there can be.
    pub max_queues: u64,
    /// Elements in endpoints.
    pub held: u64,
    /// Elements that were given back from crashed processes so far.
    pub recovered: u64,
    /// Its queues.
    pub queues: Vec<QueueStats>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("name", &self.name()).finish_non_exhaustive()
    }
}
