//! Promise: a line that was logged comes out once and in order, whichever is killed: its writer, the drainer, the one
//! after it. Catches: lines lost or repeated when a drainer dies in the middle of a write, half lines, rings of killed
//! threads that stay taken, writers that hang, lines that an exit or a fork leaves behind.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::Store;
use hashmere_log::{Format, Level, Log, LogError, LogFile, LogOptions, OnFull, OnNoDrainer, OnTooLong, Since, Sink};
use hashmere_mem::Mem;
use hashmere_testkit::limits::{lasting, wait_until, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::roles::log::{acknowledged, OPTIONS};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{small, worker};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Each line as `INDEX n`, by index; they must be whole, and the times must not go back.
fn by_index(text: &str) -> BTreeMap<u64, Vec<u64>> {
    let mut lines = BTreeMap::<u64, Vec<u64>>::new();
    let mut last = "";
    for line in text.lines() {
        let (head, body) = line.split_once(": ").unwrap_or_else(|| panic!("half a line: {line:?}"));
        let time = &head[..27];
        assert!(last <= time, "{time} after {last}");
        last = time;
        let (index, n) = body.split_once(' ').unwrap_or_else(|| panic!("half a line: {line:?}"));
        lines.entry(index.parse().unwrap()).or_default().push(n.parse().unwrap());
    }
    lines
}

/// Kills loggers and drainers at random moments for a while; then everything that was acknowledged is in what came out,
/// once.
fn storm(name: &'static str, out: &Path, take: impl FnOnce() -> String) {
    let time = lasting(Duration::from_secs(4));
    let _watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    let mut rng = Rng::for_test(name);
    let store = small().open(scratch.store("logs")).unwrap();
    let log = Log::open(&store, "log", OPTIONS()).unwrap();
    let words = acknowledged(&store);
    let mut index = 0u64;
    let logger = |index: &mut u64| {
        let worker = Worker::start(worker!(), "logger", &[&store.path().display(), &"log", &*index]);
        *index += 1;
        worker
    };
    let drainer = || Worker::start(worker!(), "drainer", &[&store.path().display(), &"log", &out.display()]);
    let mut loggers: Vec<Worker> = (0..3).map(|_| logger(&mut index)).collect();
    let mut drainers: Vec<Worker> = (0..2).map(|_| drainer()).collect();
    let (begin, mut kills) = (Instant::now(), 0);
    while begin.elapsed() < time {
        std::thread::sleep(Duration::from_micros(2000 + rng.below(15_000)));
        let (group, is_logger) = if rng.chance(33) { (&mut loggers, true) } else { (&mut drainers, false) };
        let victim = rng.index(group.len());
        let ended = group.swap_remove(victim).kill();
        assert!(ended.killed_by(Signal::SIGKILL), "a worker had failed by itself: {ended:?}");
        group.push(if is_logger { logger(&mut index) } else { drainer() });
        kills += 1;
    }
    for mut logger in loggers {
        logger.no_more();
        logger.finish(LIMIT).ok("logger");
    }
    for mut drainer in drainers {
        drainer.no_more();
        drainer.finish(LIMIT).ok("drainer");
    }
    let mut last = drainer();
    assert!(log.flush(LIMIT).unwrap(), "{:?}", log.stats());
    last.no_more();
    last.finish(LIMIT).ok("the last drainer");
    let lines = by_index(&take());
    let mut all = 0;
    for index in 0..index {
        let acknowledged = words.mem().load(words.offset() + 8 * index, Ordering::Acquire);
        let came = lines.get(&index).map_or(&[][..], Vec::as_slice);
        assert!(came.iter().copied().eq(0..came.len() as u64), "logger {index}: lost or repeated: {:?}", faults(came));
        let came = came.len() as u64;
        assert!(came == acknowledged || came == acknowledged + 1, "logger {index}: {came} of {acknowledged}");
        all += came;
    }
    let stats = log.stats().unwrap();
    assert_eq!((stats.lost, stats.waiting_bytes, stats.undelivered_bytes, stats.rings_used), (0, 0, 0, 0), "{stats:?}");
    println!("{kills} kills, {all} lines, {} of them cut off", stats.halves);
}

fn faults(came: &[u64]) -> Vec<(u64, u64)> {
    came.windows(2).filter(|pair| pair[1] != pair[0] + 1).map(|pair| (pair[0], pair[1])).take(5).collect()
}

#[test]
fn killed_loggers_and_drainers_to_a_file() {
    let scratch = Scratch::new("log-file");
    let out = scratch.path().join("out");
    File::create(&out).unwrap();
    storm("log-storm-file", &out, || std::fs::read_to_string(&out).unwrap());
}

#[test]
fn killed_loggers_and_drainers_to_a_pipe() {
    let scratch = Scratch::new("log-pipe");
    let out = scratch.path().join("fifo");
    mkfifo(&out, Mode::S_IRWXU).unwrap();
    // Open for both: it has no end before we say so.
    let mut fifo = File::options().read(true).write(true).open(&out).unwrap();
    let keep = fifo.try_clone().unwrap();
    let text = Arc::new(Mutex::new(Vec::new()));
    let sink = text.clone();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        loop {
            let n = fifo.read(&mut buffer).unwrap();
            let mut text = sink.lock().unwrap();
            text.extend_from_slice(&buffer[..n]);
            // Behind the end of the last line.
            if text.ends_with(b"END") {
                return;
            }
            drop(text);
            // Slow now and then, so that the pipe is full and drainers are killed in the middle of a write.
            if n > 1 << 15 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    storm("log-storm-pipe", &out, || {
        std::io::Write::write_all(&mut &keep, b"END").unwrap();
        reader.join().unwrap();
        let text = String::from_utf8(std::mem::take(&mut *text.lock().unwrap())).unwrap();
        text.strip_suffix("END").unwrap().to_owned()
    });
}

fn open(name: &str, options: LogOptions) -> (Scratch, Store, Log) {
    let scratch = Scratch::new(name);
    let store = small().open(scratch.store("logs")).unwrap();
    let log = Log::open(&store, "log", options).unwrap();
    (scratch, store, log)
}

/// What is in a log, by draining it.
fn texts(log: &Log) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = lines.clone();
    let sink = Sink::callback(move |record| {
        if record.lost() > 0 {
            seen.lock().unwrap().push(format!("lost {}", record.lost()));
        }
        seen.lock().unwrap().push(String::from_utf8_lossy(record.text()).into_owned());
    });
    log.drain_manual(sink).unwrap().finish().unwrap();
    let texts = lines.lock().unwrap().clone();
    texts
}

#[test]
fn a_full_ring_does_what_was_chosen() {
    let _watchdog = Watchdog::start("log-full");
    let sizes = || LogOptions::new().ring_bytes(4096).on_no_drainer(OnNoDrainer::Keep);
    let put = |log: &Log, n: u32| log.format(Level::Info, format_args!("{n:>40}"));
    let numbers = |lines: &[String]| -> Vec<u32> { lines.iter().filter_map(|line| line.trim().parse().ok()).collect() };
    {
        let (_scratch, _store, log) = open("log-drop", sizes().on_full(OnFull::Drop));
        let kept = (0..100).filter(|n| put(&log, *n).unwrap()).count();
        assert_eq!(kept, 64);
        assert_eq!(numbers(&texts(&log)), (0..64).collect::<Vec<_>>());
        assert_eq!(log.stats().unwrap().lost, 36, "before a line tells of them");
        assert!(put(&log, 100).unwrap());
        let lines = texts(&log);
        assert_eq!((lines[0].as_str(), numbers(&lines)), ("lost 36", vec![100]));
        assert_eq!(log.stats().unwrap().lost, 36);
    }
    {
        let (_scratch, _store, log) = open("log-overwrite", sizes().on_full(OnFull::Overwrite));
        assert!((0..100).all(|n| put(&log, n).unwrap()));
        let lines = texts(&log);
        assert_eq!((lines[0].as_str(), numbers(&lines)), ("lost 36", (36..100).collect()));
    }
    let (_scratch, _store, log) = open("log-block", sizes().on_full(OnFull::Block(Duration::from_millis(30))));
    assert!((0..64).all(|n| put(&log, n).unwrap()));
    let error = put(&log, 64).unwrap_err();
    assert!(matches!(error, LogError::Full { pid: 0 }) && error.code() == 75, "{error}");
    let (_scratch, _store, log) = open("log-block-drained", sizes());
    let drainer = log.drain(Sink::callback(|_| {})).unwrap();
    assert!((0..50_000).all(|n| put(&log, n).unwrap()));
    assert_eq!(drainer.stop().unwrap(), 50_000);
}

#[test]
fn long_lines_are_split_or_refused() {
    let (_scratch, store, log) = open("log-long", LogOptions::new().ring_bytes(4096).on_no_drainer(OnNoDrainer::Keep));
    let limit = log.line_max() as usize;
    assert_eq!(limit, 1024);
    let text: String = (0..200).map(|n| format!("{n:>10}ü")).collect();
    assert!(log.line(Level::Info, &text).unwrap());
    let mut flags = Vec::new();
    let mut follower = log.follow(Since::Now).unwrap();
    let parts = texts(&log);
    assert!(parts.len() == 3 && parts.iter().all(|part| part.len() <= limit && !part.contains('\u{fffd}')));
    assert_eq!(parts.concat(), text);
    while let Some(record) = follower.next().unwrap() {
        flags.push((record.is_continuation(), record.is_continued()));
    }
    assert_eq!(flags, [(false, true), (true, true), (true, false)]);
    let refusing =
        Log::open(&store, "log", LogOptions::new().on_too_long(OnTooLong::Refuse).on_no_drainer(OnNoDrainer::Keep))
            .unwrap();
    for error in [
        refusing.line(Level::Info, &text).unwrap_err(),
        log.line_fields(Level::Info, &text, &[("key", 1.into())]).unwrap_err(),
    ] {
        assert!(error.code() == 74 && error.to_string().contains("1024"), "{error}");
    }
}

#[test]
fn the_rest_is_drained_at_exit() {
    let (scratch, store, log) = open("log-exit", OPTIONS());
    let out = scratch.path().join("out");
    let mut leaver = Worker::start(worker!(), "leaver", &[&store.path().display(), &"log", &out.display(), &2000]);
    leaver.expect("leaving");
    leaver.finish(LIMIT).ok("leaver");
    let lines = by_index(&std::fs::read_to_string(&out).unwrap());
    assert_eq!(lines[&0], (0..2000).collect::<Vec<_>>());
    assert_eq!(log.stats().unwrap().drainer, None);
}

#[test]
fn a_clear_leaves_the_log_as_it_is() {
    let (scratch, store, log) = open("log-clear", LogOptions::new().on_no_drainer(OnNoDrainer::Keep));
    let out = scratch.path().join("out");
    assert!(log.line(Level::Info, "0 0").unwrap());
    store.clear().unwrap();
    assert!(log.line(Level::Info, "0 1").unwrap());
    let drainer = log.drain(Sink::file(LogFile::new(&out), Format::Text)).unwrap();
    store.clear().unwrap();
    assert!(log.line(Level::Info, "0 2").unwrap());
    drainer.stop().unwrap();
    assert_eq!(by_index(&std::fs::read_to_string(&out).unwrap())[&0], [0, 1, 2]);
}

#[test]
fn parent_and_child_log() {
    let (scratch, store, log) = open("log-fork", OPTIONS());
    let out = scratch.path().join("out");
    let drainer = log.drain(Sink::file(LogFile::new(&out), Format::Text)).unwrap();
    Worker::start(worker!(), "log-fork", &[&store.path().display(), &"log"]).finish(LIMIT).ok("forker");
    drainer.stop().unwrap();
    let lines = by_index(&std::fs::read_to_string(&out).unwrap());
    for index in 0..3 {
        assert_eq!(lines[&index], (0..500).collect::<Vec<_>>(), "{index}");
    }
}

#[test]
fn four_processes_in_order_of_time() {
    let _watchdog = Watchdog::start("log-order");
    let (scratch, store, log) = open("log-order", OPTIONS());
    let out = scratch.path().join("out");
    let file = LogFile::new(&out).rotate(1 << 20, 1000);
    let drainer = log.drain(Sink::file(file, Format::Text)).unwrap();
    let mut loggers: Vec<Worker> =
        (0..4u64).map(|index| Worker::start(worker!(), "logger", &[&store.path().display(), &"log", &index])).collect();
    loggers.iter_mut().for_each(|logger| logger.expect("logging"));
    std::thread::sleep(Duration::from_millis(500));
    let words = acknowledged(&store);
    let logged = |index| words.mem().load(words.offset() + 8 * index, Ordering::Acquire);
    wait_until("all have logged", LIMIT, || (0..4u64).all(|index| logged(index) > 0));
    let mut logged = Vec::new();
    for mut logger in loggers {
        logger.no_more();
        let said = logger.finish(LIMIT).ok("logger");
        logged.push(said.last().unwrap().strip_prefix("logged ").unwrap().parse::<u64>().unwrap());
    }
    drainer.stop().unwrap();
    let mut text = String::new();
    let rotated = |n: &u32| scratch.path().join(format!("out.{n}"));
    let files = (1..).take_while(|n| rotated(n).exists()).count() as u32;
    for n in (1..=files).rev() {
        let part = std::fs::read_to_string(rotated(&n)).unwrap();
        assert!(part.len() <= 1 << 20);
        text += &part;
    }
    text += &std::fs::read_to_string(&out).unwrap();
    let lines = by_index(&text);
    for (index, n) in logged.iter().enumerate() {
        assert_eq!(lines[&(index as u64)], (0..*n).collect::<Vec<_>>());
    }
    println!("{logged:?} lines, {files} files rotated");
}

#[test]
fn bad_names_and_files_are_refused_at_once() {
    let (scratch, store, log) = open("logs-refused", LogOptions::new().on_no_drainer(OnNoDrainer::Keep));
    for name in ["", &"n".repeat(129)] {
        assert!(matches!(Log::open(&store, name, LogOptions::new()), Err(LogError::BadOption(_))), "{name:?}");
    }
    let nowhere = || Sink::file(LogFile::new(scratch.path().join("nowhere").join("lines")), Format::Text);
    assert!(matches!(log.drain(nowhere()), Err(LogError::Output { .. })));
    assert!(matches!(log.drain_standby(nowhere()), Err(LogError::Output { .. })));
    assert!(matches!(log.drain_manual(nowhere()), Err(LogError::Output { .. })));
    // The role is free: another one can have it, and nothing was lost.
    log.line(Level::Info, "still there").unwrap();
    let file = scratch.path().join("lines");
    assert_eq!(log.drain(Sink::file(LogFile::new(&file), Format::Text)).unwrap().stop().unwrap(), 1);
    assert!(std::fs::read_to_string(file).unwrap().ends_with(": still there\n"));
}

fn drain_to(log: &Log, file: LogFile) {
    log.drain(Sink::file(file, Format::Text)).unwrap().stop().unwrap();
}

#[test]
fn a_file_rotates_before_the_line_that_would_be_too_much() {
    let (scratch, _store, log) = open("logs-rotation", LogOptions::new().on_no_drainer(OnNoDrainer::Keep));
    let path = scratch.path().join("out");
    let read = |n: u32| {
        let name = if n == 0 { path.clone() } else { scratch.path().join(format!("out.{n}")) };
        std::fs::read_to_string(name).unwrap_or_default()
    };
    for max_bytes in [1, 200, 1000, 20_000, 200_000] {
        (0..9).for_each(|n| drop(std::fs::remove_file(scratch.path().join(format!("out.{n}")))));
        let _ = std::fs::remove_file(&path);
        let file = || LogFile::new(&path).rotate(max_bytes, 8);
        let lines = 9 * max_bytes.max(60) / 70;
        for n in 0..lines {
            assert!(log.line(Level::Info, format!("{n:020}")).unwrap());
            // A few at a time, then many; and a drainer for which there is nothing left.
            if n < 3 || n % 400 == 0 || n == lines - 1 {
                drain_to(&log, file());
                drain_to(&log, file());
            }
        }
        let all: Vec<String> = (0..9).rev().map(read).collect();
        let whole = |text: &String| text.len() as u64 <= max_bytes || text.lines().count() == 1;
        assert!(all.iter().all(whole), "{max_bytes}: {:?}", all.iter().map(String::len).collect::<Vec<_>>());
        assert!(!read(0).is_empty(), "{max_bytes}: rotated with nothing to write");
        let numbers: Vec<u64> = all.concat().lines().map(|line| line[line.len() - 20..].parse().unwrap()).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{max_bytes}: {numbers:?}");
        assert_eq!(numbers.last(), Some(&(lines - 1)));
    }
}

#[test]
fn others_may_write_to_the_file_cut_it_short_or_take_it_away() {
    let (scratch, _store, log) = open("logs-foreign", LogOptions::new().on_no_drainer(OnNoDrainer::Keep));
    let path = scratch.path().join("out");
    let drainer = log.drain(Sink::file(LogFile::new(&path), Format::Text)).unwrap();
    let say = |text: &str| {
        log.line(Level::Info, text).unwrap();
        assert!(log.flush(LIMIT).unwrap());
    };
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    say("one");
    std::io::Write::write_all(&mut File::options().append(true).open(&path).unwrap(), b"foreign\n").unwrap();
    say("two");
    let text = read(&path);
    let ends: Vec<&str> = text.lines().map(|line| line.rsplit(": ").next().unwrap()).collect();
    assert_eq!(ends, ["one", "foreign", "two"]);
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    say("three");
    assert!(read(&path).ends_with(": three\n") && !read(&path).contains('\0'), "{:?}", read(&path));
    let moved = scratch.path().join("moved");
    std::fs::rename(&path, &moved).unwrap();
    say("four");
    assert!(read(&moved).ends_with(": three\n") && read(&path).ends_with(": four\n"));
    drainer.stop().unwrap();
}

#[test]
fn a_closed_log_keeps_no_ring() {
    let (_scratch, store, log) = open("logs-closed", LogOptions::new().rings(4).on_no_drainer(OnNoDrainer::Keep));
    log.line(Level::Info, "first").unwrap();
    for _ in 0..50 {
        let again = Log::open(&store, "log", LogOptions::new().on_no_drainer(OnNoDrainer::Keep)).unwrap();
        again.line(Level::Info, "again").unwrap();
    }
    // One that is closed by another thread than wrote to it goes with that thread's next ring.
    for _ in 0..50 {
        let again = Log::open(&store, "log", LogOptions::new().on_no_drainer(OnNoDrainer::Keep)).unwrap();
        again.line(Level::Info, "elsewhere").unwrap();
        std::thread::spawn(move || drop(again)).join().unwrap();
    }
    assert_eq!(texts(&log).len(), 101);
}
