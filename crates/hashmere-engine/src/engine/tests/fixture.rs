//! A store on heap memory with several clients, each of which can die.

use super::disk::Disk;
use super::probe::{Probe, ProbeMem};
use crate::engine::{Access, Engine, Layout, NewStore};
use hashmere_format::feed;
use hashmere_format::header::{at, Shape};
use hashmere_mem::{HeapMem, LocalHost, LocalPeers, Mem, Scribbler};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// How a store of a test is made. Everything is tiny, so that splits, cleaning and eviction happen all the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) leaf_shift: u32,
    pub(super) cache: bool,
    /// Segments of 4096 bytes that there may be.
    pub(super) segments: u64,
    pub(super) fixed: (Option<u32>, Option<u32>),
    pub(super) durable: bool,
    /// There is a change feed of these sizes.
    pub(super) feed: Option<feed::Geometry>,
}

/// A feed of 256 positions and 24 chunks.
const FEED: feed::Geometry = feed::Geometry { ring_shift: 8, chunk_shift: 10, chunks: 24, values: true };

/// A strict store of `segments` segments with leaves of 512 bytes.
pub(super) const fn strict(segments: u64) -> Geometry {
    Geometry { leaf_shift: 9, cache: false, segments, fixed: (None, None), durable: false, feed: None }
}

/// The same that evicts.
pub(super) const fn cache(segments: u64) -> Geometry {
    Geometry { cache: true, ..strict(segments) }
}

impl Geometry {
    /// The same, durable.
    pub(super) const fn durable(self) -> Geometry {
        Geometry { durable: true, ..self }
    }

    /// The same with a change feed that keeps values.
    pub(super) const fn with_feed(self) -> Geometry {
        self.feed_of(FEED)
    }

    /// The same with one of these sizes.
    pub(super) const fn feed_of(self, feed: feed::Geometry) -> Geometry {
        Geometry { feed: Some(feed), ..self }
    }

    /// With leaves of 256 bytes: three buckets.
    pub(super) const fn small_leaves(self) -> Geometry {
        Geometry { leaf_shift: 8, ..self }
    }
}

/// The memory and the processes of one store.
pub(super) struct Fixture {
    pub(super) heap: Arc<HeapMem>,
    pub(super) peers: Arc<LocalPeers>,
    pub(super) disk: Option<Arc<Disk>>,
    /// Nothing is counted and no client dies.
    plain: bool,
}

const ACCESS: Access =
    Access { read_only: false, busy_timeout: Duration::from_millis(300), sync_every: None, origin: 0 };

impl Fixture {
    /// A new store.
    pub(super) fn new(geometry: Geometry) -> Fixture {
        Fixture::made(geometry, None, false)
    }

    /// A new store whose clients are not traced: most of what Miri would do is to follow the counting.
    pub(super) fn plain(geometry: Geometry) -> Fixture {
        Fixture::made(geometry, None, true)
    }

    /// A store that is there already.
    #[cfg(not(miri))]
    pub(super) fn of(heap: HeapMem, peers: Arc<LocalPeers>) -> Fixture {
        Fixture { heap: Arc::new(heap), peers, disk: None, plain: false }
    }

    /// The same on a disk.
    pub(super) fn on_disk(geometry: Geometry) -> Fixture {
        let disk = Disk::new(at::DATA + (geometry.segments << 12));
        let fixture = Fixture::made(geometry, Some(disk.clone()), false);
        disk.flush().unwrap();
        fixture
    }

