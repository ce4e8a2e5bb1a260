//! Promise: an element of a pool is always in one place, whichever process is killed at whatever instruction; queues go
//! on, no process hangs. Catches: elements lost or doubled by a death, endpoints and roles that are never given back,
//! wake-ups that are lost, pools whose room is not free after a drop.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store};
use hashmere_queue::{Endpoint, Kind, OnDeath, Pool, PoolOptions, QueueError, QueueOptions};
use hashmere_testkit::forked::{fork, wait};
use hashmere_testkit::limits::{lasting, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, tiny, worker};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const ELEMENTS: u64 = 40;

/// Every element says its number, and that no worker holds it.
fn mark(pool: &Pool) {
    let endpoint = pool.endpoint().unwrap();
    for number in 0..pool.elements() {
        let mut element = endpoint.pop(pool.free()).unwrap().unwrap();
        assert_eq!(u64::from(element.index()), number);
        element[..8].copy_from_slice(&number.to_le_bytes());
        assert!(element.push(pool.free()).unwrap().is_none());
    }
}

/// How often each number is in the queues.
fn census(pool: &Pool) -> BTreeMap<u64, u32> {
    let mut endpoint = pool.endpoint().unwrap();
    let mut seen = BTreeMap::new();
    for queue in pool.queues() {
        for _ in 0..queue.len() {
            if endpoint.pop_many(&queue, 1).unwrap() == 1 {
                let number = u64::from_le_bytes(*endpoint.batch(0).first_chunk().unwrap());
                *seen.entry(number).or_insert(0) += 1;
                assert_eq!(endpoint.push_many(&queue, 1).unwrap(), 1);
            }
        }
    }
    seen
}

fn assert_conserved(pool: &Pool) {
    pool.recover().unwrap();
    let stats = pool.stats();
    assert_eq!((stats.held, stats.endpoints), (0, 0), "{stats:?}");
    let expected: BTreeMap<u64, u32> = (0..pool.elements()).map(|number| (number, 1)).collect();
    assert_eq!(census(pool), expected);
}

fn storm(name: &'static str, on_death: OnDeath, kind: Kind) {
    let time = lasting(Duration::from_secs(8));
    let _watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    let mut rng = Rng::for_test(name);
    let store = tiny().open(scratch.store("queues")).unwrap();
    let pool = PoolOptions::new(ELEMENTS, 16).batch(8).on_death(on_death).create(&store, "pool").unwrap();
    mark(&pool);
    pool.queue_with("b", QueueOptions::new().kind(kind)).unwrap();
    pool.queue_with("c", QueueOptions::new().bound(5)).unwrap();
    let start = |rng: &mut Rng| {
        let seed = rng.word();
        Worker::start(worker!(), "queue", &[&store.path().display(), &"pool", &seed, &"free", &"b", &"c"])
    };
    let mut workers: Vec<Worker> = (0..3).map(|_| start(&mut rng)).collect();
    let (begin, mut kills) = (Instant::now(), 0);
    // On a busy machine until one died with an element, and each lives longer.
    while begin.elapsed() < time || pool.stats().recovered == 0 {
        let longer = 1 + (begin.elapsed().as_secs_f64() / time.as_secs_f64()) as u64;
        std::thread::sleep(Duration::from_micros(longer * (3000 + rng.below(12_000))));
        let victim = rng.index(workers.len());
        if rng.chance(30) {
            workers[victim].signal(Signal::SIGSTOP);
            std::thread::sleep(Duration::from_micros(rng.below(3000)));
        }
        let ended = workers.swap_remove(victim).kill();
        assert!(ended.killed_by(Signal::SIGKILL), "a worker had failed by itself: {ended:?}");
        kills += 1;
        workers.push(start(&mut rng));
        if kills % 16 == 0 {
            pool.recover().unwrap();
        }
    }
    let mut moved = 0u64;
    for worker in workers {
        let lines = worker.finish(LIMIT).ok("queue");
        moved += lines[0].strip_prefix("moved ").unwrap().parse::<u64>().unwrap();
    }
    assert_conserved(&pool);
    let stats = pool.stats();
    println!("{name}: {kills} kills, {} elements given back, {moved} moves of the last workers", stats.recovered);
    assert_clean(&store);
}

