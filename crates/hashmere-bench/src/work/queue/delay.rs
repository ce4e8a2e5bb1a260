//! How long a message is under way, there and back in half: to a receiver that spins, and to one that sleeps; beside
//! the cache lines and the futex that it cannot be faster than.

use super::{median, open, pin, Call, Control, Peer, GO, READY};
use crate::work::say;
use crate::Outcome;
use hashmere_mem::Mem;
use hashmere_queue::{Endpoint, Kind, Pool, PoolOptions, Queue, QueueOptions};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Words of the bare tests.
const WORD: u64 = 512;
const STAMP: u64 = 640;
const DELAY: u64 = 768;
const BACK: u64 = 1024;
/// Ping-pong rounds of a figure, and figures of which the median is taken.
const ROUNDS: u64 = 20_000;
const FIGURES: usize = 15;
/// Messages to a sleeper.
const WAKES: usize = 400;
/// What the receiver does, by the word that says go.
const LINE: u64 = 1;
const SPIN: u64 = 2;
const PAYLOAD: u64 = 3;
const SLEEP: u64 = 4;
const FUTEX: u64 = 5;
const END: u64 = 6;
const LINES: u64 = 7;
const SPSC: u64 = 8;

pub(super) fn queues(pool: &Pool) -> Outcome<(Queue, Queue)> {
    Ok((pool.queue("there")?, pool.queue("back")?))
}

pub(super) fn spsc(pool: &Pool) -> Outcome<(Queue, Queue)> {
    let options = QueueOptions::new().kind(Kind::Spsc);
    Ok((pool.queue_with("there-1", options)?, pool.queue_with("back-1", options)?))
}

/// The sender.
pub fn run(call: &Call) -> Outcome {
    pin(0)?;
    let (store, control) = open(call)?;
    let control = Control(control);
    let pool = PoolOptions::new(4, 64).create(&store, "delay")?;
    let (there, back) = queues(&pool)?;
    let (there_1, back_1) = spsc(&pool)?;
    let peer = Peer::start(call)?;
    control.wait_for(READY, 1)?;
    let endpoint = pool.endpoint()?;

    let figures = |what: u64, round: &dyn Fn(u64) -> Outcome| -> Outcome<f64> {
        control.set(GO, what);
        control.wait_for(READY, what + 100)?;
        let mut all = Vec::new();
        for figure in 0..FIGURES as u64 {
            let start = Instant::now();
            for i in 0..ROUNDS {
                round(figure * ROUNDS + i)?;
            }
            all.push(start.elapsed().as_nanos() as f64 / ROUNDS as f64 / 2.0);
        }
        Ok(median(all))
    };
    let line = figures(LINE, &|i| {
        control.set(WORD, 2 * i + 1);
        while control.get(WORD) != 2 * i + 2 {}
        Ok(())
    })?;
    say("line_ns", line);
    let lines = figures(LINES, &|i| {
        control.set(WORD, i + 1);
        control.spin_until(BACK, i + 1);
        Ok(())
    })?;
    say("lines_ns", lines);
    let mut element = Some(endpoint.pop(pool.free())?.ok_or("no element")?);
    let cell = std::cell::RefCell::new(element.take());
    let pass = |to: &Queue, from: &Queue, payload: Option<u64>| -> Outcome {
        let mut slot = cell.borrow_mut();
        let mut element = slot.take().ok_or("no element")?;
        if let Some(i) = payload {
            *element.view_mut::<u64>() = 2 * i + 1;
        }
        element.push(to)?;
        let answer = receive(&endpoint, from)?;
        if payload.is_some_and(|i| *answer.view::<u64>() != 2 * i + 2) {
            return Err("the answer is another one".into());
        }
        *slot = Some(answer);
        Ok(())
    };
    say("spin_ns", figures(SPIN, &|_| pass(&there, &back, None))?);
    say("spin_payload_ns", figures(PAYLOAD, &|i| pass(&there, &back, Some(i)))?);
    say("spin_spsc_ns", figures(SPSC, &|_| pass(&there_1, &back_1, None))?);
    drop(cell);

    sleepers(&control, &endpoint, &pool, &there)?;
    control.set(GO, END);
    peer.finish()
}

