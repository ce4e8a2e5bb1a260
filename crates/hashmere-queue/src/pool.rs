//! Pools and their queues: made, opened, listed, dropped.

use crate::error::QueueError;
use crate::hand::Hand;
use crate::layout::{hand, limit, pool, queue, Geometry, Kind};
use crate::ring::Ring;
use crate::settle::{Core, Peers};
use hashmere::{ClientId, Region, Store, WriteError};
use hashmere_format::region::kind;
use hashmere_mem::{MapMem, Mem};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// The queue that every pool has, and in which all its elements are at first.
const FREE: &str = "free";

/// What becomes of the elements that a process held when it died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDeath {
    /// Each goes to the end of the queue that it was pulled from; if that has a single producer or is full, to `free`.
    Origin,
    /// All go to this queue, which is made with the pool.
    Queue(&'static str),
}

/// Sizes of a pool, decided when it is created.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    elements: u64,
    bytes: u64,
    queues: u64,
    hands: u64,
    batch: u64,
    on_death: OnDeath,
}

impl PoolOptions {
    /// `elements` elements (1 to 2^31) of `bytes` bytes each (1 to 2^32 - 1).
    pub fn new(elements: u64, bytes: u64) -> PoolOptions {
        PoolOptions { elements, bytes, queues: 8, hands: 64, batch: elements.min(1024), on_death: OnDeath::Origin }
    }

    /// How many queues it can have: 1 to 4096, default 8, `free` included. Each takes 8 bytes for each element of the pool, up to twice that.
    pub fn queues(self, queues: u64) -> PoolOptions {
        PoolOptions { queues, ..self }
    }

    /// How many hands there can be at a time, of all processes together: 1 to 4096, default 64.
    pub fn hands(self, hands: u64) -> PoolOptions {
        PoolOptions { hands, ..self }
    }

    /// How many elements a hand can have in its batch: 1 to 2^20, default 1024 or the number of elements. Each takes 8 bytes for each hand.
    pub fn batch(self, batch: u64) -> PoolOptions {
        PoolOptions { batch, ..self }
    }

    /// What becomes of the elements that a process held when it died. Default: [`OnDeath::Origin`].
    pub fn on_death(self, on_death: OnDeath) -> PoolOptions {
        PoolOptions { on_death, ..self }
    }

    /// Opens the pool of this name, or creates it. An existing one must have as many elements of as many bytes.
    ///
    /// # Errors
    /// [`Exists`](QueueError::Exists) if it has others, and those of [`create`](Self::create).
    pub fn open(&self, store: &Store, name: &str) -> Result<Pool, QueueError> {
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

    /// Creates a pool. All its elements are in the queue [`free`](Pool::free), in the order of their numbers; what their bytes
    /// are is undefined.
    ///
    /// # Errors
    /// [`Exists`](QueueError::Exists); [`BadOption`](QueueError::BadOption) for sizes and names that cannot be; the store's
    /// `Full` and `NoSpace` if there is no room.
    pub fn create(&self, store: &Store, name: &str) -> Result<Pool, QueueError> {
        let geometry = Geometry::new(self.elements, self.bytes, self.queues, self.hands, self.batch);
        let geometry = geometry.ok_or(QueueError::BadOption(
            "a pool has 1 to 2^31 elements of 1 to 2^32 - 1 bytes, 1 to 4096 queues and hands, and batches of 1 to 2^20",
        ))?;
        let on_death = match self.on_death {
            OnDeath::Origin | OnDeath::Queue(FREE) => None,
            OnDeath::Queue(name) => Some(name),
        };
        if on_death.is_some_and(|name| !is_name(name) || self.queues < 2) {
            return Err(QueueError::BadOption(
                "the queue for elements of the dead needs a name of 1 to 64 bytes, and room for a second queue",
            ));
        }
        let free = self.on_death == OnDeath::Queue(FREE);
        let fill = |mem: &MapMem, base: u64| {
            geometry.format(mem, base, if on_death.is_some() { 2 } else { u64::from(free) });
            let core = Core { mem, base, geometry: &geometry };
            write_queue(&core, 0, FREE, Kind::Mpmc, geometry.elements);
            if let Some(name) = on_death {
                write_queue(&core, 1, name, Kind::Mpmc, geometry.elements);
            }
        };
        let region = store.create_region(kind::POOL, name.as_bytes(), geometry.size(), fill)?;
        match region {
            Some(region) => Pool::new(region, geometry),
            None => Err(QueueError::Exists(format!("pool {name:?}").into())),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=queue::NAME_MAX).contains(&name.len())
}

/// Writes the entry of a queue that does not exist yet; its last store makes it exist.
fn write_queue<M: Mem>(core: &Core<M>, id: u64, name: &str, kind: Kind, bound: u64) {
    let entry = core.base + core.geometry.queue(id);
    core.mem.write(entry + queue::NAME, name.as_bytes());
    core.mem.store(entry + queue::NAME_LEN, name.len() as u64, Ordering::Relaxed);
    core.mem.store(entry + queue::KIND, kind as u64, Ordering::Relaxed);
    core.mem.store(entry + queue::BOUND, bound, Ordering::Relaxed);
    // SYNC(queue): whoever sees the state sees the rest.
    core.mem.store(entry + queue::STATE, 1, Ordering::Release);
}

/// How a queue is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueOptions {
    kind: Option<Kind>,
    bound: Option<u64>,
}

impl QueueOptions {
    /// Any number of producers and consumers, room for every element of the pool.
    pub fn new() -> QueueOptions {
        QueueOptions::default()
    }

