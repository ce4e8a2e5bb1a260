//! Promise: several keys change at one moment or not at all, also when processes are killed or stopped in the middle,
//! and every snapshot is of one moment.
//! Catches: half a transaction that is seen or left, a lost update, a transaction that acts on what is no more, a
//! result that tells something else than what happened.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, BatchResult, Condition, Counter, Store, Ttl, Update, Version, WriteBatch, WriteError};
use hashmere_testkit::limits::{lasting, times, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::roles::bank::{account, balance, transfer};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, tiny, worker};
use std::time::{Duration, Instant};

fn open(scratch: &Scratch) -> Store {
    tiny().open(scratch.store("transactions")).unwrap()
}

#[test]
fn a_batch_does_its_operations_in_order_and_tells_each_result() {
    let scratch = Scratch::new("transactions-batch");
    let store = open(&scratch);
    store.set("n", b"7").unwrap();
    store.set_with("text", b"abc", Attributes::NONE.flags(3)).unwrap();
    store.set("gone", b"x").unwrap();
    let mut batch = WriteBatch::new();
    batch.incr("n", 3, Counter::EXISTING).incr("n", -100, Counter::EXISTING);
    batch.incr("m", 1, Counter::or_create(5)).incr("none", 1, Counter::EXISTING);
    batch.append("text", "def").prepend("text", "__").append("none", "x");
    batch.touch("text", Ttl::After(Duration::from_secs(1000))).touch("none", Ttl::Never);
    batch.delete("gone").delete("gone").delete("none");
    batch.set("new", "1").get("new").get("text").get("gone");
    let results = store.write_batch(&batch).unwrap();
    use BatchResult::{Counted, Deleted, Extended, Item, Stored, Touched};
    assert_eq!(results.len(), batch.len());
    assert_eq!(results[..4], [Counted(Some(10)), Counted(Some(0)), Counted(Some(5)), Counted(None)]);
    assert_eq!(results[4..7], [Extended(true), Extended(true), Extended(false)]);
    assert_eq!(results[7..9], [Touched(true), Touched(false)]);
    assert_eq!(results[9..12], [Deleted(true), Deleted(false), Deleted(false)]);
    let Stored(stored) = results[12] else { panic!("{:?}", results[12]) };
    let new = store.metadata("new").unwrap().unwrap();
    assert!(stored.created && stored.version == new.version && stored.uid == new.uid);
    let (Item(Some(new)), Item(Some(text))) = (&results[13], &results[14]) else { panic!("{results:?}") };
    assert_eq!((&new.value[..], &text.value[..]), (&b"1"[..], &b"__abcdef"[..]));
    assert_eq!(results[15], Item(None));
    let text = store.get_item("text").unwrap().unwrap();
    assert_eq!((text.value, text.metadata.flags), (b"__abcdef".to_vec(), 3));
    assert!(text.metadata.expires_at_ms.is_some());
    assert_eq!(store.get("n").unwrap().unwrap(), b"0");
    assert_eq!(store.len_exact().unwrap(), 4);
    assert_clean(&store);
}

#[test]
fn an_empty_value_behind_one_that_is_replaced() {
    let scratch = Scratch::new("transactions-empty");
    let store = open(&scratch);
    let mut batch = WriteBatch::new();
    batch.set("a", [b'a'; 100]).set("b", "").set("b", "").set("a", "1");
    batch.set("c", [b'c'; 100]).set("d", "");
    // Both have their entries: what is replaced now is the last of the bytes.
    batch.set("c", [b'c'; 90]).set("d", "").set("c", "2");
    store.write_batch(&batch).unwrap();
    for (key, value) in [("a", "1"), ("b", ""), ("c", "2"), ("d", "")] {
        assert_eq!(store.get(key).unwrap().unwrap(), value.as_bytes(), "{key}");
    }
}

#[test]
fn nothing_has_changed_after_an_error() {
    let scratch = Scratch::new("transactions-error");
    let store = open(&scratch);
    store.set("text", b"not a number").unwrap();
    let mut batch = WriteBatch::new();
    batch.set("a", "1").incr("text", 1, Counter::EXISTING).set("b", "2");
    let error = store.write_batch(&batch).unwrap_err();
    assert!(matches!(error, WriteError::NotANumber) && error.code() == 35);
    let failed: Result<(), Box<dyn std::error::Error>> = store.transaction(|t| {
        t.set("a", "1")?;
        t.delete("text")?;
        Err("no".into())
    });
    assert_eq!(failed.unwrap_err().to_string(), "no");
    assert_eq!((store.len(), store.get("a").unwrap()), (1, None));
    // What a panic leaves is nothing, either: no lock was held.
    let panicked = std::panic::catch_unwind(|| {
        store.transaction(|t| -> Result<(), WriteError> {
            t.set("text", "changed")?;
            panic!("in the middle")
        })
    });
    assert!(panicked.is_err());
    assert_eq!(store.get("text").unwrap().unwrap(), b"not a number");
    assert_clean(&store);
}