pub(super) fn receive<'h>(endpoint: &'h Endpoint, from: &Queue) -> Outcome<hashmere_queue::Element<'h>> {
    Ok(endpoint.pop_wait(from, Duration::from_secs(10))?.ok_or("no message came")?)
}

pub(super) fn now_ns() -> u64 {
    hashmere_os::clock::monotonic().as_nanos() as u64
}

/// Messages to one who is asleep: each says when it was sent.
fn sleepers(control: &Control, endpoint: &Endpoint, pool: &Pool, there: &Queue) -> Outcome {
    let mem = control.0.mem();
    let word = control.0.offset() + WORD;
    for (what, name) in [(FUTEX, "futex_ns"), (SLEEP, "sleep_ns")] {
        control.set(WORD, 0);
        control.set(GO, what);
        control.wait_for(READY, what + 100)?;
        let mut all = Vec::new();
        for i in 1..=WAKES as u64 {
            // By now it sleeps.
            std::thread::sleep(Duration::from_micros(600));
            control.set(DELAY, 0);
            if what == FUTEX {
                control.set(STAMP, now_ns());
                mem.store(word, i, Ordering::SeqCst);
                mem.wake(word);
            } else {
                let mut element = receive(endpoint, pool.free())?;
                *element.view_mut::<u64>() = now_ns();
                element.push(there)?;
            }
            let start = Instant::now();
            while control.get(DELAY) == 0 {
                if start.elapsed() > Duration::from_secs(5) {
                    return Err("a message did not arrive".into());
                }
                std::thread::sleep(Duration::from_micros(50));
            }
            all.push(control.get(DELAY) as f64);
        }
        say(name, median(all));
    }
    Ok(())
}

/// The receiver.
pub fn peer(call: &Call) -> Outcome {
    pin(1)?;
    let (store, control) = open(call)?;
    let control = Control(control);
    let pool = Pool::open(&store, "delay")?;
    let (there, back) = queues(&pool)?;
    let (there_1, back_1) = spsc(&pool)?;
    let endpoint = pool.endpoint()?;
    control.set(READY, 1);
    let mut done = 0;
    loop {
        let what = control.get(GO);
        if what == done || what == 0 {
            std::thread::yield_now();
            continue;
        }
        done = what;
        control.set(READY, what + 100);
        let rounds = 0..ROUNDS * FIGURES as u64;
        match what {
            LINE => rounds.for_each(|i| {
                while control.get(WORD) != 2 * i + 1 {}
                control.set(WORD, 2 * i + 2);
            }),
            SPIN | PAYLOAD => {
                for i in rounds {
                    let mut element = receive(&endpoint, &there)?;
                    if what == PAYLOAD {
                        if *element.view::<u64>() != 2 * i + 1 {
                            return Err("the message is another one".into());
                        }
                        *element.view_mut::<u64>() = 2 * i + 2;
                    }
                    element.push(&back)?;
                }
            }
            LINES => rounds.for_each(|i| {
                control.spin_until(WORD, i + 1);
                control.set(BACK, i + 1);
            }),
            SPSC => {
                for _ in rounds {
                    receive(&endpoint, &there_1)?.push(&back_1)?;
                }
            }
            SLEEP => {
                for _ in 0..WAKES {
                    let element = receive(&endpoint, &there)?;
                    let sent = *element.view::<u64>();
                    element.push(pool.free())?;
                    control.set(DELAY, (now_ns() - sent).max(1));
                }
            }
            FUTEX => {
                let (mem, word) = (control.0.mem(), control.0.offset() + WORD);
                for i in 0..WAKES as u64 {
                    while mem.load(word, Ordering::Acquire) == i {
                        mem.wait(word, i as u32, Duration::from_secs(10));
                    }
                    control.set(DELAY, (now_ns() - control.get(STAMP)).max(1));
                }
            }
            _ => return Ok(()),
        }
    }
}