#[test]
fn killed_at_random_elements_go_back_to_where_they_came_from() {
    storm("queues-origin", OnDeath::Origin, Kind::Mpmc);
}

#[test]
fn killed_at_random_the_only_producer_and_the_only_consumer() {
    storm("queues-spsc", OnDeath::Origin, Kind::Spsc);
}

#[test]
fn killed_at_random_elements_go_to_the_dead_letter_queue() {
    storm("queues-lost", OnDeath::Queue("lost"), Kind::Mpmc);
}

fn small(scratch: &Scratch) -> (Store, Pool) {
    let store = Options::new().open(scratch.store("queues")).unwrap();
    let pool = PoolOptions::new(ELEMENTS, 16).open(&store, "pool").unwrap();
    (store, pool)
}

/// What a killed worker had popped comes back while another waits for it, without a call of the program.
#[test]
fn a_sleeper_is_given_what_a_crashed_endpoint_held() {
    let _watchdog = Watchdog::start("queues-sleeper");
    let scratch = Scratch::new("queues-sleeper");
    let store = Options::new().open(scratch.store("queues")).unwrap();
    let pool = PoolOptions::new(1, 8).create(&store, "pool").unwrap();
    // It holds the only element when it dies.
    let path = store.path().display();
    for _ in 0..5 {
        let mut worker = Worker::start(worker!(), "holder", &[&path, &"pool"]);
        worker.expect("holding");
        let endpoint = pool.endpoint().unwrap();
        assert!(endpoint.pop_wait(pool.free(), Duration::from_millis(20)).unwrap().is_none(), "a living one keeps it");
        worker.kill();
        let element = endpoint.pop_wait(pool.free(), LIMIT).unwrap();
        assert!(element.is_some(), "it was not given back");
    }
}

#[test]
fn roles_of_dropped_and_crashed_endpoints_are_given_back() {
    let scratch = Scratch::new("queues-roles");
    let (_store, pool) = small(&scratch);
    let queue = pool.queue_with("spsc", QueueOptions::new().kind(Kind::Spsc)).unwrap();
    let push = |endpoint: &Endpoint| endpoint.pop(pool.free()).unwrap().unwrap().push(&queue).map(|_| ());
    let (a, b) = (pool.endpoint().unwrap(), pool.endpoint().unwrap());
    push(&a).unwrap();
    assert!(matches!(push(&b), Err(QueueError::Taken("producer"))));
    assert!(b.pop(&queue).unwrap().is_some());
    assert!(matches!(a.pop(&queue), Err(QueueError::Taken("consumer"))));
    drop(a);
    push(&b).unwrap();
    drop(b);
    let c = pool.endpoint().unwrap();
    push(&c).unwrap();
    assert_eq!(pool.stats().held, 0);
}

