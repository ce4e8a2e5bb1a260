//! Promise: a process that ends, in whatever way, is noticed and leaves nothing behind: in another PID namespace, with
//! a child that inherited the store, by exec, as a thread, or as one of very many; and a full client table is an error
//! that passes. Catches: liveness by process id, locks that a child keeps alive, slots and segments that are never
//! found again.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Counter, Options, Store, WriteError};
use hashmere_testkit::limits::{now_ns, queued_ns, times, wait_until, Watchdog};
use hashmere_testkit::procs::{namespaces_allowed, Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, payload, tiny, worker};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const KEYS: u64 = 4;

/// Held by a test that counts the slots that its threads leave, and by one with more threads than have writers of their
/// own: as long as any thread of the process shares writers, all keep theirs.
static THREADS_OF_THE_PROCESS: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    THREADS_OF_THE_PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whatever a process left, each key can be written at once. That this process waited for a processor is not counted;
/// that those did who hold a lock and live is, so it is not quite at once.
fn write_all(store: &Store, what: &str) {
    for key in 0..KEYS {
        let begin = now_ns() - queued_ns();
        store.incr(&payload::key(key), 1, Counter::or_create(1)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let took = Duration::from_nanos(now_ns().saturating_sub(queued_ns()).saturating_sub(begin));
        assert!(took < Duration::from_secs(15), "{what}: a write took {took:?}");
    }
}

/// Both are process 1 of their own namespaces, so a lookup of a process of that number finds one alive.
#[test]
fn deaths_in_another_pid_namespace() {
    if !namespaces_allowed() {
        return;
    }
    let _watchdog = Watchdog::start("clients-namespaces");
    let mut rng = Rng::for_test("clients-namespaces");
    let scratch = Scratch::new("clients-namespaces");
    let store = tiny().open(scratch.store("shared")).unwrap();
    let arguments: [&dyn ToString; 3] = [&store.path().display(), &KEYS, &"incr"];
    let mut survivor = Worker::start_in_namespace(worker!(), "hammer", &arguments);
    survivor.expect("ready");
    let rounds = times(40);
    for round in 0..rounds {
        let mut victim = Worker::start_in_namespace(worker!(), "hammer", &arguments);
        victim.expect("ready");
        std::thread::sleep(Duration::from_micros(rng.below(4000)));
        victim.kill();
        write_all(&store, &format!("round {round}"));
    }
    survivor.no_more();
    let added: u64 = survivor.hear(LIMIT).strip_prefix("added ").unwrap().parse().unwrap();
    survivor.finish(LIMIT).ok("hammer");
    for key in 0..KEYS {
        let text = String::from_utf8(store.get(&payload::key(key)).unwrap().unwrap()).unwrap();
        assert!(
            text.parse::<u64>().unwrap() >= added + 2 * rounds,
            "key {key}: {text}, and the survivor alone added {added}"
        );
    }
    assert_clean(&store);
}

/// A refusal must not name the process that has the same number here.
#[test]
fn a_stopped_process_of_another_namespace_is_named_by_its_own_name() {
    if !namespaces_allowed() {
        return;
    }
    let _watchdog = Watchdog::start("clients-named");
    let mut rng = Rng::for_test("clients-named");
    let scratch = Scratch::new("clients-named");
    let store = tiny().busy_timeout(Duration::from_millis(3)).open(scratch.store("named")).unwrap();
    let mut worker = Worker::start_in_namespace(worker!(), "hammer", &[&store.path().display(), &KEYS, &"incr"]);
    worker.expect("ready");
    let pid = worker.only_child();
    let signal = |signal| kill(pid, signal).unwrap();
    // Until it is stopped inside a critical section.
    loop {
        std::thread::sleep(Duration::from_micros(rng.below(500)));
        signal(Signal::SIGSTOP);
        let refused = (0..KEYS).find_map(|key| store.incr(&payload::key(key), 1, Counter::or_create(1)).err());
        signal(Signal::SIGCONT);
        if let Some(error) = refused {
            let text = error.to_string();
            assert!(matches!(error, WriteError::Busy { pid: 1, .. }), "{text}");
            assert!(text.contains("pid 1 (hashmere-testki)"), "{text}");
            return;
        }
    }
}

#[test]
fn an_idle_child_does_not_keep_its_dead_parent_alive() {
    let _watchdog = Watchdog::start("clients-idle");
    let mut rng = Rng::for_test("clients-idle");
    let scratch = Scratch::new("clients-idle");
    let store = tiny().open(scratch.store("idle")).unwrap();
    for round in 0..times(60) {
        let mut parent = Worker::start(worker!(), "fork", &[&store.path().display(), &"idle"]);
        let child: i32 = parent.hear(LIMIT).parse().unwrap();
        std::thread::sleep(Duration::from_micros(rng.below(3000)));
        parent.kill();
        write_all(&store, &format!("round {round}"));
        // The child of our worker ends itself only much later.
        kill(Pid::from_raw(child), Signal::SIGKILL).expect("the child is there all the time");
    }
    assert_clean(&store);
}

#[test]
fn a_process_that_becomes_another_program_has_left() {
    let _watchdog = Watchdog::start("clients-exec");
    let scratch = Scratch::new("clients-exec");
    let store = tiny().open(scratch.store("exec")).unwrap();
    for round in 0..times(60) {
        let worker = Worker::start(worker!(), "fork", &[&store.path().display(), &"exec"]);
        let name = || std::fs::read_to_string(format!("/proc/{}/comm", worker.pid())).unwrap_or_default();
        wait_until("it is another program", LIMIT, || name() == "sleep\n");
        write_all(&store, &format!("round {round}"));
        // The kernel drops its locks a moment after it has the new name.
        wait_until("it is no client any more", LIMIT, || {
            drop(Options::new().create(false).open(store.path()).unwrap());
            store.stats().clients.iter().all(|client| client.pid != worker.pid())
        });
        worker.kill();
    }
    assert_clean(&store);
}

#[test]
fn threads_that_end_or_panic_leave_their_place() {
    let _alone = alone();
    let _watchdog = Watchdog::start("clients-threads");
    let scratch = Scratch::new("clients-threads");
    let store = tiny().open(scratch.store("threads")).unwrap();
    for round in 0..20 {
        std::thread::scope(|scope| {
            let store = &store;
            let start = |number| {
                scope.spawn(move || {
                    store.set(&payload::key(number), &payload::encode(round)).unwrap();
                    if number % 2 == 0 {
                        let _ = store.update_with(&payload::key(number), |_| panic!("in the caller's own code"));
                    }
                })
            };
            let threads: Vec<_> = (0..20).map(start).collect();
            for (number, thread) in threads.into_iter().enumerate() {
                assert_eq!(thread.join().is_err(), number % 2 == 0, "thread {number}");
            }
        });
    }
    for number in 0..20 {
        assert_eq!(store.get(&payload::key(number)).unwrap(), Some(payload::encode(19)));
        store.set(&payload::key(number), b"afterwards").unwrap();
    }
    assert_eq!(store.stats().clients.len(), 1, "after 400 threads, half of which panicked");
    assert_clean(&store);
}

/// More at a time than have writers of their own, in more processes than there would be slots for.
#[test]
fn threads_that_ended_hold_no_slot() {
    let _watchdog = Watchdog::start("clients-churn");
    let scratch = Scratch::new("clients-churn");
    let store = Options::new().open(scratch.store("churn")).unwrap();
    store.set(b"mine", b"here").unwrap();
    let mut workers = Vec::new();
    for _ in 0..12 {
        let mut worker = Worker::start(worker!(), "churn", &[&store.path().display(), &200]);
        worker.expect("ready");
        workers.push(worker);
    }
    assert_eq!(store.get(b"members").unwrap().as_deref(), Some(&b"2400"[..]));
    let clients = store.stats().clients;
    assert_eq!(clients.len(), 1 + workers.len(), "{clients:#?}");
    workers.into_iter().for_each(|worker| drop(worker.finish(LIMIT).ok("churn")));
    assert_clean(&store);
}

/// A slot is in use for as long as a view of its thread is, wherever that is by then, and not longer.
#[test]
fn what_a_thread_left_behind_keeps_its_slot() {
    let _alone = alone();
    let _watchdog = Watchdog::start("clients-left");
    let scratch = Scratch::new("clients-left");
    let store = Options::new().open(scratch.store("left")).unwrap();
    store.set(b"key", &[b'v'; 100]).unwrap();
    let clients = || store.stats().clients.len();
    for threads in [1, 20, 120] {
        let together = std::sync::Barrier::new(threads);
        let view = || {
            let view = store.view(b"key").unwrap().unwrap();
            together.wait();
            view
        };
        let views: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(view)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let left = clients();
        assert!(left > 1 && left <= 96, "{left} clients, {threads} threads");
        store.set(b"key", &[b'w'; 100]).unwrap();
        assert!(views.iter().all(|view| view[..] == [b'v'; 100]));
        drop(views);
        // Other tests' threads may have the numbers by now that those had; then the next thread that ends gives the
        // rest back.
        wait_until("threads and views are gone, and their slots", LIMIT, || {
            std::thread::scope(|scope| scope.spawn(|| store.get(b"key")).join()).unwrap().unwrap();
            clients() == 1
        });
        store.set(b"key", &[b'v'; 100]).unwrap();
    }
    assert_clean(&store);
}

/// `HASHMERE_BURST=1000` for as many.
#[test]
fn many_processes_open_at_once() {
    let count: u64 = std::env::var("HASHMERE_BURST").map_or(400, |text| text.parse().unwrap());
    let _watchdog = Watchdog::start("clients-burst");
    let scratch = Scratch::new("clients-burst");
    for options in [tiny(), tiny().durable()] {
        let path = scratch.store("burst");
        let store = options.open(&path).unwrap();
        store.set(b"mine", b"here").unwrap();
        let mut worker = Worker::start(worker!(), "burst", &[&path.display(), &count]);
        let said = worker.hear(LIMIT);
        let numbers: Vec<u64> = said.split(' ').map(|number| number.parse().unwrap()).collect();
        println!(
            "{count} opened at once: the slowest took {} us, {} us of processor time each",
            numbers[1],
            numbers[2] / count
        );
        assert_eq!(numbers[0], count, "all were to be let in");
        assert_eq!(store.stats().clients.len() as u64, 1 + count);
        worker.no_more();
        worker.expect("done");
        drop(Options::new().create(false).open(&path).unwrap());
        let clients = store.stats().clients;
        assert_eq!(clients.len(), 1, "{clients:#?}");
        assert_clean(&store);
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}

/// A client that claims a slot counts from there on, not what its former client did.
#[test]
fn a_handle_counts_its_own_operations_only() {
    let _alone = alone();
    let scratch = Scratch::new("clients-own");
    let path = scratch.store("own");
    let open = || tiny().open(&path).unwrap();
    let work = |store: &Store, times: u64| {
        for time in 0..times {
            store.set(&payload::key(time), b"x").unwrap();
            store.get(&payload::key(time)).unwrap();
            store.get(b"none").unwrap();
        }
        store.delete(&payload::key(0)).unwrap();
    };
    let before = open();
    work(&before, 20);
    drop(before);
    let (store, other) = (open(), open());
    let own = |store: &Store| {
        let own = store.stats().own;
        [own.hits, own.misses, own.sets, own.deletes]
    };
    assert_eq!(own(&store), [0; 4]);
    work(&store, 3);
    work(&other, 4);
    std::thread::scope(|scope| scope.spawn(|| work(&store, 5)).join()).unwrap();
    assert_eq!((own(&store), own(&other)), ([8, 8, 8, 2], [4, 4, 4, 1]));
    let all = store.stats();
    assert_eq!([all.hits, all.misses, all.sets, all.deletes], [32, 32, 32, 4]);
}

/// More threads than a handle has writers share some, and the rows of these.
#[test]
fn as_many_threads_as_one_likes_count_exactly() {
    let _alone = alone();
    const THREADS: u64 = 150;
    const TIMES: u64 = 3000;
    let _watchdog = Watchdog::start("clients-count");
    let scratch = Scratch::new("clients-count");
    let store = tiny().open(scratch.store("count")).unwrap();
    store.set(b"here", b"x").unwrap();
    // All are there before the first is gone, so that they cannot have one writer after another.
    let all = std::sync::Barrier::new(THREADS as usize);
    let work = || {
        store.get(b"here").unwrap();
        all.wait();
        for _ in 1..TIMES {
            store.get(b"here").unwrap();
            store.get(b"none").unwrap();
        }
        store.set(b"here", b"x").unwrap();
        all.wait();
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        // Not only done: ended.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let stats = store.stats();
    assert_eq!((stats.hits, stats.misses), (THREADS * TIMES, THREADS * (TIMES - 1)));
    assert_eq!((stats.sets, stats.own.hits), (THREADS + 1, THREADS * TIMES));
}

/// `HASHMERE_OPENS=100000` for as many.
#[test]
fn many_short_lived_processes_leave_nothing() {
    let opens: u64 = std::env::var("HASHMERE_OPENS").map_or(times(600), |text| text.parse().unwrap());
    let _watchdog = Watchdog::start("clients-passers");
    let mut rng = Rng::for_test("clients-passers");
    let scratch = Scratch::new("clients-passers");
    let store = tiny().open(scratch.store("passers")).unwrap();
    store.set(b"mine", b"here").unwrap();
    let batch = opens.min(100);
    let mut used = 0;
    for round in 0..opens / batch {
        let worker = Worker::start(worker!(), "passers", &[&store.path().display(), &batch, &rng.word()]);
        worker.finish(LIMIT).ok("passers");
        let bytes = store.stats().bytes_allocated;
        // Room for what several had open at once, and then never more.
        assert!(round < 2 || bytes <= used, "round {round}: {bytes} bytes after {used}");
        used = used.max(bytes + if round < 2 { 8 * 4096 } else { 0 });
    }
    assert_eq!(store.get(b"passers").unwrap(), Some((opens / batch * batch).to_string().into_bytes()));
    drop(Options::new().create(false).open(store.path()).unwrap());
    assert!(store.stats().clients.len() <= 2, "{:?}", store.stats().clients);
    println!("{opens} opens, half of them never closed; {used} bytes at most");
    assert_clean(&store);
}

#[test]
fn a_full_client_table_is_an_error_that_passes() {
    const TABLE: usize = 1024;
    const THREADS: usize = 64;
    let _watchdog = Watchdog::start("clients-full");
    let scratch = Scratch::new("clients-full");
    let path = scratch.store("full");
    let store = Options::new().open(&path).unwrap();
    store.set(b"mine", b"here").unwrap();
    let arguments: [&dyn ToString; 2] = [&path.display(), &THREADS];
    let mut crowd: Vec<Worker> =
        (0..TABLE / THREADS - 1).map(|_| Worker::start(worker!(), "crowd", &arguments)).collect();
    crowd.iter_mut().for_each(|worker| worker.expect("ready"));
    let mut last = Worker::start(worker!(), "crowd", &arguments);
    let mut heard = Vec::new();
    while heard.last().map(String::as_str) != Some("ready") {
        heard.push(last.hear(LIMIT));
    }
    // Each process has a place for the thread that opened the store, and ours has no other.
    let over = 1 + TABLE / THREADS * (THREADS + 1) - TABLE;
    assert_eq!(heard.iter().filter(|line| *line == "error 6").count(), over, "{heard:?}");
    assert_eq!(heard.len(), over + 1);
    let late = Options::new().create(false).open(&path);
    let refused = late.map_err(|error| error.code()).and_then(|late| {
        assert_eq!(late.get(b"mine").unwrap().as_deref(), Some(&b"here"[..]), "reading needs no place");
        late.set(b"late", b"not yet").map_err(|error| error.code())
    });
    assert_eq!(refused.map(drop), Err(6));
    store.set(b"mine", b"still").unwrap();
    crowd.swap_remove(3).kill();
    Options::new().create(false).open(&path).unwrap().set(b"late", b"now").unwrap();
    crowd.into_iter().for_each(|worker| drop(worker.finish(LIMIT).ok("crowd")));
    last.finish(LIMIT).ok("crowd");
    assert_eq!(store.get(b"members").unwrap(), Some((TABLE - over).to_string().into_bytes()));
    assert_clean(&store);
}