#[test]
fn the_number_of_keys_has_a_limit_that_is_named() {
    let scratch = Scratch::new("transactions-limit");
    let store = hashmere::Options::new().open(scratch.store("many")).unwrap();
    assert_eq!(store.write_batch(&WriteBatch::new()).unwrap(), []);
    let batch = |keys: u32| {
        let mut batch = WriteBatch::new();
        (0..keys).for_each(|i| _ = batch.set(i.to_le_bytes(), [i as u8; 100]));
        batch
    };
    assert_eq!(store.write_batch(&batch(1)).unwrap().len(), 1);
    assert_eq!(store.write_batch(&batch(1024)).unwrap().len(), 1024);
    assert_eq!(store.len(), 1024);
    store.clear().unwrap();
    let error = store.write_batch(&batch(1025)).unwrap_err();
    assert!(matches!(error, WriteError::TooManyKeys { limit: 1024 }) && error.code() == 41, "{error}");
    assert!(error.to_string().contains("1024"));
    assert!(store.is_empty());
    // The same key any number of times is one.
    let mut batch = WriteBatch::new();
    (0..5000).for_each(|_| _ = batch.incr("n", 1, Counter::or_create(1)));
    store.write_batch(&batch).unwrap();
    assert_eq!(store.get("n").unwrap().unwrap(), b"5000");
    // And one that is written again and again needs no more memory than what is left in the end.
    let mut batch = WriteBatch::new();
    batch.set("a", "").set("b", "");
    (0..1000).for_each(|_| _ = batch.append("a", [b'a'; 1000]).append("b", "b"));
    store.write_batch(&batch).unwrap();
    assert_eq!(store.metadata("a").unwrap().unwrap().value_len, 1_000_000);
    assert_eq!(store.get("b").unwrap().unwrap(), vec![b'b'; 1000]);
    // Short segments have short lists.
    let tiny = open(&scratch);
    let mut batch = WriteBatch::new();
    (0..100).for_each(|i| _ = batch.delete(i.to_string()));
    assert!(matches!(tiny.write_batch(&batch).unwrap_err(), WriteError::TooManyKeys { limit: 36 }));
    assert_clean(&store);
}

#[test]
fn conditions_choose_the_batch() {
    let scratch = Scratch::new("transactions-if");
    let store = open(&scratch);
    let version = store.set("a", b"1").unwrap().version;
    let (mut then, mut otherwise) = (WriteBatch::new(), WriteBatch::new());
    then.set("chosen", "then");
    otherwise.set("chosen", "otherwise").get("a");
    let choose = |conditions: &[Condition<'_>]| {
        let branch = store.write_batch_if(conditions, &then, &otherwise).unwrap();
        let chosen = store.get("chosen").unwrap().unwrap();
        assert_eq!(chosen, if branch.succeeded { &b"then"[..] } else { b"otherwise" });
        assert_eq!(branch.results.len(), if branch.succeeded { 1 } else { 2 });
        branch.succeeded
    };
    assert!(choose(&[]));
    assert!(choose(&[Condition::Version(b"a", version), Condition::Absent(b"b"), Condition::Value(b"a", b"1")]));
    assert!(choose(&[Condition::Present(b"a"), Condition::Version(b"b", Version(0))]));
    for wrong in [
        Condition::Absent(b"a"),
        Condition::Present(b"b"),
        Condition::Version(b"a", Version(version.0 + 1)),
        Condition::Version(b"a", Version(0)),
        Condition::Value(b"a", b"2"),
        Condition::Value(b"b", b""),
    ] {
        assert!(!choose(&[Condition::Present(b"a"), wrong]), "{wrong:?}");
    }
    // A branch without writes reads at one moment.
    let mut reads = WriteBatch::new();
    reads.get("a").get("b");
    let branch = store.write_batch_if(&[Condition::Absent(b"a")], &then, &reads).unwrap();
    assert!(!branch.succeeded && matches!(&branch.results[..], [BatchResult::Item(Some(_)), BatchResult::Item(None)]));
}

