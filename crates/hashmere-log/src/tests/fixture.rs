//! A log on heap memory, those who write to it and drain it, and what came out.

use crate::error::LogError;
use crate::layout::{at, clock, row, wake_flag, Geometry, LogCore, BUSY};
use crate::line::LogLine;
use crate::merge::{Merged, Times};
use crate::output::{Carrier, Scratch, Sent};
use crate::ring::{Cursor, Liveness};
use hashmere_engine::{ClientId, WriteError};
use hashmere_mem::traced::Traced;
use hashmere_mem::{HeapMem, Mem};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const BASE: u64 = 256;

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

/// What a writer does that finds its ring full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Drop,
    Overwrite,
}

pub(super) struct Fixture {
    pub(super) heap: Arc<HeapMem>,
    pub(super) geometry: Geometry,
    /// Time passes with each line.
    pub(super) time: Arc<AtomicU64>,
    /// What was written out.
    pub(super) paper: Arc<Mutex<Vec<u8>>>,
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        Fixture::with_history(1024)
    }

    /// One whose history is so long.
    pub(super) fn with_history(history_bytes: u64) -> Fixture {
        Fixture::of(Geometry { rings: 4, ring_bytes: 256, history_bytes })
    }

    /// One of these sizes.
    pub(super) fn of(geometry: Geometry) -> Fixture {
        let heap = Arc::new(HeapMem::new(BASE + geometry.size()));
        heap.back(0, heap.capacity()).unwrap();
        geometry.format(&*heap, BASE, (clock::MONOTONIC, 0, 0), 5);
        let fixture = Fixture { heap, geometry, time: Arc::default(), paper: Arc::default() };
        fixture.core().put(at::WAKE_FLAG, wake_flag::AWAKE);
        fixture
    }

    pub(super) fn image(&self) -> Fixture {
        Fixture {
            heap: Arc::new(self.heap.image()),
            geometry: self.geometry,
            time: Arc::new(AtomicU64::new(self.time.load(Ordering::Relaxed))),
            paper: Arc::new(Mutex::new(self.paper.lock().unwrap().clone())),
        }
    }

    /// The same fixture.
    pub(super) fn share(&self) -> Fixture {
        Fixture { heap: self.heap.clone(), geometry: self.geometry, time: self.time.clone(), paper: self.paper.clone() }
    }

    pub(super) fn core(&self) -> LogCore<'_, HeapMem> {
        LogCore { mem: &*self.heap, base: BASE, geometry: &self.geometry }
    }

    pub(super) fn actor(&self) -> Actor {
        self.actor_on(Arc::new(Traced::new(&self.heap)))
    }

    /// An actor that reaches it through another memory.
    pub(super) fn actor_on<M: Mem>(&self, mem: Arc<M>) -> Actor<M> {
        Actor { mem, geometry: self.geometry, time: self.time.clone(), paper: self.paper.clone() }
    }

    /// What came out, line by line.
    pub(super) fn lines(&self) -> Vec<String> {
        let paper = self.paper.lock().unwrap();
        let text = String::from_utf8(paper.clone()).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "half a line came out: {text:?}");
        text.lines().map(str::to_owned).collect()
    }
}

/// A user of the log.
pub(super) struct Actor<M = Traced> {
    pub(super) mem: Arc<M>,
    geometry: Geometry,
    time: Arc<AtomicU64>,
    paper: Arc<Mutex<Vec<u8>>>,
}

pub(super) struct Same;

impl Times for Same {
    fn ns(&self, stamp: u64) -> u64 {
        stamp
    }
}

/// What such a line says that tells of a loss: how many lines, and whose.
pub(super) fn lost(line: &str) -> Option<(u32, u64)> {
    let (count, who) = line.strip_prefix("lost ")?.split_once(" of w").unwrap();
    Some((count.parse().unwrap(), who.parse().unwrap()))
}

/// Takes a few bytes at a time.
struct Paper<'a>(&'a Mutex<Vec<u8>>);

impl<M: Mem> Carrier<M> for Paper<'_> {
    fn identity(&self) -> (u64, u64) {
        (1, 2)
    }

    fn carry(&mut self, mem: &M, progress: u64, text: &[u8]) -> Result<(), LogError> {
        loop {
            let done = mem.load(progress, Ordering::Acquire) as usize;
            let some = &text[done..(done + 7).min(text.len())];
            if some.is_empty() {
                return Ok(());
            }
            // As the kernel does it: no process dies between the two.
            mem.store(progress, (done + some.len()) as u64, Ordering::Release);
            self.0.lock().unwrap().extend_from_slice(some);
        }
    }
}

impl<M: Mem> Actor<M> {
    pub(super) fn core(&self) -> LogCore<'_, M> {
        LogCore { mem: &*self.mem, base: BASE, geometry: &self.geometry }
    }

    pub(super) fn claim(&self, number: u64) -> Cursor {
        self.core().claim(client(number), number as u32, b"test").unwrap()
    }

    /// Logs a line; `false`: it was dropped.
    pub(super) fn log(&self, cursor: &mut Cursor, policy: Policy, text: &str) -> bool {
        let len = text.len() as u64;
        if !cursor.has_room(len) {
            cursor.look(&*self.mem);
        }
        if !cursor.has_room(len) {
            if policy == Policy::Drop {
                cursor.skip_line(&*self.mem);
                return false;
            }
            cursor.make_room(&*self.mem, len);
        }
        self.append(cursor, text);
        true
    }

    /// Logs a line for which there is room.
    pub(super) fn append(&self, cursor: &mut Cursor, text: &str) {
        cursor.append(&*self.mem, 3, 0, text.as_bytes(), || self.now());
    }

    /// What time it is; others may act before that is known.
    pub(super) fn now(&self) -> u64 {
        self.core().get(at::CLOCK);
        self.time.fetch_add(1, Ordering::Relaxed)
    }

    /// Drains everything, as one that has just taken the role from another.
    pub(super) fn drain(&self, number: u64, gone: &Gone) {
        let core = self.core();
        core.recover_merge();
        core.recover_rings(client(number), gone).unwrap();
        loop {
            let tail = |ring: u64| core.get(core.geometry.row(ring) + row::TAIL) & !BUSY;
            let merged = core.merge(u64::MAX - 1, &Same, tail).unwrap();
            self.deliver();
            if merged == Merged::default() {
                return;
            }
        }
    }

    /// Writes out what was merged, and what was on its way out.
    pub(super) fn deliver(&self) {
        let core = self.core();
        let mut scratch = Scratch::default();
        let mut paper = Paper(&self.paper);
        let mut write = |record: &LogLine, out: &mut Vec<u8>| {
            if record.lost() > 0 {
                out.extend_from_slice(format!("lost {} of w{}\n", record.lost(), record.pid()).as_bytes());
            }
            // The name of a thread is kept until this many others have come.
            let is_retained = u64::from(record.thread()) + core.geometry.names() > core.get(at::THREADS);
            assert_eq!(record.process(), if is_retained && record.thread() > 0 { &b"test"[..] } else { b"" });
            if record.is_note() {
                return;
            }
            out.extend_from_slice(record.text());
            out.push(b'\n');
        };
        core.resume(&mut paper, &mut scratch).unwrap();
        while core.deliver(&mut write, &mut paper, &mut scratch).unwrap() != Sent::Nothing {}
    }
}
