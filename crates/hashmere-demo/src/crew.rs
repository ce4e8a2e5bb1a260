//! The parent: starts the workers and the reader, kills, starts again.

use crate::failure::{Failure, Outcome};
use crate::job::{self, Chunk, State, WordCount};
use crate::plan::{moments, Killed, Left, Moment, Plan, Ran};
use crate::watch::event_key;
use crate::words::{count_words, Counts};
use crate::worker::number;
use hashmere::Store;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A dead worker is started again after this time, so that one can see the others go on.
const PAUSE: Duration = Duration::from_millis(400);
/// If no worker does anything for this long, the demo has failed.
const STALL: Duration = Duration::from_secs(20);

/// Runs the workers to the end.
pub fn run(store: &Store, plan: &Plan) -> Result<Ran, Failure> {
    let begin = Instant::now();
    let mut crew = Crew {
        store,
        plan,
        begin,
        slots: Vec::new(),
        watcher: None,
        events: 0,
        moments: moments(plan),
        ran: Ran { kills: Vec::new(), time: Duration::ZERO, started: 0 },
    };
    if plan.watch {
        crew.watcher = Some(spawn(&["watch".into(), plan.store.clone().into()], Stdio::inherit())?);
    }
    for slot in 0..plan.slots {
        let child = crew.start(slot)?;
        crew.slots.push(Slot::Working(child));
    }
    let supervised = crew.supervise();
    crew.ran.time = begin.elapsed();
    store.set(job::JOB_OVER, b"1")?;
    crew.end_watcher();
    supervised?;
    let Crew { slots, ran, .. } = &mut crew;
    slots.clear();
    Ok(std::mem::replace(ran, Ran { kills: Vec::new(), time: Duration::ZERO, started: 0 }))
}

enum Slot {
    Working(Child),
    Dead { again: Instant },
    Finished,
}

struct Crew<'a> {
    store: &'a Store,
    plan: &'a Plan,
    begin: Instant,
    slots: Vec<Slot>,
    watcher: Option<Child>,
    events: u64,
    /// The next is the last.
    moments: Vec<Moment>,
    ran: Ran,
}