#[test]
fn a_transaction_sees_its_own_writes_and_runs_again_after_a_conflict() {
    let scratch = Scratch::new("transactions-closure");
    let store = open(&scratch);
    store.set("a", b"1").unwrap();
    let mut runs = 0;
    let seen = store.transaction(|t| -> Result<_, WriteError> {
        runs += 1;
        let before = t.get("a")?;
        t.set("a", "2")?;
        let own = t.get("a")?;
        t.delete("a")?;
        assert!(!t.contains_key("a")?);
        t.set("a", "3")?;
        t.append("a", "4")?;
        // No other process sees any of this; and one that writes is not kept from it.
        assert_eq!(store.get("a")?.as_deref(), before.as_deref());
        if runs < 3 {
            store.set("a", runs.to_string().as_bytes())?;
        }
        Ok((before, own))
    });
    assert_eq!((seen.unwrap(), runs), ((Some(b"2".to_vec()), Some(b"2".to_vec())), 3));
    assert_eq!(store.get("a").unwrap().unwrap(), b"34");
    // An error that comes from a mixture of moments is not returned.
    let mut runs = 0;
    let ended = store.transaction(|t| {
        runs += 1;
        let a = t.get("a")?;
        if runs == 1 {
            store.set("a", b"5")?;
            store.set("b", b"5")?;
        }
        if t.get("b")?.is_some() && a.as_deref() != Some(b"5") {
            return Err(WriteError::InvalidState("a mixture"));
        }
        Ok(())
    });
    ended.unwrap();
    assert_eq!(runs, 2);
}

/// What a transaction wrote with an expiry that is over is absent to it, as it will be to all others.
#[test]
fn what_it_wrote_and_has_expired_is_absent() {
    let scratch = Scratch::new("transactions-expired");
    let store = open(&scratch);
    let over = Attributes::NONE.ttl(Ttl::At(1));
    store.set("n", b"7").unwrap();
    let seen = store.transaction(|t| -> Result<_, WriteError> {
        t.set_with("n", "8", over)?;
        let read = (t.get("n")?, t.contains_key("n")?, t.touch("n", Ttl::Never)?, t.append("n", "x")?);
        let counted = (t.incr_by("n", 1, Counter::EXISTING)?, t.incr_by("n", 1, Counter::or_create(3))?);
        t.set("m", "1")?;
        let touched = (t.touch("m", Ttl::At(1))?, t.get("m")?);
        Ok((read, counted, touched))
    });
    assert_eq!(seen.unwrap(), ((None, false, false, false), (None, Some(3)), (true, None)));
    assert_eq!((store.get("n").unwrap(), store.get("m").unwrap()), (Some(b"3".to_vec()), None));
    let mut batch = WriteBatch::new();
    batch.set_with("a", "1", over).delete("a").set_with("b", "1", over).get("b");
    let results = store.write_batch(&batch).unwrap();
    assert_eq!((&results[1], &results[3]), (&BatchResult::Deleted(false), &BatchResult::Item(None)));
    assert_clean(&store);
}

/// What it read changes each time: after at least 5 seconds and 1,000 runs the error names the key.
#[test]
fn a_conflict_that_never_ends_is_an_error_that_names_the_key() {
    let scratch = Scratch::new("transactions-conflict");
    let store = open(&scratch);
    store.set("contended", b"0").unwrap();
    let (start, mut runs) = (std::time::Instant::now(), 0u64);
    let done = store.transaction(|t| -> Result<(), WriteError> {
        runs += 1;
        t.get("contended")?;
        t.set("other", "written")?;
        store.set("contended", runs.to_string().as_bytes()).map(drop)
    });
    let Err(WriteError::Conflict { key }) = done else { panic!("{done:?}") };
    assert_eq!(&*key, "contended");
    assert!(runs >= 1000 && start.elapsed() >= Duration::from_secs(5), "{runs} runs in {:?}", start.elapsed());
    assert_eq!(store.get("other").unwrap(), None);
    assert_clean(&store);
}

#[test]
fn values_into_a_buffer() {
    let scratch = Scratch::new("transactions-buffer");
    let store = open(&scratch);
    let long = vec![b'x'; 200_000];
    store.set("short", b"of the store").unwrap();
    store.set("long", &long).unwrap();
    let mut buffer = Vec::from(*b"of before");
    let done = store.transaction(|t| -> Result<(), WriteError> {
        for _ in 0..2 {
            assert_eq!((t.get_into("short", &mut buffer)?, &buffer[..]), (Some(12), &b"of the store"[..]));
            assert_eq!((t.get_into("long", &mut buffer)?, &buffer), (Some(long.len()), &long));
            assert_eq!((t.get_into("absent", &mut buffer)?, buffer.is_empty()), (None, true));
        }
        t.set("absent", "own")?;
        assert_eq!((t.get_into("absent", &mut buffer)?, &buffer[..]), (Some(3), &b"own"[..]));
        t.delete("short")?;
        assert_eq!((t.get_into("short", &mut buffer)?, buffer.is_empty()), (None, true));
        Ok(())
    });
    done.unwrap();
    assert_eq!((store.get("short").unwrap(), store.len()), (None, 2));
}

