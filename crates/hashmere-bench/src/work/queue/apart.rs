//! How long a message is under way, one way, to a receiver that spins: sent after a pause of random length, stamped at
//! both ends. Beside it a bare word, sent in the same way.
//!
//! There and back at once is another question: who answers in the line that brought the message has it already, and the
//! other end looks at always the same time.

use super::delay::{now_ns, queues, receive, spsc};
use super::{median, open, pin, Call, Control, Peer, GO, READY};
use crate::work::say;
use crate::Outcome;
use hashmere_mem::Mem;
use hashmere_queue::{Element, Endpoint, Pool, PoolOptions, Queue};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

/// Messages of a figure; figures of which the median is taken.
const MESSAGES: u64 = 2000;
const FIGURES: u64 = 15;
/// The longest pause before one.
const PAUSE_NS: u64 = 2000;
/// The words of the bare test, and where the receiver notes when each message came.
const WORD: u64 = 512;
const BACK: u64 = 1024;
const CAME: u64 = 4096;
/// What the receiver does, by the word that says go.
const LINE: u64 = 1;
const MPMC: u64 = 2;
const SPSC: u64 = 3;
const PAYLOAD: u64 = 4;
const END: u64 = 5;

/// What the clock itself takes between two stamps.
fn clock_ns() -> f64 {
    let all = (0..10_000).map(|_| (now_ns(), now_ns()));
    median(all.map(|(before, after)| (after - before) as f64).collect())
}

/// Spins for a random while.
fn pause(random: &Cell<u64>) {
    let mut word = random.get();
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    random.set(word);
    let until = now_ns() + word % PAUSE_NS;
    while now_ns() < until {
        std::hint::spin_loop();
    }
}

/// The sender.
pub fn run(call: &Call) -> Outcome {
    pin(0)?;
    let (store, control) = open(call)?;
    let control = Control(control);
    let pool = PoolOptions::new(4, 64).create(&store, "apart")?;
    let (mpmc, one) = (queues(&pool)?, spsc(&pool)?);
    let peer = Peer::start(call)?;
    control.wait_for(READY, 1)?;
    let endpoint = pool.endpoint()?;
    let (random, clock) = (Cell::new(call.seed | 1), clock_ns());
    let element = RefCell::new(Some(endpoint.pop(pool.free())?.ok_or("no element")?));
    let figure = |what: u64, send: &dyn Fn(u64) -> Outcome<u64>| -> Outcome<f64> {
        let mut figures = Vec::new();
        for n in 0..FIGURES {
            control.set(GO, what + 10 * n);
            let mut sent = Vec::new();
            for i in 1..=MESSAGES {
                pause(&random);
                sent.push(send(n * MESSAGES + i)?);
            }
            control.wait_for(READY, what + 10 * n)?;
            let came = (0..MESSAGES).map(|i| control.get(CAME + 8 * i));
            figures.push(median(came.zip(sent).map(|(came, sent)| came as f64 - sent as f64 - clock).collect()));
        }
        Ok(median(figures))
    };
    let word = |i: u64| {
        let sent = now_ns();
        control.set(WORD, i);
        control.spin_until(BACK, i);
        Ok(sent)
    };
    say("apart_line_ns", figure(LINE, &word)?);
    let pass = |(there, back): &(Queue, Queue), payload: bool| -> Outcome<u64> {
        let mut slot = element.borrow_mut();
        let mut element: Element = slot.take().ok_or("no element")?;
        let sent = now_ns();
        if payload {
            *element.view_mut::<u64>() = sent;
        }
        element.push(there)?;
        *slot = Some(receive(&endpoint, back)?);
        Ok(sent)
    };
    say("apart_ns", figure(MPMC, &|_| pass(&mpmc, false))?);
    say("apart_spsc_ns", figure(SPSC, &|_| pass(&one, false))?);
    say("apart_payload_ns", figure(PAYLOAD, &|_| pass(&mpmc, true))?);
    control.set(GO, END);
    drop(element);
    peer.finish()
}

/// Takes the messages of a figure and notes when each came.
fn take(control: &Control, endpoint: &Endpoint, (there, back): &(Queue, Queue), payload: bool) -> Outcome {
    let (mem, at) = (control.0.mem(), control.0.offset() + CAME);
    for i in 0..MESSAGES {
        let element = receive(endpoint, there)?;
        let sent = if payload { *element.view::<u64>() } else { 0 };
        let came = now_ns();
        if sent > came {
            return Err("the message is another one".into());
        }
        mem.store(at + 8 * i, came, Ordering::Relaxed);
        element.push(back)?;
    }
    Ok(())
}

/// The receiver.
pub fn peer(call: &Call) -> Outcome {
    pin(1)?;
    let (store, control) = open(call)?;
    let control = Control(control);
    let pool = Pool::open(&store, "apart")?;
    let (mpmc, one) = (queues(&pool)?, spsc(&pool)?);
    let endpoint = pool.endpoint()?;
    control.set(READY, 1);
    let mut done = 0;
    loop {
        let go = control.get(GO);
        if go == done || go == 0 {
            std::thread::yield_now();
            continue;
        }
        done = go;
        match go % 10 {
            LINE => {
                let first = go / 10 * MESSAGES + 1;
                for i in first..first + MESSAGES {
                    control.spin_until(WORD, i);
                    let came = now_ns();
                    control.set(CAME + 8 * (i - first), came);
                    control.set(BACK, i);
                }
            }
            MPMC => take(&control, &endpoint, &mpmc, false)?,
            SPSC => take(&control, &endpoint, &one, false)?,
            PAYLOAD => take(&control, &endpoint, &mpmc, true)?,
            _ => return Ok(()),
        }
        control.set(READY, go);
    }
}
