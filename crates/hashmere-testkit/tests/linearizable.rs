//! Promise: operations of several processes and threads on one key behave as if each took place at one moment
//! between call and return, while segments are cleaned, the index splits and others scan.
//! Catches: lost updates, stale or torn reads, two winners of one `add` or compare-and-set, gaps during a `set`,
//! versions that repeat or go back.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store};
use hashmere_testkit::history::{assert_linearizable, Operation, Reply};
use hashmere_testkit::journal::{self, Journal};
use hashmere_testkit::limits::{now_ns, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::roles::mix::Choice;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::threads::Background;
use hashmere_testkit::{tiny, worker};
use std::time::Duration;

/// How the operations are spread over keys and time.
#[derive(Clone, Copy)]
struct Load {
    workers: u32,
    operations: u64,
    keys: u64,
    round_ms: u64,
}

fn processes(store: &Store, scratch: &Scratch, rng: &mut Rng, load: Load) -> Vec<Operation> {
    let start = now_ns() + 50_000_000;
    let path = store.path().display();
    let Load { workers, operations, keys, round_ms } = load;
    let journal = |number: u32| scratch.path().join(format!("journal-{number}"));
    let running: Vec<Worker> = (0..workers)
        .map(|number| {
            let (journal, seed) = (journal(number), rng.word());
            let journal = journal.display();
            let arguments: [&dyn ToString; 9] =
                [&path, &journal, &number, &seed, &operations, &keys, &round_ms, &start, &0];
            Worker::start(worker!(), "mix", &arguments)
        })
        .collect();
    for mut worker in running {
        worker.expect("done");
        worker.finish(LIMIT).ok("mix");
    }
    (0..workers).flat_map(|number| journal::read(&journal(number), number)).collect()
}

fn run_processes(name: &'static str, options: Options, load: Load, beside: impl FnOnce(&Store) -> Vec<Background>) {
    let _watchdog = Watchdog::start(name);
    let mut rng = Rng::for_test(name);
    let scratch = Scratch::new(name);
    let store = options.open(scratch.store("shared")).unwrap();
    let others = beside(&store);
    let operations = processes(&store, &scratch, &mut rng, load);
    others.into_iter().for_each(|other| assert!(other.finish() > 0));
    assert_eq!(operations.len() as u64, u64::from(load.workers) * load.operations);
    assert!(operations.iter().all(|operation| operation.reply != Some(Reply::Refused)), "no process was stopped");
    assert_linearizable(operations);
    let report = store.check();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

#[test]
fn processes_on_a_few_hot_keys() {
    let load = Load { workers: 4, operations: 60_000, keys: 4, round_ms: 2 };
    run_processes("linear-hot", tiny(), load, |_| Vec::new());
}

#[test]
fn processes_on_one_key() {
    let load = Load { workers: 3, operations: 10_000, keys: 1, round_ms: 1 };
    run_processes("linear-one", Options::new(), load, |_| Vec::new());
}

#[test]
fn processes_while_others_scan_and_clean() {
    let load = Load { workers: 3, operations: 40_000, keys: 8, round_ms: 3 };
    run_processes("linear-scanned", tiny(), load, |store| {
        let (scanned, cleaned) = (store.clone(), store.clone());
        let scan = Background::repeat(move |_| {
            assert!(scanned.iter().all(|pair| pair.is_ok()));
        });
        let clean = Background::repeat(move |_| {
            cleaned.compact().unwrap();
            std::thread::sleep(Duration::from_micros(300));
        });
        vec![scan, clean]
    });
}

#[test]
fn threads_of_one_process() {
    let name = "linear-threads";
    let _watchdog = Watchdog::start(name);
    let mut rng = Rng::for_test(name);
    let scratch = Scratch::new(name);
    let store = tiny().open(scratch.store("shared")).unwrap();
    let start = now_ns();
    let seeds: Vec<u64> = (0..4).map(|_| rng.word()).collect();
    let journal = |number: usize| scratch.path().join(format!("journal-{number}"));
    let work = |(number, seed): (usize, u64)| {
        let mut rng = Rng::from_seed(seed);
        let (mut journal, mut choice) = (Journal::create(&journal(number), 50_000), Choice::new(number as u32));
        while !journal.is_full() {
            let round = (now_ns() - start) / 2_000_000;
            let key = (round * 4 + rng.below(4)) as u32;
            let call = choice.next(&mut rng, key);
            choice.learn(key, journal.perform(&store, key, call, rng.word()));
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        seeds.into_iter().enumerate().for_each(|pair| drop(scope.spawn(move || work(pair))));
    });
    let operations: Vec<Operation> = (0..4).flat_map(|number| journal::read(&journal(number), number as u32)).collect();
    assert_eq!(operations.len(), 4 * 50_000);
    assert!(operations.iter().all(|operation| operation.reply != Some(Reply::Refused)), "no process was stopped");
    assert_linearizable(operations);
}
