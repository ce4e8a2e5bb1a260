//! Moves of elements: in batches, alone and beside the other process; one by one round two queues.

use super::{open, pin, span, Call, Control, Peer, COUNT, GO, READY};
use crate::work::say;
use crate::Outcome;
use hashmere_queue::{Endpoint, Kind, Pool, PoolOptions, Queue, QueueOptions};
use std::time::Instant;

const BATCH: u64 = 1000;
const BYTES: u64 = 4096;
/// Moves between two looks at the clock.
const STRIDE: u64 = 64;

/// Every element says its number.
fn mark(pool: &Pool) -> Outcome {
    let mut endpoint = pool.endpoint()?;
    let n = pool.elements();
    let mut done = 0;
    while done < n {
        // No more than are unmarked: behind them come those that are.
        let popped = endpoint.pop_many(pool.free(), BATCH.min(n - done))?;
        for i in 0..popped {
            let number = done + i;
            endpoint.batch_mut(i)[..8].copy_from_slice(&number.to_le_bytes());
        }
        done += endpoint.push_many(pool.free(), popped)?;
    }
    Ok(())
}

/// Every number is there once.
fn verify(pool: &Pool) -> Outcome {
    let mut endpoint = pool.endpoint()?;
    let mut seen = vec![false; pool.elements() as usize];
    for queue in pool.queues() {
        while endpoint.pop_many(&queue, BATCH)? > 0 {
            for i in 0..endpoint.batch_len() {
                let number = endpoint.batch(i).first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
                let place =
                    number.and_then(|number| seen.get_mut(number as usize)).ok_or("an element is not what it was")?;
                if std::mem::replace(place, true) {
                    return Err(format!("element {number:?} is there twice").into());
                }
            }
            let kept = pool.queue("verified")?;
            endpoint.push_many(&kept, BATCH)?;
            if queue.name() == "verified" {
                break;
            }
        }
    }
    if seen.iter().any(|seen| !seen) {
        return Err("an element was lost".into());
    }
    Ok(())
}

fn shift(endpoint: &mut Endpoint, from: &Queue, to: &Queue) -> Outcome<u64> {
    endpoint.pop_many(from, BATCH)?;
    Ok(endpoint.push_many(to, BATCH)?)
}

fn rate(moves: u64, since: Instant) -> f64 {
    moves as f64 / since.elapsed().as_secs_f64() / 1e6
}

/// Three queues, batches of a thousand.
pub fn batches(call: &Call) -> Outcome {
    pin(0)?;
    let (store, control) = open(call)?;
    let control = Control(control);
    let pool = PoolOptions::new(call.records.into(), BYTES).create(&store, "w4")?;
    mark(&pool)?;
    let (free, ab, ba) = (pool.free().clone(), pool.queue("a-to-b")?, pool.queue("b-to-a")?);
    let mut endpoint = pool.endpoint()?;

    let (start, mut moves) = (Instant::now(), 0);
    while start.elapsed() < span(call) {
        for (from, to) in [(&free, &ab), (&ab, &ba), (&ba, &free)] {
            moves += shift(&mut endpoint, from, to)?;
        }
    }
    say("batch_alone_mps", rate(moves, start));

    let peer = Peer::start(call)?;
    control.wait_for(READY, 1)?;
    control.set(GO, 1);
    let (start, mut moves) = (Instant::now(), 0);
    while start.elapsed() < span(call) {
        moves += shift(&mut endpoint, &free, &ab)? + shift(&mut endpoint, &ba, &free)?;
    }
    say("batch_beside_mps", rate(moves, start));
    control.set(GO, 2);
    peer.finish()?;
    say("batch_peer_mps", control.get(COUNT) as f64 / 1e3);
    drop(endpoint);
    verify(&pool)
}

/// The other process.
pub fn batches_peer(call: &Call) -> Outcome {
    pin(1)?;
    let (store, control) = open(call)?;
    let control = Control(control);
    let pool = Pool::open(&store, "w4")?;
    let (ab, ba) = (pool.queue("a-to-b")?, pool.queue("b-to-a")?);
    let mut endpoint = pool.endpoint()?;
    control.set(READY, 1);
    control.wait_for(GO, 1)?;
    let (start, mut moves) = (Instant::now(), 0);
    while control.get(GO) == 1 {
        moves += shift(&mut endpoint, &ab, &ba)?;
    }
    control.set(COUNT, (rate(moves, start) * 1e3) as u64);
    Ok(())
}

fn ring(call: &Call, pool: &Pool) -> Outcome<(Queue, Queue)> {
    let kind = if call.test.starts_with("queue-spsc") { Kind::Spsc } else { Kind::Mpmc };
    let options = QueueOptions::new().kind(kind);
    Ok((pool.queue_with("there", options)?, pool.queue_with("back", options)?))
}

/// Element after element to the other process and back.
pub fn singles(call: &Call) -> Outcome {
    pin(0)?;
    let (store, control) = open(call)?;
    let control = Control(control);
    let pool = PoolOptions::new(call.records.into(), BYTES).create(&store, "w4")?;
    mark(&pool)?;
    let (there, back) = ring(call, &pool)?;
    let spsc = call.test == "queue-spsc";
    {
        // Alone: from one queue to the other and back.
        let endpoint = pool.endpoint()?;
        let (start, mut moves) = (Instant::now(), 0);
        endpoint.pop(pool.free())?.ok_or("no element")?.push(&there)?;
        while start.elapsed() < span(call) / 4 {
            for _ in 0..STRIDE {
                endpoint.pop(&there)?.ok_or("no element")?.push(&back)?;
                endpoint.pop(&back)?.ok_or("no element")?.push(&there)?;
            }
            moves += 2 * STRIDE;
        }
        say(if spsc { "spsc_alone_mps" } else { "mpmc_alone_mps" }, rate(moves, start));
        endpoint.pop(&there)?.ok_or("no element")?.push(pool.free())?;
    }
    let peer = Peer::start(call)?;
    control.wait_for(READY, 1)?;
    let endpoint = pool.endpoint()?;
    while let Some(element) = endpoint.pop(pool.free())? {
        element.push(&there)?;
    }
    control.set(GO, 1);
    let (start, mut moves) = (Instant::now(), 0);
    while start.elapsed() < span(call) {
        for _ in 0..STRIDE {
            if let Some(element) = endpoint.pop(&back)? {
                element.push(&there)?;
                moves += 1;
            }
        }
    }
    say(if spsc { "spsc_mps" } else { "mpmc_mps" }, rate(moves, start));
    control.set(GO, 2);
    peer.finish()?;
    drop(endpoint);
    verify(&pool)
}

/// The other process.
pub fn singles_peer(call: &Call) -> Outcome {
    pin(1)?;
    let (store, control) = open(call)?;
    let control = Control(control);
    let pool = Pool::open(&store, "w4")?;
    let (there, back) = ring(call, &pool)?;
    let endpoint = pool.endpoint()?;
    control.set(READY, 1);
    control.wait_for(GO, 1)?;
    while control.get(GO) == 1 {
        for _ in 0..STRIDE {
            if let Some(element) = endpoint.pop(&there)? {
                element.push(&back)?;
            }
        }
    }
    Ok(())
}
