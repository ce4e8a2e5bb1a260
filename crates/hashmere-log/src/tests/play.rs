//! A log under the scheduler, those who use it there, and what must hold when all have ended.

use super::fixture::{client, Actor, Fixture};
use crate::history::Found;
use crate::layout::{at, row, BUSY};
use crate::line::LogLine;
use crate::merge::{Merged, Times};
use crate::ring::{Cursor, Liveness};
use hashmere_engine::{ClientId, WriteError};
use hashmere_mem::scenarios::{self, wrong};
use hashmere_mem::shuttle::thread;
use hashmere_mem::traced::Traced;
use hashmere_mem::ModelMem;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(super) type User = Actor<Traced<ModelMem>>;
pub(super) type Thread = thread::JoinHandle<()>;

/// Stamps so far apart that a line that comes too late shows.
struct Coarse;

impl Times for Coarse {
    fn ns(&self, stamp: u64) -> u64 {
        stamp * 10_000_000
    }
}

/// No living thread takes this many turns of others for one line.
const HUNT: u32 = 20_000;

/// A scenario on a copy of a log.
#[derive(Clone)]
pub(super) struct Play {
    pub(super) fixture: Arc<Fixture>,
    pub(super) mem: Arc<ModelMem>,
    pub(super) dead: Arc<Mutex<Vec<ClientId>>>,
    /// Lines whose logging returned.
    pub(super) logged: Arc<Mutex<Vec<String>>>,
    /// Those who write still.
    pub(super) writing: Arc<AtomicU64>,
}

impl Liveness for Play {
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError> {
        Ok(self.dead.lock().unwrap().contains(&client))
    }
}

/// What cannot be, because a fault made it so.
pub(super) fn sane<R>(act: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => result,
        Err(payload) => match payload.downcast_ref::<String>() {
            Some(text) if !text.starts_with(scenarios::FOUND) => wrong(text),
            _ => resume_unwind(payload),
        },
    }
}

impl Play {
    pub(super) fn new(fixture: &Fixture) -> Play {
        let mem = ModelMem::new(fixture.heap.image());
        let fixture = Arc::new(fixture.image());
        Play { fixture, mem, dead: Arc::default(), logged: Arc::default(), writing: Arc::default() }
    }

    pub(super) fn actor(&self) -> User {
        self.fixture.actor_on(Arc::new(Traced::new(&self.mem)))
    }

    pub(super) fn spawn(&self, act: impl FnOnce(&Play, &User) + Send + 'static) -> Thread {
        let (play, actor) = (self.clone(), self.actor());
        self.mem.spawn(move || sane(|| act(&play, &actor)))
    }

    /// A thread that logs `lines` lines, each as soon as there is room for it.
    pub(super) fn writer(&self, number: u64, lines: u32) -> Thread {
        self.writing.fetch_add(1, Ordering::Relaxed);
        self.spawn(move |play, actor| {
            play.write(actor, number, lines);
            play.writing.fetch_sub(1, Ordering::Relaxed);
        })
    }

    pub(super) fn write(&self, actor: &User, number: u64, lines: u32) {
        self.write_to(actor, actor.claim(number), number, lines);
    }

    /// The same into a ring that it has.
    pub(super) fn write_to(&self, actor: &User, mut cursor: Cursor, number: u64, lines: u32) {
        for n in 0..lines {
            let text = text(number, n);
            while !cursor.has_room(text.len() as u64) {
                cursor.look(&*actor.mem);
                thread::yield_now();
            }
            actor.append(&mut cursor, &text);
            self.logged.lock().unwrap().push(text);
        }
        actor.core().release(&cursor);
    }

    /// The tail of a ring as soon as no line is on its way behind it, as `ManualDrainer` waits for it.
    fn tail(&self, actor: &User, number: u64, ring: u64) -> u64 {
        let core = actor.core();
        for _ in 0..HUNT {
            let tail = core.get(core.geometry.row(ring) + row::TAIL);
            if tail & BUSY == 0 {
                return tail;
            }
            if !core.recover_ring(ring, client(number), self).unwrap() {
                thread::yield_now();
            }
        }
        wrong(format!("ring {ring} stays busy"))
    }