#[test]
fn a_key_that_is_shown_to_an_update_is_not_written() {
    let scratch = Scratch::new("transactions-shown");
    let store = open(&scratch);
    store.set("own", b"0").unwrap();
    let updated = store.update_with("own", |_| {
        let mut batch = WriteBatch::new();
        batch.set("own", "1").set("other", "1");
        assert!(matches!(store.write_batch(&batch), Err(WriteError::Reentered { .. })));
        batch.clear();
        batch.set("other", "1").set("another", "1");
        store.write_batch(&batch).unwrap();
        Update::Keep
    });
    updated.unwrap();
    assert_eq!((store.get("own").unwrap().unwrap(), store.len()), (b"0".to_vec(), 3));
}

const ACCOUNTS: u64 = 100;
const EACH: u64 = 20;

fn bank(store: &Store) {
    for number in 0..ACCOUNTS {
        store.set(&account(number), EACH.to_string().as_bytes()).unwrap();
    }
}

/// The sum of all accounts at one moment.
fn sum(store: &Store) -> Option<u64> {
    let keys: Vec<String> = (0..ACCOUNTS).map(account).collect();
    let items = store.get_many_snapshot(&keys).ok()?;
    Some(items.iter().map(|item| balance(item.as_ref().map(|item| &item.value[..]))).sum())
}