    /// Fewer producers or consumers, for more speed.
    pub fn kind(self, kind: Kind) -> QueueOptions {
        QueueOptions { kind: Some(kind), ..self }
    }

    /// The most elements that it takes, at least 1: then a push can find it full.
    pub fn bound(self, bound: u64) -> QueueOptions {
        QueueOptions { bound: Some(bound), ..self }
    }
}

pub(crate) struct Inner {
    pub(crate) region: Region,
    pub(crate) geometry: Geometry,
    pub(crate) name: Box<str>,
}

impl Inner {
    #[inline(always)]
    pub(crate) fn mem(&self) -> &MapMem {
        self.region.mem()
    }

    pub(crate) fn core(&self) -> Core<'_, MapMem> {
        Core { mem: self.mem(), base: self.region.offset(), geometry: &self.geometry }
    }

    /// Clears up after the dead.
    pub(crate) fn recover(&self) -> Result<u64, QueueError> {
        if !self.region.is_ours() {
            return Err(QueueError::Forked);
        }
        let store = self.region.store();
        Ok(self.core().recover(store.client()?, &Others(&store))?)
    }
}

struct Others<'a>(&'a Store);

impl Peers for Others<'_> {
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError> {
        self.0.is_gone(client)
    }
}

/// An open pool. Clones share it. It stays usable for whoever has it open when somebody drops it.
#[derive(Clone)]
pub struct Pool {
    pub(crate) inner: Arc<Inner>,
    free: Queue,
}

impl Pool {
    fn new(region: Region, geometry: Geometry) -> Result<Pool, QueueError> {
        let mut name = vec![0; hashmere_format::region::NAME_MAX];
        let start = region.offset() - hashmere_format::region::DATA;
        let len = region.mem().load(start + hashmere_format::region::at::NAME_LEN, Ordering::Acquire) as usize;
        region.mem().read(start + hashmere_format::region::at::NAME, &mut name);
        name.truncate(len);
        let inner = Arc::new(Inner { region, geometry, name: String::from_utf8_lossy(&name).into() });
        let ring = inner.core().ring(0).ok_or(QueueError::damaged("a pool has no free queue", start))?;
        let free = Queue { pool: inner.clone(), ring };
        inner.recover()?;
        Ok(Pool { inner, free })
    }

    /// Opens a pool, and clears up after processes that died with elements of it.
    ///
    /// # Errors
    /// [`NotFound`](QueueError::NotFound); the store's errors, `Corrupt` if the pool is damaged.
    pub fn open(store: &Store, name: &str) -> Result<Pool, QueueError> {
        let region = store.open_region(kind::POOL, name.as_bytes())?;
        let region = region.ok_or_else(|| QueueError::NotFound(format!("pool {name:?}").into()))?;
        let geometry = Geometry::read(region.mem(), region.offset(), region.len())?;
        Pool::new(region, geometry)
    }

    /// Names of the pools of a store.
    pub fn list(store: &Store) -> Vec<String> {
        let pools = store.regions().into_iter().filter(|region| region.kind == kind::POOL);
        pools.map(|region| String::from_utf8_lossy(&region.name).into_owned()).collect()
    }

    /// Takes the pool's name off it. Its room in the file is free again when nobody has it open any more. `false`: there is none.
    ///
    /// # Errors
    /// The store's.
    pub fn remove(store: &Store, name: &str) -> Result<bool, QueueError> {
        Ok(store.drop_region(kind::POOL, name.as_bytes())?)
    }

