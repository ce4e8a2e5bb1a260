//! Promise: a process may be killed between any two instructions; nothing acknowledged is lost, nothing is torn, the
//! others go on, no process hangs, and no client slot is leaked.
//! Catches: locks or half-made changes that a dead process leaves behind, acknowledged writes that vanish, counts
//! that drift, slots that are never freed.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, WriteError};
use hashmere_testkit::limits::{lasting, times, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::storm::storm;
use hashmere_testkit::{assert_clean, payload, tiny, worker};
use std::time::Duration;

fn run(name: &'static str, options: &Options, time: Duration) {
    let _watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    storm(worker!(), &scratch, options, Rng::for_test(name), time);
}

fn seconds() -> Duration {
    lasting(Duration::from_secs(10))
}

#[test]
fn random_processes_in_tiny_segments() {
    run("killed-tiny", &tiny(), seconds());
}

#[test]
fn random_processes_in_the_default_geometry() {
    run("killed-default", &Options::new(), seconds() / 3);
}

#[test]
fn random_processes_on_a_durable_store() {
    run("killed-durable", &tiny().durable(), seconds() / 3);
}

/// Slots of dead clients are found and used again, however many die.
#[test]
fn reopening_2000_times_leaks_no_client() {
    let _watchdog = Watchdog::start("killed-clients");
    let scratch = Scratch::new("killed-clients");
    let path = scratch.store("clients");
    let store = tiny().open(&path).unwrap();
    let before = store.stats();
    for round in 0..100 {
        let mut worker = Worker::start(worker!(), "shell", &[&path.display()]);
        worker.expect("open");
        worker.say("incr deaths 1");
        worker.expect(&format!("number Some({})", round + 1));
        worker.kill();
    }
    for _ in 0..2000 {
        let again = Options::new().create(false).open(&path).unwrap();
        assert_eq!(again.get(b"deaths").unwrap().as_deref(), Some(&b"100"[..]));
        again.set(b"opened", b"again").unwrap();
    }
    let after = store.stats();
    assert!(after.clients.len() <= before.clients.len() + 2, "clients: {:?}", after.clients);
    // A hundred dead and two thousand closed clients, each with a segment of its own for a time.
    let grown = after.bytes_file - before.bytes_file;
    assert!(grown <= 16 * 4096, "the file has grown by {grown} bytes");
    assert_clean(&store);
}

/// A death must also be noticed by one that already waits for the lock of the killed one.
#[test]
fn counters_of_survivors_stay_exact() {
    let _watchdog = Watchdog::start("killed-counters");
    let mut rng = Rng::for_test("killed-counters");
    let scratch = Scratch::new("killed-counters");
    let path = scratch.store("counters");
    let store = tiny().open(&path).unwrap();
    let mut survivor = Worker::start(worker!(), "hammer", &[&path.display(), &3, &"incr"]);
    survivor.expect("ready");
    let mut kills = 0;
    for _ in 0..60 {
        let mut victim = Worker::start(worker!(), "hammer", &[&path.display(), &3, &"incr"]);
        victim.expect("ready");
        std::thread::sleep(Duration::from_micros(rng.below(4000)));
        victim.kill();
        kills += 1;
    }
    survivor.no_more();
    let added: u64 = survivor.hear(LIMIT).strip_prefix("added ").unwrap().parse().unwrap();
    survivor.finish(LIMIT).ok("hammer");
    for key in 0..3 {
        let text = String::from_utf8(store.get(&payload::key(key)).unwrap().unwrap()).unwrap();
        // Victims added an unknown number, but at least one round each; no round is lost or counted twice.
        assert!(text.parse::<u64>().unwrap() >= added + kills, "key {key}: {text} is less than {added} + {kills}");
    }
    assert_eq!(store.len(), 3);
    // The survivor may have ended before it needed what the last one held.
    store.compact().unwrap();
    assert_clean(&store);
}

/// A process is stopped first, and killed only if a write shows that it is inside a critical section: there the
/// locks, the counts and the half-made record are what another process must repair.
#[test]
fn killed_inside_a_critical_section() {
    const KEYS: u64 = 4;
    let _watchdog = Watchdog::start("killed-inside");
    let mut rng = Rng::for_test("killed-inside");
    let scratch = Scratch::new("killed-inside");
    let store = tiny().busy_timeout(Duration::from_millis(2)).open(scratch.store("inside")).unwrap();
    let path = store.path().display();
    let rounds = times(400);
    let (mut inside, mut round) = (0, 0);
    // On a busy machine more of them are stopped where no writer notices: then there are more rounds.
    while round < rounds || inside * 4 < rounds {
        assert!(round < 20 * rounds, "{inside} of {round} died inside a critical section: this run has shown little");
        let mut victim = Worker::start(worker!(), "hammer", &[&path, &KEYS, &"toggle"]);
        victim.expect("ready");
        for _ in 0..50 {
            std::thread::sleep(Duration::from_micros(rng.below(300)));
            victim.stop();
            let busy = |key| matches!(store.set(&payload::key(key), b"probe"), Err(WriteError::Busy { .. }));
            if (0..KEYS).any(busy) {
                inside += 1;
                break;
            }
            victim.go_on();
        }
        victim.kill();
        for key in 0..KEYS {
            // Whatever it was about to do, others can do what they want with the key now.
            if (key + round) % 2 == 0 {
                store.set(&payload::key(key), &payload::encode(round)).unwrap();
            } else {
                store.delete(&payload::key(key)).unwrap();
            }
        }
        assert_eq!(store.len(), KEYS / 2, "round {round}: the count after a death inside a write");
        assert_eq!(store.keys().count() as u64, KEYS / 2, "round {round}");
        let report = store.check();
        assert!(report.is_clean(), "round {round}: {:#?}", report.problems);
        round += 1;
    }
    println!("{inside} of {round} died inside a critical section");
}
