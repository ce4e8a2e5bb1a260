//! Promise: a process opens ten thousand stores, and each grows as far as its file does, under views that do not
//! change. Where a process may have no more addresses, what it returns is right or an error that says so: never damage,
//! never a full store, never a panic; and others see nothing of it. Catches: a mapping that is too small, a second
//! record of a key that was not seen, repairs that miss what is out of reach, tables with room for some stores only.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store};
use hashmere_log::{Log, LogOptions};
use hashmere_queue::PoolOptions;
use hashmere_testkit::limits::{sampled, times, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::roles::confined::{LEN, OWN};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, payload, worker};
use nix::sys::resource::{getrlimit, Resource};

/// Two rounds of growth, after each of which every process with few addresses uses the store: below the first count all
/// that they might see, then far beyond.
const COUNTS: [u64; 3] = [2_000, 8_000, 24_000];

fn store_to(store: &Store, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| _ = store.set(&payload::key(number), &payload::encode_len(number, LEN)).unwrap());
}

/// What it says for one round: its own sets, and how much was right and how much refused.
fn hear_round(worker: &mut Worker, acknowledged: &mut Vec<u64>) -> [u64; 2] {
    loop {
        let line = worker.hear(LIMIT);
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["set", number] => acknowledged.push(number.parse().unwrap()),
            ["right", right, "refused", refused] => return [right.parse().unwrap(), refused.parse().unwrap()],
            _ => panic!("{line}"),
        }
    }
}

#[test]
fn with_few_addresses_all_is_right_or_refused() {
    let _watchdog = Watchdog::start("addresses-few");
    let scratch = Scratch::new("addresses-few");
    let store = Options::new().leaf_bytes(4096).open(scratch.store("grown")).unwrap();
    store_to(&store, 0..COUNTS[0]);
    let mut is_chosen = sampled(2);
    let mut workers: Vec<(u64, Worker)> = (0..18u64)
        .filter(|_| is_chosen())
        .filter_map(|number| {
            let limit = (30 + 10 * number) << 20;
            let mut worker = Worker::start(worker!(), "confined", &[&store.path().display(), &limit, &number]);
            match worker.hear(LIMIT).as_str() {
                "opened" => Some((limit, worker)),
                // Not even enough for what there is.
                line => {
                    assert_eq!(line, "open 13", "with {limit} bytes");
                    None
                }
            }
        })
        .collect();
    assert!(workers.len() > times(10) as usize, "{} could open the store", workers.len());
    PoolOptions::new(1000, 1000).create(&store, "pool").unwrap();
    drop(Log::open(&store, "log", LogOptions::new()).unwrap());
    let mut acknowledged = Vec::new();
    let mut sums = [0; 2];
    for pair in COUNTS.windows(2) {
        store_to(&store, pair[0]..pair[1]);
        // What they have seen already moves out of their view.
        store_to(&store, 0..500);
        for (limit, worker) in &mut workers {
            worker.say(&pair[1].to_string());
            let [right, refused] = hear_round(worker, &mut acknowledged);
            println!("{} MiB: {right} right, {refused} refused", *limit >> 20);
            assert!(*limit < 200 << 20 || refused == 0, "with {limit} bytes there is room for all");
            sums = [sums[0] + right, sums[1] + refused];
        }
    }
    for (_, worker) in workers {
        worker.finish(LIMIT).ok("confined");
    }
    assert!(sums.iter().all(|sum| *sum > times(10_000)), "{sums:?}");
    for number in (0..COUNTS[2]).chain(acknowledged) {
        let found = store.get(&payload::key(number)).unwrap();
        assert!(found == Some(payload::encode_len(number, LEN)), "key {} is not there", number & (OWN - 1));
    }
    assert_clean(&store);
}

#[test]
fn ten_thousand_stores() {
    let _watchdog = Watchdog::start("addresses-many");
    let scratch = Scratch::new("addresses-many");
    // Two descriptors each; where a process may not have that many, as many as it may.
    let count = times(10_000).min((descriptors() - 500) / 2);
    let mut worker = Worker::start(worker!(), "many", &[&scratch.path().display(), &count, &3]);
    println!("{count} stores: {}", worker.hear(LIMIT));
    ["used", "grown", "forked"].iter().for_each(|line| worker.expect(line));
    worker.finish(LIMIT).ok("many");
}

/// How many descriptors a process may have.
fn descriptors() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).unwrap().1
}

/// Threads of one process make the mapping grow again and again; what each has pinned stays where it is.
#[test]
fn threads_grow_one_mapping() {
    let _watchdog = Watchdog::start("addresses-threads");
    let scratch = Scratch::new("addresses-threads");
    let store = Store::open(scratch.store("grown")).unwrap();
    let reader = Options::new().read_only().open(store.path()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let (store, reader) = (&store, &reader);
            scope.spawn(move || {
                let mut views = Vec::new();
                for step in 0..400 {
                    let number = thread << 32 | step;
                    let (key, value) = (payload::key(number), payload::encode_len(number, 40_000));
                    store.set(&key, &value).unwrap();
                    assert!(reader.get(&key).unwrap() == Some(value), "another handle of the process");
                    if step % 40 == 0 {
                        views.push((number, store.view(&key).unwrap().unwrap()));
                    }
                }
                for (number, view) in views {
                    assert!(view[..] == payload::encode_len(number, 40_000)[..], "view of {number:#x}");
                }
            });
        }
    });
    assert_eq!(store.len(), 2400);
    assert_clean(&store);
}
