//! Queues between two processes, each on a core of its own, beside the queues of others between two threads.

mod apart;
mod delay;
mod moves;
mod rivals;

use super::Call;
use crate::Outcome;
use hashmere::{Options, Store};
use hashmere_engine::{Region, StoreHandle};
use hashmere_mem::Mem;
use rustix::thread::{sched_setaffinity, CpuSet};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Words that the two processes of a test share beside the queues, each in a line of its own.
const CONTROL: (u64, &[u8], u64) = (1 << 32, b"bench", 1 << 20);
const READY: u64 = 0;
const GO: u64 = 128;
const COUNT: u64 = 256;

/// The tests of a store, and what the second process does in them.
pub fn run(call: &Call) -> Outcome {
    match call.test.as_str() {
        "queue-batch" => moves::batches(call),
        "queue-batch-peer" => moves::batches_peer(call),
        "queue-mpmc" | "queue-spsc" => moves::singles(call),
        "queue-mpmc-peer" | "queue-spsc-peer" => moves::singles_peer(call),
        "queue-delay" => delay::run(call),
        "queue-delay-peer" => delay::peer(call),
        "queue-apart" => apart::run(call),
        "queue-apart-peer" => apart::peer(call),
        other => Err(format!("no such test of queues: {other}").into()),
    }
}

/// The same with a queue that is not ours.
pub fn run_rival(call: &Call) -> Outcome {
    rivals::run(call)
}

/// Keeps this thread on one core.
fn pin(core: usize) -> Outcome {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Between two looks at a cache line that another thread is about to write to: as long as a pop that waits does it.
#[inline(always)]
fn rest() {
    std::hint::spin_loop();
    std::hint::spin_loop();
}

/// How long each figure is measured.
fn span(call: &Call) -> Duration {
    Duration::from_millis(call.operations.clamp(10, 5000))
}

fn open(call: &Call) -> Outcome<(Store, Region)> {
    let store = Options::new().open(call.folder.join("queue.mere"))?;
    let (kind, name, bytes) = CONTROL;
    let control = match store.shared().create_region(kind, name, bytes, |mem, at| mem.zero(at, bytes))? {
        Some(region) => region,
        None => store.shared().open_region(kind, name)?.ok_or("the control words are gone")?,
    };
    Ok((store, control))
}

/// The words that both processes look at.
struct Control(Region);

impl Control {
    fn get(&self, word: u64) -> u64 {
        self.0.mem().load(self.0.offset() + word, Ordering::Acquire)
    }

    fn set(&self, word: u64, value: u64) {
        self.0.mem().store(self.0.offset() + word, value, Ordering::Release);
    }

    /// Spins until a word says so.
    #[inline]
    fn spin_until(&self, word: u64, value: u64) {
        while self.get(word) != value {
            rest();
        }
    }

    fn wait_for(&self, word: u64, value: u64) -> Outcome {
        let start = Instant::now();
        while self.get(word) != value {
            if start.elapsed() > Duration::from_secs(20) {
                return Err("the other process does not answer".into());
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// The second process of a test.
struct Peer(Child);

impl Peer {
    fn start(call: &Call) -> Outcome<Peer> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["work", &call.system, &format!("{}-peer", call.test)]);
        command.args([call.records.to_string(), call.operations.to_string()]).arg(&call.folder).arg("2");
        Ok(Peer(command.stdout(Stdio::inherit()).spawn()?))
    }

    fn finish(mut self) -> Outcome {
        let status = self.0.wait()?;
        if !status.success() {
            return Err(format!("the other process ended with {status}").into());
        }
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
