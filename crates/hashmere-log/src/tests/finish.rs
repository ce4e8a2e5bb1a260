//! Finishing takes what was logged before it, and waits for nothing: not for lines that a damaged log says are of the
//! future, nor for threads that log all the time.

use crate::layout::{line, row};
use crate::{Level, Log, LogOptions, OnFull, OnNoDrainer, Sink};
use hashmere::Options;
use hashmere_mem::Mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A file of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn log(name: &str) -> (Scratch, Log) {
        let path = PathBuf::from(format!("/dev/shm/hashmere-log-{name}-{}.mere", std::process::id()));
        // What an ended process of the same number may have left.
        let _ = std::fs::remove_file(&path);
        let store = Options::new().open(&path).unwrap();
        (
            Scratch(path),
            Log::open(&store, "log", LogOptions::new().on_no_drainer(OnNoDrainer::Keep).on_full(OnFull::Drop)).unwrap(),
        )
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// How long finishing took, and how many lines it found.
fn finish(log: &Log) -> (Duration, u64) {
    let drain = log.drain_manual(Sink::callback(|_| ())).unwrap();
    let begun = Instant::now();
    let lines = drain.finish().unwrap();
    (begun.elapsed(), lines)
}

#[test]
fn lines_of_the_future_are_left_where_they_are() {
    let (_scratch, log) = Scratch::log("future");
    (0..3).for_each(|_| assert!(log.line(Level::Info, "a line").unwrap()));
    let handle = log.shared.handle().unwrap();
    let core = handle.core();
    // The second line.
    let head = core.get(core.geometry.row(0) + row::HEAD);
    let len = (core.get(core.geometry.row(0) + row::TAIL) - head) / 3;
    let stamp = core.ring(0).at(head + len) + line::STAMP;
    let right = core.mem.load(stamp, Ordering::Relaxed);
    core.mem.store(stamp, u64::MAX / 2, Ordering::Relaxed);
    // It took five seconds; on a machine that is busy it is tried again.
    let (mut took, lines) = finish(&log);
    assert_eq!(lines, 1);
    for _ in 0..4 {
        if took >= Duration::from_secs(4) {
            took = finish(&log).0;
        }
    }
    assert!(took < Duration::from_secs(4), "{took:?}");
    core.mem.store(stamp, right, Ordering::Relaxed);
    assert_eq!(finish(&log).1, 2);
}

#[test]
fn what_was_logged_before_is_found_beside_those_who_go_on() {
    let (_scratch, log) = Scratch::log("busy");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                log.line(Level::Info, "another").unwrap();
            }
        });
        let mine = Arc::new(AtomicU64::new(0));
        for round in 1..=200 {
            assert!(log.line(Level::Warn, "mine").unwrap());
            let found = mine.clone();
            let sink = Sink::callback(move |record| {
                found.fetch_add(u64::from(record.level() == Level::Warn), Ordering::Relaxed);
            });
            log.drain_manual(sink).unwrap().finish().unwrap();
            assert_eq!(mine.load(Ordering::Relaxed), round, "a line that was logged before");
        }
        stop.store(true, Ordering::Relaxed);
    });
}
