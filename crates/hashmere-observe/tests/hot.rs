//! The keys that samples say are hot are those that are; sampling ends, whichever process is killed.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store, WriteError};
use hashmere_engine::StoreHandle;
use hashmere_observe::{HotKey, Hottest, Sampler, POLL};
use hashmere_testkit::forked::{fork, wait};
use hashmere_testkit::limits::wait_until;
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small};
use std::process::Command;
use std::time::Duration;

/// Far longer than anything takes here.
const LIMIT: Duration = Duration::from_secs(120);
/// Keys of a workload.
const KEYS: u64 = 500;

fn key(n: u64) -> Vec<u8> {
    format!("key:{n}").into_bytes()
}

/// The probability of a rank, from 0 on: 1 / (rank + 1)^1.3, of all.
fn zipf() -> Vec<f64> {
    let weights: Vec<f64> = (1..=KEYS).map(|rank| (rank as f64).powf(-1.3)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

fn draw(probabilities: &[f64], rng: &mut Rng) -> u64 {
    let mut at = rng.below(1 << 53) as f64 / (1u64 << 53) as f64;
    let rank = probabilities.iter().position(|p| {
        at -= p;
        at < 0.0
    });
    rank.unwrap_or(0) as u64
}

fn kill(child: impl ToString) {
    assert!(Command::new("kill").args(["-9", &child.to_string()]).status().unwrap().success());
}

/// Polls until what was collected is so.
#[track_caller]
fn poll_until(sampler: &mut Sampler, what: &str, mut is_so: impl FnMut(&mut Sampler) -> bool) {
    wait_until(what, LIMIT, || {
        std::thread::sleep(POLL);
        sampler.poll().unwrap();
        is_so(sampler)
    });
}

fn named<'h>(hottest: &'h Hottest, key: &[u8]) -> Option<&'h HotKey> {
    hottest.keys.iter().find(|hot| hot.key == key)
}

/// The shares of the first ranks are what they are by the law, within what samples say of themselves.
fn assert_shares(hottest: &Hottest, key_of: impl Fn(u64) -> Vec<u8>) {
    for (rank, share) in zipf().into_iter().take(3).enumerate() {
        let hot = &hottest.keys[rank];
        assert_eq!(hot.key, key_of(rank as u64), "rank {rank} of {:?}", &hottest.keys[..5]);
        // Twice as far as 95 % of all such intervals reach, of the key and of the total.
        let of_key = (hot.rate.high - hot.rate.low) / hot.rate.value;
        let of_total = (hottest.total.high - hottest.total.low) / hottest.total.value;
        let off = (hot.share / share - 1.0).abs();
        assert!(off < of_key + of_total, "rank {rank}: {} where it is {share}, by {off}", hot.share);
    }
}

#[test]
fn the_hottest_keys_of_several_processes_are_found() {
    let scratch = Scratch::new("hot");
    let store = Store::open(scratch.store("s")).unwrap();
    (0..KEYS).for_each(|n| assert!(store.set(&key(n), b"some value").is_ok()));
    // What is read most is not what is written most.
    let children: Vec<_> = (0..3u64)
        .map(|child| {
            fork(|| {
                let (probabilities, mut rng) = (zipf(), Rng::from_seed(child));
                loop {
                    for _ in 0..3 {
                        store.get(&key(draw(&probabilities, &mut rng))).unwrap();
                    }
                    store.set(&key(KEYS - 1 - draw(&probabilities, &mut rng)), b"another value").unwrap();
                }
            })
        })
        .collect();
    let mut sampler = Sampler::start(&store).unwrap();
    poll_until(&mut sampler, "samples", |sampler| {
        let hot = sampler.hot_keys();
        hot.reads.total.samples >= 4000 && hot.writes.total.samples >= 2000
    });
    let hot = sampler.hot_keys();
    for child in children {
        kill(child);
    }
    assert_shares(&hot.reads, key);
    assert_shares(&hot.writes, |rank| key(KEYS - 1 - rank));
    // Three reads for each write.
    let ratio = hot.reads.total.value / hot.writes.total.value;
    assert!((2.4..3.75).contains(&ratio), "{ratio}");
    assert!(hot.reads.keys[0].absent == 0.0 && hot.seconds > 0.0);
    let shares: f64 = hot.reads.keys.iter().map(|key| key.share).sum();
    assert!((shares - 1.0).abs() < 1e-6 && hot.reads.given_up == 0);
    // Processes that were killed while they sampled left nothing behind.
    sampler.poll().unwrap();
    drop(sampler);
    assert_clean(&store);
}

