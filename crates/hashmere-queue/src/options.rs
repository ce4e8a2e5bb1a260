//! How pools and queues are made.

use crate::error::QueueError;
use crate::layout::{Geometry, Kind};
use crate::open_pool::{check_name, is_name, write_queue, FREE};
use crate::pool::Pool;
use crate::recover::PoolCore;
use hashmere_engine::{StoreHandle, WriteError};
use hashmere_format::region::kind;
use hashmere_mem::MapMem;

/// An error of creating a region of `bytes` bytes.
pub(crate) fn no_room(error: WriteError, bytes: u64) -> QueueError {
    if error.is_no_room() {
        QueueError::NoRoom { bytes, error: Box::new(error.into()) }
    } else {
        error.into()
    }
}

/// What happens to the elements that a process held when it died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDeath {
    /// Each goes to the end of the queue that it was popped from; if that has a single producer or is full, to `free`.
    Origin,
    /// All go to this queue, which is made with the pool.
    Queue(&'static str),
}

/// Sizes of a pool, decided when it is created.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    elements: u64,
    bytes: u64,
    max_queues: u64,
    max_endpoints: u64,
    batch: u64,
    on_death: OnDeath,
}

impl PoolOptions {
    /// `elements` elements (1 to 2^31) of `bytes` bytes each (1 to 2^32 - 1).
    pub fn new(elements: u64, bytes: u64) -> PoolOptions {
        PoolOptions {
            elements,
            bytes,
            max_queues: 8,
            max_endpoints: 64,
            batch: elements.min(1024),
            on_death: OnDeath::Origin,
        }
    }

    /// How many queues it can have: 1 to 4096, default 8, `free` included. Each takes 8 bytes for each element of the
    /// pool, up to twice that.
    pub fn max_queues(self, max_queues: u64) -> PoolOptions {
        PoolOptions { max_queues, ..self }
    }

    /// How many endpoints there can be at a time, of all processes together: 1 to 4096, default 64.
    pub fn max_endpoints(self, max_endpoints: u64) -> PoolOptions {
        PoolOptions { max_endpoints, ..self }
    }

    /// How many elements an endpoint can have in its batch: 1 to 2^20, default 1024 or the number of elements. Each
    /// takes 8 bytes for each endpoint.
    pub fn batch(self, batch: u64) -> PoolOptions {
        PoolOptions { batch, ..self }
    }

    /// What happens to the elements that a process held when it died. Default: [`OnDeath::Origin`].
    pub fn on_death(self, on_death: OnDeath) -> PoolOptions {
        PoolOptions { on_death, ..self }
    }

    /// Opens the pool of this name, or creates it. An existing one must have as many elements of as many bytes.
    ///
    /// # Errors
    /// [`Exists`](QueueError::Exists) if it has others, and those of [`create`](Self::create).
    pub fn open(&self, store: &impl StoreHandle, name: &str) -> Result<Pool, QueueError> {
        loop {
            match Pool::open(store, name) {
                Err(QueueError::NotFound(_)) => {}
                Ok(pool) if (pool.elements(), pool.element_bytes()) != (self.elements, self.bytes) => {
                    let (n, bytes) = (pool.elements(), pool.element_bytes());
                    return Err(QueueError::Exists(format!("pool {name:?} of {n} elements of {bytes} bytes").into()));
                }
                other => return other,
            }
            match self.create(store, name) {
                Err(QueueError::Exists(_)) => {}
                other => return other,
            }
        }
    }

    /// Creates a pool. All its elements are in the queue [`free`](Pool::free), in the order of their numbers; what
    /// their bytes are is undefined.
    ///
    /// # Errors
    /// [`Exists`](QueueError::Exists); [`BadOption`](QueueError::BadOption) for sizes and names that cannot be; the
    /// store's `Full`, `NoSpace` and `AddressSpace` if there is no room.
    pub fn create(&self, store: &impl StoreHandle, name: &str) -> Result<Pool, QueueError> {
        let geometry = Geometry::new(self.elements, self.bytes, self.max_queues, self.max_endpoints, self.batch);
        let geometry = geometry.ok_or(QueueError::BadOption(
            "a pool has 1 to 2^31 elements of 1 to 2^32 - 1 bytes, 1 to 4096 queues and endpoints, and batches of 1 to 2^20",
        ))?;
        let on_death = match self.on_death {
            OnDeath::Origin | OnDeath::Queue(FREE) => None,
            OnDeath::Queue(name) => Some(name),
        };
        if on_death.is_some_and(|name| !is_name(name) || self.max_queues < 2) {
            return Err(QueueError::BadOption(
                "the queue for elements of crashed processes needs a name of 1 to 64 bytes, none of them NUL, and room for a second queue",
            ));
        }
        let free = self.on_death == OnDeath::Queue(FREE);
        let fill = |mem: &MapMem, base: u64| {
            geometry.format(mem, base, if on_death.is_some() { 2 } else { u64::from(free) });
            let core = PoolCore { mem, base, geometry: &geometry };
            write_queue(&core, 0, FREE, Kind::Mpmc, geometry.elements);
            if let Some(name) = on_death {
                write_queue(&core, 1, name, Kind::Mpmc, geometry.elements);
            }
        };
        check_name(name)?;
        let region = store.shared().create_region(kind::POOL, name.as_bytes(), geometry.size(), fill);
        match region.map_err(|error| no_room(error, geometry.size()))? {
            Some(region) => Pool::new(region, geometry),
            None => Err(QueueError::Exists(format!("pool {name:?}").into())),
        }
    }
}
