//! A pool on heap memory, clients of it, and a look at where every element is.

use crate::layout::{endpoint, queue, Geometry, Held, Kind};
use crate::recover::{Liveness, PoolCore};
use crate::ring::{EndpointLayout, Ring};
use hashmere_engine::{ClientId, WriteError};
use hashmere_mem::traced::Traced;
use hashmere_mem::{HeapMem, Mem};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Queues of the pool: `free`, two of the kind that is looked at, and one for what crashed processes held.
pub(super) const QUEUES: u64 = 4;
pub(super) const BASE: u64 = 256;

/// Those who are gone.
pub(super) struct Gone(pub(super) Vec<ClientId>);

impl Liveness for Gone {
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError> {
        Ok(self.0.contains(&client))
    }
}

/// A client by number.
pub(super) fn client(number: u64) -> ClientId {
    ClientId::unpack((1 << 16) | (number + 1)).unwrap()
}

#[derive(Clone)]
pub(super) struct Fixture {
    pub(super) heap: Arc<HeapMem>,
    pub(super) geometry: Geometry,
}

impl Fixture {
    /// A pool of `elements`; queues 1 and 2 are of this kind and bound.
    pub(super) fn new(elements: u64, kind: Kind, bound: u64, on_death: u64) -> Fixture {
        Fixture::of(Geometry::new(elements, 8, QUEUES, 4, elements.min(8)).unwrap(), kind, bound, on_death)
    }

    /// The same of other sizes.
    pub(super) fn of(geometry: Geometry, kind: Kind, bound: u64, on_death: u64) -> Fixture {
        let elements = geometry.elements;
        let heap = Arc::new(HeapMem::new(BASE + geometry.size()));
        heap.back(0, heap.capacity()).unwrap();
        geometry.format(&*heap, BASE, on_death);
        for (id, kind, bound) in
            [(0, Kind::Mpmc, elements), (1, kind, bound), (2, kind, bound), (3, Kind::Mpmc, elements)]
        {
            let entry = BASE + geometry.queue(id);
            heap.store(entry + queue::KIND, kind as u64, Ordering::Relaxed);
            heap.store(entry + queue::BOUND, bound, Ordering::Relaxed);
            heap.store(entry + queue::STATE, 1, Ordering::Relaxed);
        }
        Fixture { heap, geometry }
    }

    pub(super) fn image(&self) -> Fixture {
        Fixture { heap: Arc::new(self.heap.image()), geometry: self.geometry }
    }

    pub(super) fn actor(&self) -> Actor<Traced> {
        Actor { mem: Traced::new(&self.heap), geometry: self.geometry }
    }

    /// What each queue holds, in order; every element must be in exactly one, and no free endpoint may hold any.
    pub(super) fn census(&self) -> Result<Vec<Vec<u32>>, String> {
        let core = PoolCore { mem: &*self.heap, base: BASE, geometry: &self.geometry };
        for index in 0..self.geometry.endpoints {
            let word = |at: u64| core.word(self.geometry.endpoint(index) + at);
            let held = (0..endpoint::SINGLES).filter(|slot| word(endpoint::SLOTS + 8 * slot) != 0).count();
            if word(endpoint::INTENT) != 0 || held != 0 || word(endpoint::START) < word(endpoint::END) {
                return Err(format!("endpoint {index} holds {held} elements or is doing something"));
            }
        }
        let is_free = |who: u64| who != 0 && core.word(self.geometry.endpoint(who - 1) + endpoint::OWNER) == 0;
        for ring in core.rings().filter(|ring| ring.kind != Kind::Mpmc) {
            for role in [queue::PRODUCER, queue::CONSUMER] {
                if is_free(self.heap.load(ring.entry + role, Ordering::Relaxed)) {
                    return Err(format!("queue {} is kept by an endpoint that is free", ring.id));
                }
            }
        }
        let mut times = vec![0; self.geometry.elements as usize];
        let mut queues = Vec::new();
        for ring in core.rings() {
            let (head, len) = (ring.head(&*self.heap).position(), ring.len(&*self.heap));
            let mut content = Vec::new();
            for position in head..head + len {
                let cell = self.heap.load(ring.cell(position), Ordering::Relaxed);
                if (cell >> 32) as u32 != ring.tag(position) {
                    return Err(format!("queue {}: the cell of position {position} was not filled", ring.id));
                }
                times[cell as u32 as usize] += 1;
                content.push(cell as u32);
            }
            queues.push(content);
        }
        match times.iter().position(|times| *times != 1) {
            Some(element) => Err(format!("element {element} is there {} times: {queues:?}", times[element])),
            None => Ok(queues),
        }
    }
}

/// A user of the pool.
pub(super) struct Actor<M> {
    pub(super) mem: M,
    pub(super) geometry: Geometry,
}

impl<M: Mem> Actor<M> {
    pub(super) fn core(&self) -> PoolCore<'_, M> {
        PoolCore { mem: &self.mem, base: BASE, geometry: &self.geometry }
    }

    pub(super) fn ring(&self, id: u64) -> Ring {
        self.core().ring(id).unwrap()
    }

    pub(super) fn endpoint(&self, number: u64) -> EndpointLayout {
        self.core().take_endpoint(client(number)).unwrap()
    }

    /// What a single slot holds.
    pub(super) fn element(&self, endpoint: &EndpointLayout, slot: u64) -> u32 {
        Held::unpack(self.mem.load(endpoint.slot(slot), Ordering::Relaxed)).element
    }

    /// The end of a queue that has one producer and one consumer is this endpoint's, as the public interface would note
    /// it.
    pub(super) fn take_roles(&self, endpoint: &EndpointLayout) {
        for ring in [self.ring(1), self.ring(2)] {
            self.mem.store(ring.entry + queue::PRODUCER, endpoint.who, Ordering::Relaxed);
            self.mem.store(ring.entry + queue::CONSUMER, endpoint.who, Ordering::Relaxed);
        }
    }
}