#[test]
fn pools_and_queues_are_found_by_name_and_dropped() {
    let scratch = Scratch::new("queues-names");
    let (store, pool) = small(&scratch);
    let free = store.stats().segments_free;
    assert_eq!(store.stats().regions, 1);
    assert_eq!(Pool::list(&store), ["pool"]);
    pool.queue_with("few", QueueOptions::new().bound(2)).unwrap();
    assert!(matches!(pool.queue_with("few", QueueOptions::new().bound(3)), Err(QueueError::Exists(_))));
    assert!(matches!(pool.queue(""), Err(QueueError::BadOption(_))));
    assert!(matches!(PoolOptions::new(3, 16).open(&store, "pool"), Err(QueueError::Exists(_))));
    assert!(matches!(Pool::open(&store, "other"), Err(QueueError::NotFound(_))));
    assert!(matches!(PoolOptions::new(0, 16).create(&store, "none"), Err(QueueError::BadOption(_))));
    let made = (0..).take_while(|n| pool.queue(&format!("queue {n}")).is_ok()).count();
    assert_eq!(made, 6, "eight queues, of which two were there");
    let other = Pool::open(&store, "pool").unwrap();
    assert_eq!(other.queues().len(), 8);
    // From one handle of the pool to the other.
    let endpoint = other.endpoint().unwrap();
    let few = pool.queue("few").unwrap();
    for _ in 0..2 {
        assert!(endpoint.pop(other.free()).unwrap().unwrap().push(&few).unwrap().is_none());
    }
    let back = endpoint.pop(pool.free()).unwrap().unwrap().push(&few).unwrap();
    assert!(back.is_some(), "the bound is two");
    drop(back);
    drop(endpoint);
    assert!(Pool::remove(&store, "pool").unwrap() && !Pool::remove(&store, "pool").unwrap());
    assert!(pool.is_removed() && matches!(pool.endpoint(), Err(QueueError::Removed)));
    drop((pool, other, few));
    store.compact().unwrap();
    assert!(store.stats().segments_free > free && store.stats().regions == 0);
}

#[test]
fn elements_are_where_they_were_after_all_processes_closed_the_store() {
    let scratch = Scratch::new("queues-reopen");
    let (store, pool) = small(&scratch);
    mark(&pool);
    let queue = pool.queue("kept").unwrap();
    let mut endpoint = pool.endpoint().unwrap();
    endpoint.pop_many(pool.free(), 7).unwrap();
    endpoint.push_many(&queue, 5).unwrap();
    drop((endpoint, queue, pool, store));
    let (_store, pool) = small(&scratch);
    assert_eq!((pool.queue("kept").unwrap().len(), pool.free().len()), (5, ELEMENTS - 5));
    assert_eq!(pool.queue("kept").unwrap().peek().unwrap()[..8], 0u64.to_le_bytes());
    assert_conserved(&pool);
}

/// 5 MiB and 400 MiB, in a store of segments of 256 KiB.
#[test]
fn pools_of_all_sizes() {
    let scratch = Scratch::new("queues-sizes");
    let store = Options::new().open(scratch.store("queues")).unwrap();
    for (elements, bytes) in [(1, 1), (1280, 4096), (100_000, 4096)] {
        let pool = PoolOptions::new(elements, bytes).create(&store, "pool").unwrap();
        let mut endpoint = pool.endpoint().unwrap();
        let (queue, mut moved) = (pool.queue("all").unwrap(), 0);
        while endpoint.pop_many(pool.free(), 1000).unwrap() > 0 {
            let last = endpoint.batch_len() - 1;
            endpoint.batch_mut(last).fill(1);
            moved += endpoint.push_many(&queue, 1000).unwrap();
        }
        assert_eq!((moved, queue.len()), (elements, elements));
        assert_eq!(endpoint.drain(&queue, pool.free()).unwrap(), elements);
        drop((endpoint, queue, pool));
        assert!(Pool::remove(&store, "pool").unwrap());
    }
    assert!(store.check().is_clean());
}

#[test]
fn a_descriptor_is_readable_while_there_is_something_to_pop() {
    let _watchdog = Watchdog::start("queues-ready_fd");
    let scratch = Scratch::new("queues-ready_fd");
    let (_store, pool) = small(&scratch);
    let queue = pool.queue("events").unwrap();
    let ready = queue.ready_fd().unwrap();
    let poll = |limit| {
        let mut entries = [PollFd::new(ready.as_fd(), PollFlags::POLLIN)];
        poll(&mut entries, PollTimeout::try_from(limit).unwrap()).unwrap() == 1
    };
    assert!(!poll(Duration::from_millis(20)));
    let endpoint = pool.endpoint().unwrap();
    for round in 0..20 {
        std::thread::sleep(Duration::from_millis(round));
        for _ in 0..2 {
            endpoint.pop(pool.free()).unwrap().unwrap().push(&queue).unwrap();
        }
        assert!(poll(LIMIT));
        ready.acknowledge();
        assert!(endpoint.pop(&queue).unwrap().is_some());
        // One is left: readable again without a push.
        assert!(poll(LIMIT));
        ready.acknowledge();
        assert!(endpoint.pop(&queue).unwrap().is_some());
    }
}

