//! The same round with queues of others, between two threads of one process.

use super::{median, pin, rest, span, Call};
use crate::work::say;
use crate::Outcome;
use crossbeam_queue::ArrayQueue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const STRIDE: u64 = 64;

/// One end of a round: where it takes from, where it puts.
trait Station: Send {
    fn take(&mut self) -> Option<u64>;
    fn put(&mut self, number: u64) -> bool;
}

struct Crossbeam<'a>(&'a ArrayQueue<u64>, &'a ArrayQueue<u64>);

impl Station for Crossbeam<'_> {
    #[inline]
    fn take(&mut self) -> Option<u64> {
        self.0.pop()
    }
    #[inline]
    fn put(&mut self, number: u64) -> bool {
        self.1.push(number).is_ok()
    }
}

struct Rtrb(rtrb::Consumer<u64>, rtrb::Producer<u64>);

impl Station for Rtrb {
    #[inline]
    fn take(&mut self) -> Option<u64> {
        self.0.pop().ok()
    }
    #[inline]
    fn put(&mut self, number: u64) -> bool {
        self.1.push(number).is_ok()
    }
}

/// Runs one.
pub fn run(call: &Call) -> Outcome {
    let n = call.records as usize;
    match call.system.as_str() {
        "crossbeam" => {
            let (there, back) = (ArrayQueue::new(n), ArrayQueue::new(n));
            round(call, Crossbeam(&back, &there), Crossbeam(&there, &back))
        }
        "rtrb" if call.test == "queue-delay" => there_and_back(),
        "rtrb" => {
            let (there, taken) = rtrb::RingBuffer::new(n);
            let (back, returned) = rtrb::RingBuffer::new(n);
            round(call, Rtrb(returned, there), Rtrb(taken, back))
        }
        other => Err(format!("no such queue: {other}").into()),
    }
}

/// Moves numbers round until the time is up; then each must be there once.
fn round<S: Station>(call: &Call, mut near: S, mut far: S) -> Outcome {
    let stop = AtomicBool::new(false);
    let n = u64::from(call.records);
    if (0..n).any(|number| !near.put(number)) {
        return Err("the queue takes less than it should".into());
    }
    let (moves, seconds) = std::thread::scope(|scope| -> Outcome<(u64, f64)> {
        let far = &mut far;
        let stop = &stop;
        scope.spawn(move || {
            let _ = pin(1);
            while !stop.load(Ordering::Acquire) {
                for _ in 0..STRIDE {
                    if let Some(number) = far.take() {
                        assert!(far.put(number), "there is room for every number");
                    }
                }
            }
        });
        pin(0)?;
        let (start, mut moves) = (Instant::now(), 0);
        while start.elapsed() < span(call) {
            for _ in 0..STRIDE {
                if let Some(number) = near.take() {
                    assert!(near.put(number), "there is room for every number");
                    moves += 1;
                }
            }
        }
        stop.store(true, Ordering::Release);
        Ok((moves, start.elapsed().as_secs_f64()))
    })?;
    say("single_mps", moves as f64 / seconds / 1e6);
    let mut seen = vec![false; call.records as usize];
    for station in [&mut near, &mut far] {
        while let Some(number) = station.take() {
            seen[number as usize] = !seen[number as usize];
        }
    }
    if seen.contains(&false) {
        return Err("a number was lost or doubled".into());
    }
    Ok(())
}

/// A number there and back between two threads that spin: half of that.
fn there_and_back() -> Outcome {
    const ROUNDS: u64 = 20_000;
    const FIGURES: u64 = 15;
    let (there, taken) = rtrb::RingBuffer::new(8);
    let (back, returned) = rtrb::RingBuffer::new(8);
    let (mut near, mut far) = (Rtrb(returned, there), Rtrb(taken, back));
    let receive = |station: &mut Rtrb| loop {
        match station.take() {
            Some(number) => break number,
            None => rest(),
        }
    };
    let figures = std::thread::scope(|scope| -> Outcome<Vec<f64>> {
        scope.spawn(move || {
            let _ = pin(1);
            for _ in 0..ROUNDS * FIGURES {
                let number = receive(&mut far);
                assert!(far.put(number + 1), "one number is under way at a time");
            }
        });
        pin(0)?;
        let mut figures = Vec::new();
        for _ in 0..FIGURES {
            let start = Instant::now();
            for i in 0..ROUNDS {
                if !near.put(i) || receive(&mut near) != i + 1 {
                    return Err("another number came back".into());
                }
            }
            figures.push(start.elapsed().as_nanos() as f64 / ROUNDS as f64 / 2.0);
        }
        Ok(figures)
    })?;
    say("spin_ns", median(figures));
    Ok(())
}