    /// Whether somebody has dropped it.
    pub fn is_dropped(&self) -> bool {
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
    /// [`Exists`](QueueError::Exists) if it is not; [`TooMany`](QueueError::TooMany) if the pool has as many queues as it can;
    /// [`BadOption`](QueueError::BadOption) for a bad name or bound.
    pub fn queue_with(&self, name: &str, options: QueueOptions) -> Result<Queue, QueueError> {
        if !is_name(name) {
            return Err(QueueError::BadOption("the name of a queue has 1 to 64 bytes"));
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

    /// Takes part: elements are pulled and pushed with a hand.
    ///
    /// # Errors
    /// [`TooMany`](QueueError::TooMany) if all hands are taken by living processes; [`Forked`](QueueError::Forked);
    /// [`Dropped`](QueueError::Dropped).
    pub fn hand(&self) -> Result<Hand, QueueError> {
        if self.is_dropped() {
            return Err(QueueError::Dropped);
        }
        Hand::new(&self.inner)
    }

    /// Looks for processes that died with elements, completes or undoes what they were doing, and gives the elements back.
    /// Returns how many. Pulls from empty queues and waits do this by themselves.
    ///
    /// # Errors
    /// The store's; [`Forked`](QueueError::Forked).
    pub fn recover(&self) -> Result<u64, QueueError> {
        self.inner.recover()
    }

    /// Figures of about now; nobody is stopped for them.
    pub fn stats(&self) -> PoolStats {
        let core = self.inner.core();
        let geometry = &self.inner.geometry;
        let queues: Vec<_> = self.queues().iter().map(Queue::stats).collect();
        let queued: u64 = queues.iter().map(|queue| queue.len).sum();
        let hands = (0..geometry.hands).filter(|index| core.word(geometry.hand(*index) + hand::OWNER) != 0);
        PoolStats {
            elements: geometry.elements,
            element_bytes: geometry.bytes,
            bytes: geometry.size(),
            hands: hands.count() as u64,
            hands_max: geometry.hands,
            queues_max: geometry.queues.min(limit::QUEUES),
            held: geometry.elements.saturating_sub(queued),
            recovered: core.word(pool::RECOVERED),
            queues,
        }
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
    /// Hands in use.
    pub hands: u64,
    /// Hands that there can be.
    pub hands_max: u64,
    /// Queues that there can be.
    pub queues_max: u64,
    /// Elements in hands.
    pub held: u64,
    /// Elements that were given back from the dead so far.
    pub recovered: u64,
    /// Its queues.
    pub queues: Vec<QueueStats>,
}

/// One queue in [`PoolStats`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueueStats {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Most elements that it takes.
    pub bound: u64,
    /// Elements in it.
    pub len: u64,
    /// Elements ever pushed to it (below 2^48).
    pub pushed: u64,
    /// Whether somebody sleeps until it is pushed to.
    pub has_sleepers: bool,
}

/// A queue of a pool. Clones name the same one.
#[derive(Clone)]
pub struct Queue {
    pub(crate) pool: Arc<Inner>,
    pub(crate) ring: Ring,
}

impl Queue {
    /// Its name.
    pub fn name(&self) -> String {
        let mem = self.pool.mem();
        let len = mem.load(self.ring.entry + queue::NAME_LEN, Ordering::Acquire).min(queue::NAME_MAX as u64);
        let mut name = vec![0; len as usize];
        mem.read(self.ring.entry + queue::NAME, &mut name);
        String::from_utf8_lossy(&name).into_owned()
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.ring.kind
    }

    /// Most elements that it takes.
    pub fn bound(&self) -> u64 {
        self.ring.bound
    }

    /// Elements in it at about this moment.
    pub fn len(&self) -> u64 {
        self.ring.len(self.pool.mem())
    }

    /// Whether there were none at about this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the first element's bytes, which stays where it is; `None`: the queue is empty.
    pub fn peek(&self) -> Option<Vec<u8>> {
        let (mem, ring, geometry) = (self.pool.mem(), &self.ring, &self.pool.geometry);
        loop {
            let head = ring.head(mem);
            let cell = mem.load(ring.cell(head.position()), Ordering::Acquire);
            let is_there = (cell >> 32) as u32 == ring.tag(head.position());
            let mut bytes = vec![0; geometry.bytes as usize];
            if is_there && u64::from(cell as u32) < geometry.elements {
                mem.read(self.pool.region.offset() + geometry.element(u64::from(cell as u32)), &mut bytes);
            }
            // SYNC(peek): as long as the head has not moved, nobody had the element to write to it.
            mem.fence(Ordering::Acquire);
            if ring.head(mem) == head {
                return is_there.then_some(bytes);
            }
        }
    }

    fn stats(&self) -> QueueStats {
        let mem = self.pool.mem();
        QueueStats {
            name: self.name(),
            kind: self.kind(),
            bound: self.bound(),
            len: self.len(),
            pushed: self.ring.tail(mem).position(),
            has_sleepers: mem.load(self.ring.entry + queue::SLEEPERS, Ordering::Relaxed) != 0,
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("name", &self.name()).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("name", &self.name()).finish_non_exhaustive()
    }
}