/// Push and pop in one call, single and in batches; peek, length and drain; waits that end.
#[test]
fn one_call_for_both_and_looks_without_taking() {
    let scratch = Scratch::new("queues-both");
    let (_store, pool) = small(&scratch);
    mark(&pool);
    let (todo, full) = (pool.queue("todo").unwrap(), pool.queue_with("full", QueueOptions::new().bound(1)).unwrap());
    assert!(todo.peek().is_none() && todo.is_empty());
    let mut endpoint = pool.endpoint().unwrap();
    let first = endpoint.pop(pool.free()).unwrap().unwrap();
    let second = endpoint.push_pop(first, &full, pool.free()).unwrap().expect("there is room").expect("there are more");
    assert_eq!((second.index(), full.len(), full.peek().unwrap()[..8].to_vec()), (1, 1, vec![0; 8]));
    let back = endpoint.push_pop(second, &full, pool.free()).unwrap().expect_err("it is full");
    assert_eq!((back.index(), pool.stats().held), (1, 1), "nothing was popped");
    assert!(endpoint.push_pop(back, &todo, &full).unwrap().unwrap().is_some_and(|element| element.index() == 0));
    // The element was dropped, and is where it came from.
    assert_eq!((full.len(), todo.len(), pool.free().len()), (1, 1, ELEMENTS - 2));
    assert_eq!(endpoint.push_pop_many(&todo, pool.free(), 5).unwrap(), (0, 5));
    assert_eq!(endpoint.push_pop_many(&full, pool.free(), 5).unwrap(), (0, 5), "one of bound 1 is full");
    assert!(matches!(endpoint.drain(&todo, &full), Err(QueueError::BadOption(_))), "the batch is not empty");
    assert_eq!(endpoint.push_pop_many(&todo, &full, 5).unwrap(), (10, 1));
    assert_eq!(endpoint.push_many(&todo, 1).unwrap(), 1);
    assert_eq!(endpoint.drain(&todo, &full).unwrap(), 1, "as many as it takes");
    assert_eq!((todo.len(), full.len()), (11, 1), "the others are where they came from");
    assert_eq!(endpoint.drain(&todo, pool.free()).unwrap(), 11);
    let begin = Instant::now();
    assert!(!endpoint.wait(&todo, Duration::from_millis(30)).unwrap());
    assert!(endpoint.pop_wait(&todo, Duration::from_millis(30)).unwrap().is_none());
    assert!(begin.elapsed() >= Duration::from_millis(60));
    assert!(endpoint.wait(pool.free(), Duration::ZERO).unwrap());
    assert_eq!(endpoint.drain(&full, pool.free()).unwrap(), 1);
    drop(endpoint);
    assert_conserved(&pool);
}

/// Typed views; a handle of the parent is refused in a forked child.
#[test]
fn values_in_elements() {
    let scratch = Scratch::new("queues-typed");
    let (_store, pool) = small(&scratch);
    let endpoint = pool.endpoint().unwrap();
    let mut element = endpoint.pop(pool.free()).unwrap().unwrap();
    *element.view_mut::<[u32; 4]>() = [1, 2, 3, 4];
    assert_eq!(*element.view::<u64>(), 2 << 32 | 1);
    let wide = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *element.view::<[u64; 3]>()));
    assert!(wide.is_err(), "longer than the element");
    wait(fork(|| assert!(matches!(endpoint.pop(pool.free()), Err(QueueError::Forked)))));
    drop(element);
    drop(endpoint);
    assert_conserved_numbers(&pool);
}

fn assert_conserved_numbers(pool: &Pool) {
    assert_eq!((pool.free().len(), pool.stats().held), (ELEMENTS, 0));
}
