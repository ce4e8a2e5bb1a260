//! The load: threads that read and write keys of their own at a steady rate, and know what each must be.

use super::client::{Answer, Client};
use super::event::Event;
use super::{Bucket, Run, BUCKET_MS};
use crate::machine;
use crate::workload::Random;
use crate::Outcome;
use std::time::{Duration, Instant};

const THREADS: usize = 4;
/// One of n requests is a set.
const SETS: u64 = 10;
/// Bytes of a value.
const VALUE: usize = 100;
/// Keys that an event asks a server for.
const PROBED: usize = 90;
/// Attempts to read a key at the end.
const ATTEMPTS: u32 = 50;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Of the proxy.
    pub address: String,
    /// Keys in the cluster.
    pub keys: usize,
    /// Requests a second of all threads.
    pub rate: u64,
}

/// One key, as one thread knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Acknowledged.
    stored: u32,
    /// Sent last: above `stored` if the answer was an error.
    sent: u32,
}

fn name(key: usize) -> String {
    format!("cluster:{key}")
}

/// A value says its key and how often that was written.
fn value(key: usize, version: u32) -> Vec<u8> {
    let mut value = format!("{key}:{version}:").into_bytes();
    value.resize(VALUE, b'.');
    value
}

/// How often a value of this key was written; `None` if it is not one.
fn version_of(key: usize, bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?;
    let version = text.strip_prefix(&format!("{key}:"))?.split(':').next()?.parse().ok()?;
    (value(key, version) == bytes).then_some(version)
}

struct Worker {
    client: Client,
    /// Keys whose remainder by the number of threads is this.
    number: usize,
    known: Vec<Known>,
    buckets: Vec<Bucket>,
    wrong: u64,
}

/// Runs the load, with the events.
pub fn run(name: &str, plan: &Plan, seconds: u64, events: &[Event]) -> Outcome<Run> {
    let time = Duration::from_secs(seconds);
    let mut workers: Vec<Worker> = (0..THREADS).map(|number| Worker::new(number, plan, time)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(|| worker.fill())).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread ended")?)
    })?;
    let probed: Vec<String> = (0..PROBED).map(|n| self::name(n * plan.keys / PROBED)).collect();
    let start = Instant::now();
    let happened = std::thread::scope(|scope| {
        let threads: Vec<_> =
            workers.iter_mut().map(|worker| scope.spawn(move || worker.work(plan, start, time))).collect();
        let happened = events.iter().map(|event| event.happen(start, &probed)).collect::<Outcome<Vec<_>>>();
        for thread in threads {
            thread.join().map_err(|_| "a thread ended")?;
        }
        happened
    })?;
    let lost = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(|| worker.verify())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(u64::MAX)).sum()
    });
    let mut buckets = vec![Bucket::default(); (time.as_millis() as u64 / BUCKET_MS) as usize];
    for (sum, number) in buckets.iter_mut().zip(0..) {
        for one in workers.iter().filter_map(|worker| worker.buckets.get::<usize>(number)) {
            sum.gets += one.gets;
            sum.hits += one.hits;
            sum.misses += one.misses;
            sum.errors += one.errors;
        }
    }
    let wrong = workers.iter().map(|worker| worker.wrong).sum();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let machine = format!("{}, {cores} processors, load {}", machine::date()?, machine::load());
    Ok(Run { name: name.into(), machine, keys: plan.keys, rate: plan.rate, buckets, events: happened, wrong, lost })
}

impl Worker {
    fn new(number: usize, plan: &Plan, time: Duration) -> Worker {
        let keys = (plan.keys + THREADS - 1 - number) / THREADS;
        let buckets = (time.as_millis() as u64 / BUCKET_MS) as usize;
        Worker {
            client: Client::new(&plan.address),
            number,
            known: vec![Known::default(); keys],
            buckets: vec![Bucket::default(); buckets],
            wrong: 0,
        }
    }

    fn key(&self, index: usize) -> usize {
        index * THREADS + self.number
    }

    /// Stores every key.
    fn fill(&mut self) -> Result<(), &'static str> {
        for index in 0..self.known.len() {
            if self.set(index) != Answer::Stored {
                return Err("the cluster does not store");
            }
        }
        Ok(())
    }

    /// Writes a key once more.
    fn set(&mut self, index: usize) -> Answer {
        let key = self.key(index);
        let Some(known) = self.known.get_mut(index) else { return Answer::Failed };
        known.sent += 1;
        let answer = self.client.set(&name(key), &value(key, known.sent));
        if answer == Answer::Stored {
            known.stored = known.sent;
        }
        answer
    }

    /// Reads a key, and compares.
    fn get(&mut self, index: usize) -> Answer {
        let key = self.key(index);
        let answer = self.client.get(&name(key));
        if let (Answer::Value(bytes), Some(known)) = (&answer, self.known.get_mut(index)) {
            match version_of(key, bytes) {
                // What was answered with an error may have been stored, or not; now it is known.
                Some(version) if (known.stored..=known.sent).contains(&version) => known.stored = version,
                _ => self.wrong += 1,
            }
        }
        answer
    }

    fn work(&mut self, plan: &Plan, start: Instant, time: Duration) {
        let mut random = Random(self.number as u64 + 1);
        let each = Duration::from_nanos(1_000_000_000 * THREADS as u64 / plan.rate.max(1));
        let mut next = start;
        while start.elapsed() < time {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            next += each;
            let index = random.below(self.known.len() as u64) as usize;
            let is_set = random.below(SETS) == 0;
            let answer = if is_set { self.set(index) } else { self.get(index) };
            let missed = !is_set && answer == Answer::Absent;
            let Some(bucket) = self.buckets.get_mut((start.elapsed().as_millis() as u64 / BUCKET_MS) as usize) else {
                break;
            };
            bucket.gets += u32::from(!is_set);
            bucket.hits += u32::from(matches!(answer, Answer::Value(_)));
            bucket.misses += u32::from(missed);
            bucket.errors += u32::from(answer == Answer::Failed);
            if missed {
                // As an application does, which has the value from elsewhere.
                self.set(index);
            }
        }
    }

    /// Reads everything again; returns how many keys are not there.
    fn verify(&mut self) -> u64 {
        let mut lost = 0;
        for index in 0..self.known.len() {
            let mut answer = self.get(index);
            for _ in 0..ATTEMPTS {
                if answer != Answer::Failed {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
                answer = self.get(index);
            }
            lost += u64::from(!matches!(answer, Answer::Value(_)));
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_say_what_they_are() {
        assert_eq!(version_of(7, &value(7, 3)), Some(3));
        assert_eq!((version_of(8, &value(7, 3)), version_of(7, b"7:3:"), version_of(7, b"")), (None, None, None));
        let plan = Plan { address: String::new(), keys: 10, rate: 1 };
        let of = |number| Worker::new(number, &plan, Duration::ZERO);
        let mut keys: Vec<usize> = (0..THREADS)
            .map(of)
            .flat_map(|worker| (0..worker.known.len()).map(move |i| worker.key(i)).collect::<Vec<_>>())
            .collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..10).collect::<Vec<_>>());
    }
}