    /// What a drainer does once.
    pub(super) fn pass(&self, actor: &User, number: u64) -> Merged {
        let horizon = actor.now();
        let merged = actor.core().merge(horizon, &Coarse, |ring| self.tail(actor, number, ring)).unwrap();
        actor.deliver();
        merged
    }

    /// Drains until no thread writes and nothing is left.
    pub(super) fn drain(&self, actor: &User, number: u64) {
        loop {
            let is_over = self.writing.load(Ordering::Relaxed) == 0;
            actor.core().recover_rings(client(number), self).unwrap();
            let merged = self.pass(actor, number);
            if is_over && merged == Merged::default() {
                return;
            }
            thread::yield_now();
        }
    }

    /// Takes the role whenever it is free, for a few passes, until everything has come out.
    pub(super) fn drain_standby(&self, actor: &User, number: u64) {
        let core = actor.core();
        while !self.is_all_out() {
            if core.take_role(client(number), self).unwrap() {
                core.recover_merge();
                self.pass(actor, number);
                self.pass(actor, number);
                core.give_role_back();
            }
            thread::yield_now();
        }
    }

    /// Whether no thread writes, and nothing is on its way out.
    pub(super) fn is_all_out(&self) -> bool {
        let fixture = self.image();
        let core = fixture.core();
        self.writing.load(Ordering::Relaxed) == 0
            && !core.has_lines()
            && (core.get(at::MERGE), core.get(at::CHUNK)) == (0, 0)
            && core.get(at::SENT) == core.get(at::END)
    }

    /// The log as it is now, which is no step.
    pub(super) fn image(&self) -> Fixture {
        let mut fixture = self.fixture.share();
        fixture.heap = Arc::new(self.mem.heap().image());
        fixture
    }

    /// When all have ended: each line came out once, those of each writer in order, and the history is in order of
    /// time.
    pub(super) fn end(&self, threads: Vec<Thread>) -> Fixture {
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let fixture = self.image();
        let logged = self.logged.lock().unwrap().clone();
        let lines = sane(|| fixture.lines());
        for number in 0..4 {
            let of = |lines: &[String]| -> Vec<String> {
                lines.iter().filter(|line| line.starts_with(&format!("w{number}."))).cloned().collect()
            };
            let (came, wanted) = (of(&lines), of(&logged));
            // The last line of a dead writer may be there although no call returned it.
            let is_dead = self.dead.lock().unwrap().contains(&client(number));
            let one_more = is_dead && came.len() == wanted.len() + 1;
            if came[..wanted.len().min(came.len())] != wanted || came.len() > wanted.len() && !one_more {
                wrong(format!("writer {number} logged {wanted:?}, there came {came:?}"));
            }
            if came.iter().enumerate().any(|(n, line)| *line != text(number, n as u32)) {
                wrong(format!("writer {number} did not log {came:?}"));
            }
        }
        if lines.iter().any(|line| !line.starts_with('w')) {
            wrong(format!("there came {lines:?}"));
        }
        look_at_times(&fixture);
        let deaths = self.dead.lock().unwrap().len() as u64;
        if fixture.core().halves() > deaths {
            wrong(format!("{} half lines of {deaths} dead writers", fixture.core().halves()));
        }
        fixture
    }
}

/// Lines of different lengths.
pub(super) fn text(number: u64, n: u32) -> String {
    format!("w{number}.{n}{}", "x".repeat((n as usize * 7) % 11))
}

fn look_at_times(fixture: &Fixture) {
    let core = fixture.core();
    let (mut position, mut record, mut last) = (core.get(at::OLDEST), LogLine::default(), 0);
    while let Found::Line(next) = sane(|| core.read_line(position, &mut record).unwrap()) {
        if record.time_ns() < last {
            wrong(format!("{:?} came out too late", String::from_utf8_lossy(record.text())));
        }
        (position, last) = (next, record.time_ns());
    }
}