impl Crew<'_> {
    fn supervise(&mut self) -> Outcome {
        let mut progress = (0, Instant::now());
        while !self.slots.iter().all(|slot| matches!(slot, Slot::Finished)) {
            for slot in 0..self.slots.len() {
                self.look_after(slot)?;
            }
            self.kill_if_it_is_time()?;
            let updates = number(self.store, job::LIVE_UPDATES)?;
            if updates != progress.0 {
                progress = (updates, Instant::now());
            } else if progress.1.elapsed() > STALL {
                let text = format!("no worker has done anything for {} s", STALL.as_secs());
                return Err(Failure::new(text));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Notices the end of a process, and starts the next one of its slot if it was killed.
    fn look_after(&mut self, slot: usize) -> Outcome {
        match &mut self.slots[slot] {
            Slot::Finished => {}
            Slot::Dead { again } if Instant::now() < *again => {}
            Slot::Dead { .. } => {
                let child = self.start(slot)?;
                let seconds = self.begin.elapsed().as_secs_f64();
                self.tell(format!("{seconds:.2} s: worker {} is back as pid {}", slot + 1, child.id()))?;
                self.slots[slot] = Slot::Working(child);
            }
            Slot::Working(child) => {
                let waited = child.try_wait().map_err(|e| Failure::io("wait for a worker", &e))?;
                if let Some(status) = waited {
                    let pid = child.id();
                    self.ended(slot, pid, status)?;
                }
            }
        }
        Ok(())
    }

    /// A process ended without being killed by this one.
    fn ended(&mut self, slot: usize, pid: u32, status: ExitStatus) -> Outcome {
        if status.success() {
            self.slots[slot] = Slot::Finished;
            return Ok(());
        }
        if status.signal() == Some(9) {
            // Killed by another process: the same to the demo.
            return self.killed(slot, pid);
        }
        Err(Failure::new(format!("worker {} (pid {pid}) failed: {status}", slot + 1)))
    }

    fn kill_if_it_is_time(&mut self) -> Outcome {
        let Some(moment) = self.moments.last().copied() else { return Ok(()) };
        if number(self.store, job::LIVE_BYTES)? < moment.bytes {
            return Ok(());
        }
        std::thread::sleep(moment.delay);
        let working: Vec<usize> =
            (0..self.slots.len()).filter(|slot| matches!(self.slots[*slot], Slot::Working(_))).collect();
        let Some(slot) = working.get((moment.choice % working.len().max(1) as u64) as usize).copied() else {
            return Ok(());
        };
        let Slot::Working(child) = &mut self.slots[slot] else { return Ok(()) };
        self.moments.pop();
        let pid = child.id();
        child.kill().map_err(|e| Failure::io("kill a worker", &e))?;
        // The process is gone when this returns: no other writes for its slot.
        let status = child.wait().map_err(|e| Failure::io("wait for a worker", &e))?;
        if status.signal() == Some(9) {
            self.killed(slot, pid)
        } else {
            self.ended(slot, pid, status)
        }
    }

    /// Notes what a killed process left, while it is left so.
    fn killed(&mut self, slot: usize, pid: u32) -> Outcome {
        let after = self.begin.elapsed();
        self.slots[slot] = Slot::Dead { again: Instant::now() + PAUSE };
        let left = self.left_by(slot)?;
        let shown = left.as_ref().map_or(0, |(id, _)| *id);
        self.store.set(&job::slot_key(slot), format!("killed\t{shown}\t").as_bytes())?;
        let (chunk, where_) = match &left {
            None => (None, "between two chunks".to_string()),
            Some((id, chunk)) => {
                let left = self.applied(slot, *id, chunk)?;
                let path = chunk.piece.path.display();
                let text = format!("in chunk {id} with {} of {} words applied ({path})", left.applied, left.words);
                (Some(left), text)
            }
        };
        self.ran.kills.push(Killed { slot, pid, after, chunk });
        let seconds = after.as_secs_f64();
        self.tell(format!("{seconds:.2} s: SIGKILL for worker {} (pid {pid}) {where_}", slot + 1))
    }

    /// The chunk that a slot has taken and not finished.
    fn left_by(&self, slot: usize) -> Result<Option<(u64, Chunk)>, Failure> {
        for id in 1..=self.plan.chunks {
            let key = job::chunk_key(id);
            let chunk = Chunk::decode(&self.store.get(&key)?.ok_or_else(|| job::missing(&key))?)?;
            if chunk.state == State::Taken(slot) {
                return Ok(Some((id, chunk)));
            }
        }
        Ok(None)
    }

    /// The distinct words of a chunk, and how many of them bear its mark.
    fn applied(&self, slot: usize, id: u64, chunk: &Chunk) -> Result<Left, Failure> {
        let mut counts = Counts::new();
        count_words(&chunk.piece.read()?, &mut counts);
        let mut applied = 0;
        for word in counts.keys() {
            if let Some(value) = self.store.get(&job::word_key(word))? {
                applied += u64::from(WordCount::decode(&value)?.marks[slot] >= id);
            }
        }
        Ok(Left { id, words: counts.len() as u64, applied })
    }

    fn tell(&mut self, text: String) -> Outcome {
        self.store.set(&event_key(self.events), text.as_bytes())?;
        self.events += 1;
        Ok(())
    }

    fn start(&mut self, slot: usize) -> Result<Child, Failure> {
        self.ran.started += 1;
        let arguments = ["worker".into(), self.plan.store.clone().into(), slot.to_string().into()];
        spawn(&arguments, Stdio::null())
    }

    /// Lets the reader show the last numbers; it ends by itself.
    fn end_watcher(&mut self) {
        let Some(mut watcher) = self.watcher.take() else { return };
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(watcher.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        end(&mut watcher);
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            if let Slot::Working(child) = slot {
                end(child);
            }
        }
        if let Some(watcher) = &mut self.watcher {
            end(watcher);
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Starts this program again with other arguments.
fn spawn(arguments: &[std::ffi::OsString], stdout: Stdio) -> Result<Child, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::io("find the program's own file", &e))?;
    let mut command = Command::new(&program);
    command.args(arguments).stdin(Stdio::null()).stdout(stdout);
    command.spawn().map_err(|e| Failure::io(format!("start {}", program.display()), &e))
}