/// The sum stays while processes that move money are killed and stopped in the middle of it.
fn storm(name: &'static str, options: &hashmere::Options) {
    let _watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    let path = scratch.store("bank");
    let store = options.clone().busy_timeout(Duration::from_millis(50)).open(&path).unwrap();
    bank(&store);
    let mut rng = Rng::for_test(name);
    let start = |seed: u64| Worker::start(worker!(), "bank", &[&path.display(), &ACCOUNTS, &seed]);
    let mut workers = [start(1), start(2), start(3)];
    workers.iter_mut().for_each(|worker| worker.expect("ready"));
    let (mut sums, mut stopped_at) = (0, None);
    let rounds = times(150);
    for round in 0..rounds {
        std::thread::sleep(Duration::from_micros(rng.below(3000)));
        let at = rng.below(3) as usize;
        if round % 3 == 0 {
            let mut next = start(rng.word());
            next.expect("ready");
            std::mem::replace(&mut workers[at], next).kill();
            stopped_at = stopped_at.filter(|stopped| *stopped != at);
        } else if stopped_at.is_none() {
            workers[at].stop();
            stopped_at = Some(at);
        }
        if let Some(sum) = sum(&store) {
            assert_eq!(sum, ACCOUNTS * EACH, "round {round}");
            sums += 1;
        }
        match transfer(&store, &account(rng.below(50)), &account(50 + rng.below(50)), 3) {
            Ok(_) | Err(WriteError::Busy { .. } | WriteError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if let Some(at) = stopped_at.take_if(|_| rng.below(2) == 0) {
            workers[at].go_on();
        }
    }
    if let Some(at) = stopped_at {
        workers[at].go_on();
    }
    for worker in workers {
        worker.finish(LIMIT).ok("bank");
    }
    assert!(sums > rounds / 4, "only {sums} snapshots in {rounds} rounds");
    assert_eq!(sum(&store), Some(ACCOUNTS * EACH));
    let scanned: u64 = store.iter().map(|pair| balance(Some(&pair.unwrap().value))).sum();
    assert_eq!(scanned, ACCOUNTS * EACH);
    assert_clean(&store);
}

#[test]
fn the_sum_of_a_bank_survives_kills_and_stops() {
    storm("transactions-bank", &small());
}

#[test]
fn the_sum_of_a_durable_bank_survives_kills_and_stops() {
    storm("transactions-bank-durable", &small().durable());
}

/// Lists of appends: each transaction appends its number to some keys, and reads others. The order of the numbers in
/// the lists, and what the reads saw of them, must not contradict each other.
#[test]
fn histories_of_several_keys_have_an_order() {
    const KEYS: usize = 6;
    const THREADS: u64 = 4;
    let scratch = Scratch::new("transactions-histories");
    let store = open(&scratch);
    let end = Instant::now() + lasting(Duration::from_millis(1500));
    let made: Vec<Made> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let store = store.clone();
                scope.spawn(move || {
                    let mut rng = Rng::for_test(&format!("transactions-histories-{thread}"));
                    let mut made = Vec::new();
                    for n in 0..2000u64 {
                        if Instant::now() > end {
                            break;
                        }
                        made.push(append_and_read(&store, n * THREADS + thread + 1, &mut rng, KEYS));
                    }
                    made
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let lists: Vec<Vec<u64>> = (0..KEYS).map(|key| numbers(store.get(&name(key)).unwrap())).collect();
    assert!(made.len() > 100);
    check(&made, &lists);
}

/// A transaction that took place.
struct Made {
    number: u64,
    /// Keys it appended to.
    appended: Vec<usize>,
    /// What it read.
    read: Vec<(usize, Vec<u64>)>,
    began: Instant,
    ended: Instant,
}

fn name(key: usize) -> String {
    format!("list {key}")
}

fn numbers(value: Option<Vec<u8>>) -> Vec<u64> {
    let text = String::from_utf8(value.unwrap_or_default()).unwrap();
    text.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

fn append_and_read(store: &Store, number: u64, rng: &mut Rng, keys: usize) -> Made {
    let some = |rng: &mut Rng| -> Vec<usize> { (0..keys).filter(|_| rng.below(3) == 0).collect() };
    let (appended, wanted) = (some(rng), some(rng));
    let began = Instant::now();
    let read = if appended.is_empty() {
        let names: Vec<String> = wanted.iter().map(|key| name(*key)).collect();
        let items = store.get_many_snapshot(&names).unwrap();
        wanted.iter().copied().zip(items.into_iter().map(|item| numbers(item.map(|item| item.value)))).collect()
    } else {
        store
            .transaction(|t| -> Result<Vec<_>, WriteError> {
                let read = wanted.iter().map(|key| Ok((*key, numbers(t.get(name(*key))?)))).collect::<Result<_, _>>();
                for key in &appended {
                    if !t.append(name(*key), format!(" {number}"))? {
                        t.set(name(*key), number.to_string())?;
                    }
                }
                read
            })
            .unwrap()
    };
    Made { number, appended, read, began, ended: Instant::now() }
}

/// One order of all transactions explains everything: there is no circle of "comes before".
fn check(made: &[Made], lists: &[Vec<u64>]) {
    use std::collections::HashMap;
    let place: HashMap<u64, usize> = made.iter().enumerate().map(|(at, made)| (made.number, at)).collect();
    let mut later: Vec<Vec<usize>> = vec![Vec::new(); made.len()];
    for (key, list) in lists.iter().enumerate() {
        let writers: Vec<usize> =
            made.iter().filter(|made| made.appended.contains(&key)).map(|m| place[&m.number]).collect();
        assert_eq!(list.len(), writers.len(), "list {key} has lost an append, or has one twice");
        list.windows(2).for_each(|pair| later[place[&pair[0]]].push(place[&pair[1]]));
    }
    for (at, one) in made.iter().enumerate() {
        for (key, read) in &one.read {
            assert!(lists[*key].starts_with(read), "a read saw {read:?} of list {key}, which never was");
            let of_others = |number: &&u64| place[*number] != at;
            read.last().into_iter().filter(of_others).for_each(|last| later[place[last]].push(at));
            let next = lists[*key].get(read.len());
            next.iter().filter(|number| of_others(number)).for_each(|next| later[at].push(place[*next]));
        }
    }
    // What ended before another one began comes before it: through a few in between it is enough to say so of the next.
    let mut by_start: Vec<usize> = (0..made.len()).collect();
    by_start.sort_by_key(|at| made[*at].began);
    for (at, one) in made.iter().enumerate() {
        let from = by_start.partition_point(|other| made[*other].began <= one.ended);
        later[at].extend(by_start[from..].iter().take(8));
    }
    // Kahn's algorithm takes all of them out if there is no circle.
    let mut earlier = vec![0u32; made.len()];
    later.iter().flatten().for_each(|at| earlier[*at] += 1);
    let mut free: Vec<usize> = (0..made.len()).filter(|at| earlier[*at] == 0).collect();
    let mut ordered = 0;
    while let Some(at) = free.pop() {
        ordered += 1;
        for next in &later[at] {
            earlier[*next] -= 1;
            if earlier[*next] == 0 {
                free.push(*next);
            }
        }
    }
    assert_eq!(ordered, made.len(), "no order explains {} of the transactions", made.len() - ordered);
}