    fn made(geometry: Geometry, disk: Option<Arc<Disk>>, plain: bool) -> Fixture {
        let bytes = at::DATA + (geometry.segments << 12);
        let heap = Arc::new(HeapMem::new(bytes));
        let peers = LocalPeers::new();
        let shape = Shape { segment_shift: 12, leaf_shift: geometry.leaf_shift, cache: geometry.cache };
        let new = NewStore {
            layout: Layout::new(shape, geometry.fixed, geometry.durable, 7),
            max_bytes: bytes,
            uuid: [8, 9],
            status: 0,
            boot: [1, 2],
        };
        let fixture = Fixture { heap, peers, disk, plain };
        Engine::format(fixture.mem(), LocalHost::new(&fixture.peers), &new, ACCESS).unwrap();
        if let Some(feed) = geometry.feed {
            let mut client = fixture.client();
            client.make_feed(&mut client.writer().unwrap(), feed).unwrap();
            client.retire();
        }
        fixture
    }

    /// The bytes as they are now, in a file of their own; the processes are the same.
    pub(super) fn image(&self) -> Fixture {
        Fixture { heap: Arc::new(self.heap.image()), peers: self.peers.clone(), disk: None, plain: self.plain }
    }

    /// After a power cut: what the disk kept, and no live client.
    pub(super) fn after_cut(heap: HeapMem, now_ms: u64) -> Fixture {
        let peers = LocalPeers::new();
        peers.set_now_ms(now_ms);
        let disk = Some(Disk::of(&heap));
        Fixture { heap: Arc::new(heap), peers, disk, plain: false }
    }

    /// The one who opens after that, before it does anything.
    pub(super) fn rescuer(&self) -> Client {
        let mem = self.mem();
        let probe = mem.probe();
        // It reads the whole file, holes included.
        probe.be_lenient();
        let engine = Engine::examine(mem, LocalHost::new(&self.peers), ProbeMem::capacity, ACCESS).unwrap();
        Client { engine: Arc::new(engine), probe }
    }

    fn mem(&self) -> ProbeMem {
        ProbeMem::new(&self.heap, self.disk.clone(), self.plain)
    }

    fn open(&self, access: Access) -> Client {
        let mem = self.mem();
        let probe = mem.probe();
        let engine = Engine::attach(mem, LocalHost::new(&self.peers), ProbeMem::capacity, access).unwrap();
        Client { engine: Arc::new(engine), probe }
    }

    /// One more process that uses the store.
    pub(super) fn client(&self) -> Client {
        self.open(ACCESS)
    }

    /// One whose changes are marked in the feed.
    pub(super) fn client_of(&self, origin: u32) -> Client {
        self.open(Access { origin, ..ACCESS })
    }

    /// One that waits no longer than this.
    pub(super) fn impatient(&self, busy_timeout: Duration) -> Client {
        self.open(Access { busy_timeout, ..ACCESS })
    }

    /// One that only reads.
    pub(super) fn reader(&self) -> Client {
        self.open(Access { read_only: true, ..ACCESS })
    }
}

pub(super) type TestEngine = Engine<ProbeMem, LocalHost>;

/// One process.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) engine: Arc<TestEngine>,
    pub(super) probe: Arc<Probe>,
}

impl Client {
    /// It closes the store.
    pub(super) fn retire(&mut self) {
        Arc::get_mut(&mut self.engine).unwrap().retire();
    }

    /// Another process that uses the same store.
    pub(super) fn beside(&self) -> Client {
        self.another(None).unwrap()
    }

    /// The same, for which a scribbler decides what it finds; `None` if it refuses what it finds.
    pub(super) fn another(&self, scribbler: Option<Scribbler>) -> Option<Client> {
        let mem = self.engine.mem.beside();
        let probe = mem.probe();
        probe.scribble(scribbler);
        let host = LocalHost::new(self.engine.host.peers());
        let engine = Engine::attach(mem, host, ProbeMem::capacity, ACCESS).ok()?;
        Some(Client { engine: Arc::new(engine), probe })
    }

    /// It is gone, with whatever it was about.
    pub(super) fn kill(&self) {
        self.engine.host.kill();
    }
}

impl Deref for Client {
    type Target = TestEngine;
    fn deref(&self) -> &TestEngine {
        &self.engine
    }
}