/// Each way to read and to write, misses and deletes apart, long keys told apart.
#[test]
fn every_use_of_a_key_is_seen() {
    let scratch = Scratch::new("hot");
    let store = Store::open(scratch.store("s")).unwrap();
    for name in ["get", "view", "many1", "many2", "uid", "into"] {
        store.set(name.as_bytes(), b"value, longer than a word").unwrap();
    }
    let id = store.id_of(b"uid").unwrap().unwrap();
    let long = [[b"l".repeat(100), b"1".to_vec()].concat(), [b"l".repeat(100), b"2".to_vec()].concat()];
    let mut sampler = Sampler::start(&store).unwrap();
    let mut buffer = Vec::new();
    poll_until(&mut sampler, "every use", |sampler| {
        store.get(b"get").unwrap();
        store.get(b"absent").unwrap();
        drop(store.view(b"view").unwrap());
        store.get_many(&[b"many1", b"many2"]).unwrap();
        store.get(id).unwrap();
        buffer.clear();
        store.get_into(b"into", &mut buffer).unwrap();
        store.set(b"set", b"value").unwrap();
        store.incr(b"counter", 1, hashmere::Counter::or_create(7)).unwrap();
        store.delete(b"set").unwrap();
        for key in &long {
            store.get(key).unwrap();
        }
        let hot = sampler.hot_keys();
        let reads = ["get", "absent", "view", "many1", "many2", "uid", "into"];
        reads.iter().all(|name| named(&hot.reads, name.as_bytes()).is_some())
            && hot.reads.keys.iter().filter(|key| !key.is_whole()).count() == 2
            && named(&hot.writes, b"set").is_some_and(|key| 0.0 < key.absent && key.absent < key.rate.value)
            && named(&hot.writes, b"counter").is_some()
    });
    let hot = sampler.hot_keys();
    let absent = named(&hot.reads, b"absent").unwrap();
    assert!((absent.absent / absent.rate.value - 1.0).abs() < 1e-9);
    assert_eq!(named(&hot.reads, b"get").unwrap().absent, 0.0);
    assert!(named(&hot.writes, b"get").is_none() && named(&hot.reads, b"set").is_none());
    let truncated: Vec<_> = hot.reads.keys.iter().filter(|key| !key.is_whole()).collect();
    assert!(truncated.iter().all(|hot| hot.key == b"l".repeat(88) && hot.key_len == 101));
}

#[test]
fn nothing_done_is_nothing_seen_and_only_clients_are() {
    let scratch = Scratch::new("hot");
    let store = Store::open(scratch.store("s")).unwrap();
    store.set(b"key", b"value").unwrap();
    let reader = Options::new().read_only().open(store.path()).unwrap();
    assert!(matches!(Sampler::start(&reader), Err(WriteError::ReadOnly)));
    let mut sampler = Sampler::start(&store).unwrap();
    for _ in 0..100 {
        assert!(reader.get(b"key").unwrap().is_some());
    }
    sampler.poll_for(Duration::from_millis(20), || false).unwrap();
    let hot = sampler.hot_keys();
    assert!(hot.seconds > 0.0 && hot.samples == 0 && hot.lost == 0, "{hot:?}");
    assert_eq!((hot.reads, hot.writes), (Hottest::default(), Hottest::default()));
    // Off again: what is done now is not sampled.
    let engine = store.shared().engine();
    drop(sampler);
    let begun = engine.samples_begun();
    (0..1000).for_each(|_| assert!(store.get(b"key").unwrap().is_some()));
    assert_eq!(engine.samples_begun(), begun);
}

/// Catches sampling that goes on forever once its observer was killed.
#[test]
fn it_ends_when_the_observer_is_killed() {
    let scratch = Scratch::new("hot");
    let store = Store::open(scratch.store("s")).unwrap();
    store.set(b"key", b"value").unwrap();
    let observer = fork(|| {
        let mut sampler = Sampler::start(&store).unwrap();
        sampler.poll_for(LIMIT, || false).unwrap();
    });
    let engine = store.shared().engine();
    // Reads so far apart that each is sampled.
    let sampled = || {
        let begun = engine.samples_begun();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(2));
            store.get(b"key").unwrap();
        }
        engine.samples_begun() - begun
    };
    wait_until("sampling is on", LIMIT, || sampled() > 0);
    kill(observer);
    wait_until("sampling is off", LIMIT, || sampled() == 0);
    // And on again, with another observer.
    let mut sampler = Sampler::start(&store).unwrap();
    poll_until(&mut sampler, "sampling is on again", |sampler| {
        store.get(b"key").unwrap();
        sampler.hot_keys().samples > 0
    });
}

#[test]
fn a_full_store_is_sampled_as_any_other() {
    let scratch = Scratch::new("hot");
    let store = small().max_bytes(2 << 20).open(scratch.store("s")).unwrap();
    let mut n = 0;
    while store.set(&key(n), &[7; 1000]).is_ok() {
        n += 1;
    }
    assert!(n > 100);
    let mut sampler = Sampler::start(&store).unwrap();
    poll_until(&mut sampler, "a sample", |sampler| {
        assert!(store.get(&key(0)).unwrap().is_some());
        // A write that is refused is none.
        assert!(store.set(&key(n), &[7; 1000]).is_err());
        sampler.hot_keys().samples > 0
    });
    let hot = sampler.hot_keys();
    assert_eq!((hot.reads.keys.len(), hot.reads.keys[0].key.clone(), hot.writes.keys.len()), (1, key(0), 0));
    drop(sampler);
    assert_clean(&store);
}

/// Two observers at a time see both, and the end of one is not the end of the other.
#[test]
fn two_observers_see_the_same() {
    let scratch = Scratch::new("hot");
    let store = Store::open(scratch.store("s")).unwrap();
    store.set(b"key", b"value").unwrap();
    let mut one = Sampler::start(&store).unwrap();
    let other = fork(|| {
        let mut other = Sampler::start(&store).unwrap();
        poll_until(&mut other, "a sample of the other's", |other| named(&other.hot_keys().reads, b"key").is_some());
    });
    poll_until(&mut one, "a sample", |one| {
        store.get(b"key").unwrap();
        one.hot_keys().samples > 0
    });
    let working = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while working.load(std::sync::atomic::Ordering::Relaxed) {
                store.get(b"key").unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        wait(other);
        let before = one.hot_keys().samples;
        poll_until(&mut one, "samples after the other's end", |one| one.hot_keys().samples > before + 10);
        working.store(false, std::sync::atomic::Ordering::Relaxed);
    });
}
