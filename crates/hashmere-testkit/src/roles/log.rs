//! Logs, and drains a log.
//!
//! `logger STORE LOG INDEX`: logs `INDEX n` for n = 0, 1, ... until standard input is closed, and notes behind each
//! line how many are in the log.
//!
//! `drainer STORE LOG OUT`: drains to a file or FIFO, as soon as no other process does, until standard input is closed;
//! then says how many lines that were.
//!
//! `leaver STORE LOG OUT N`: drains in a thread, logs N lines, and exits in order without stopping it.
//!
//! `log-fork STORE LOG`: logs, forks, and parent and child log.

use super::{input_closed, Arguments};
use crate::forked::{fork, wait};
use crate::procs::LIMIT;
use hashmere::Store;
use hashmere_engine::{Region, StoreHandle};
use hashmere_log::{Drainer, Format, Level, Log, LogFile, LogOptions, OnFull, OnNoDrainer, Sink};
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The region in which loggers note what is in the log: one word each.
pub const ACKNOWLEDGED: (u64, &[u8], u64) = (1 << 33, b"acknowledged", 4096);
/// Small rings, so that they are full often.
pub const OPTIONS: fn() -> LogOptions =
    || LogOptions::new().rings(16).ring_bytes(4096).on_no_drainer(OnNoDrainer::Keep).on_full(OnFull::Block(LIMIT));

/// The words of [`ACKNOWLEDGED`].
///
/// # Panics
/// If there are none and none can be made.
pub fn acknowledged(store: &Store) -> Region {
    let (kind, name, bytes) = ACKNOWLEDGED;
    let make = |mem: &_, at| hashmere_mem::Mem::zero(mem, at, bytes);
    let made = store.shared().create_region(kind, name, bytes, make).expect("make the words");
    made.unwrap_or_else(|| store.shared().open_region(kind, name).expect("open the words").expect("the words"))
}

fn open(arguments: &mut Arguments) -> (Store, Log) {
    let store = arguments.store();
    let log = Log::open(&store, &arguments.next::<String>(), OPTIONS()).expect("open the log");
    (store, log)
}

pub(super) fn logger(arguments: &mut Arguments) {
    let (store, log) = open(arguments);
    let index: u64 = arguments.next();
    let words = acknowledged(&store);
    let closed = input_closed();
    println!("logging");
    let mut n = 0u64;
    while !closed.load(Ordering::Relaxed) {
        assert!(log.format(Level::Info, format_args!("{index} {n}")).expect("log a line"));
        n += 1;
        hashmere_mem::Mem::store(words.mem(), words.offset() + 8 * index, n, Ordering::Release);
    }
    println!("logged {n}");
}

/// A file is opened when there is something to write: the drainer before writes to it until then.
fn sink(path: &str) -> Sink {
    let is_fifo = std::fs::metadata(path).expect("look at the output").file_type().is_fifo();
    if is_fifo {
        let fifo = File::options().write(true).open(path).expect("open the output");
        return Sink::descriptor(fifo.into(), Format::Text);
    }
    Sink::file(LogFile::new(path), Format::Text)
}

pub(super) fn drainer(arguments: &mut Arguments) {
    let (_store, log) = open(arguments);
    let drainer: Drainer = log.drain_standby(sink(&arguments.next::<String>())).expect("drain");
    let closed = input_closed();
    while !closed.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(2));
    }
    println!("drained {}", drainer.stop().expect("stop"));
}

pub(super) fn leaver(arguments: &mut Arguments) {
    let (_store, log) = open(arguments);
    let path: String = arguments.next();
    let drainer = log.drain(Sink::file(LogFile::new(path), Format::Text)).expect("drain");
    for n in 0..arguments.next::<u64>() {
        assert!(log.format(Level::Info, format_args!("0 {n}")).expect("log a line"));
    }
    // As a program does that has its logger in a static variable.
    std::mem::forget((drainer, log));
    println!("leaving");
    std::process::exit(0);
}

pub(super) fn forker(arguments: &mut Arguments) {
    let (_store, log) = open(arguments);
    let write = |index: u64| {
        for n in 0..500 {
            assert!(log.format(Level::Info, format_args!("{index} {n}")).expect("log a line"));
        }
    };
    write(0);
    let child = fork(|| {
        write(1);
        // Not as other children end: what a program does at its end is done.
        std::process::exit(0);
    });
    write(2);
    wait(child);
    println!("done");
}
