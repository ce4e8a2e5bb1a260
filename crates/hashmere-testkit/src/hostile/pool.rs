//! What the child does with the queues of a hostile file.

use super::timed::timed;
use crate::rng::Rng;
use hashmere::Store;
use hashmere_engine::StoreHandle;
use hashmere_queue::{Endpoint, Kind, Pool, PoolOptions, Queue, QueueOptions};
use std::time::Duration;

/// The pool of a valid file, and one that the child may make.
pub(super) const POOLS: [&str; 2] = ["pool", "another"];

/// A pool with elements in each of its queues.
pub(super) fn fill(store: &Store) {
    let pool =
        PoolOptions::new(20, 24).max_queues(5).max_endpoints(4).batch(8).create(store, POOLS[0]).expect("a pool");
    let mut endpoint = pool.endpoint().expect("an endpoint");
    for (name, kind) in [("b", Kind::Mpmc), ("c", Kind::Mpsc), ("d", Kind::Spsc)] {
        let queue = pool.queue_with(name, QueueOptions::new().kind(kind).bound(9)).expect("a queue");
        endpoint.pop_many(pool.free(), 4).expect("pop");
        endpoint.push_many(&queue, 4).expect("push");
    }
}

/// Everything that can be done with pools; what comes back does not matter.
pub(super) fn use_pools(store: &Store, rng: &mut Rng) {
    drop((Pool::list(store), store.shared().regions()));
    for name in POOLS {
        let options = PoolOptions::new(20, 24).max_queues(5).max_endpoints(4).batch(8);
        let pool = if rng.chance(70) { Pool::open(store, name) } else { options.open(store, name) };
        let Ok(pool) = pool else { continue };
        timed("moving elements", || move_all(&pool, rng));
        timed("recovering a pool", || drop((pool.recover(), pool.stats())));
        if rng.chance(10) {
            drop(Pool::remove(store, name));
        }
    }
}

fn move_all(pool: &Pool, rng: &mut Rng) {
    let mut queues = pool.queues();
    queues.extend(pool.queue("e"));
    let Ok(mut endpoint) = pool.endpoint() else { return };
    for _ in 0..20 {
        let (from, to) = (rng.pick(&queues).clone(), rng.pick(&queues).clone());
        drop((from.peek(), from.name(), from.len()));
        move_one(&endpoint, &from, &to);
        let popped = endpoint.pop_many(&from, 1 + rng.below(8)).unwrap_or(0);
        (0..popped.min(endpoint.batch_len())).for_each(|index| endpoint.batch_mut(index).fill(7));
        drop((endpoint.push_many(&to, 3), endpoint.push_pop_many(&to, &from, 2)));
    }
    if let [from, to, ..] = &queues[..] {
        drop(endpoint.drain(from, to));
        drop(endpoint.wait(to, Duration::from_micros(50)));
    }
}

fn move_one(endpoint: &Endpoint, from: &Queue, to: &Queue) {
    if let Ok(Some(mut element)) = endpoint.pop(from) {
        element.fill(5);
        if let Ok(Ok(Some(other))) = endpoint.push_pop(element, to, from) {
            drop(other.push(to));
        }
    }
}
