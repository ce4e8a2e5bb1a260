//! Many clients. `crowd STORE THREADS`: threads that each write once and stay; says `ready` when all have, or
//! `error CODE` for each that could not, and ends when standard input is closed.
//! `passers STORE COUNT SEED`: children, one after the other, that each open the store, write, and either close
//! it or just end; says `done`. A parent that never opens it keeps no place in it.
//! `churn STORE THREADS`: this many threads at a time, each of which writes and ends; says `ready` when they have, and
//! ends with its input. `burst STORE COUNT`: this many children, which all open the store at the same time and stay;
//! says how many could, the microseconds of the slowest, and those of processor time that all took together. They end
//! with standard input.

use super::Arguments;
use crate::forked::{fork, wait};
use crate::limits::thread_cpu;
use crate::rng::Rng;
use hashmere::{Counter, Options};
use std::io::{Read, Write};
use std::sync::Barrier;
use std::time::Instant;

pub(super) fn crowd(arguments: &mut Arguments) {
    let store = arguments.store();
    let threads: usize = arguments.next();
    let (written, leave) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                if let Err(error) = store.incr(b"members", 1, Counter::or_create(1)) {
                    println!("error {}", error.code());
                }
                written.wait();
                leave.wait();
            });
        }
        written.wait();
        println!("ready");
        let _ = std::io::read_to_string(std::io::stdin());
        leave.wait();
    });
}

pub(super) fn passers(arguments: &mut Arguments) {
    let path: String = arguments.next();
    let count: u64 = arguments.next();
    let mut rng = Rng::from_seed(arguments.next());
    for _ in 0..count {
        let closes = rng.chance(50);
        wait(fork(|| {
            let store = Options::new().create(false).open(&path).expect("open");
            store.incr(b"passers", 1, Counter::or_create(1)).expect("increment");
            if !closes {
                std::mem::forget(store);
            }
        }));
    }
    println!("done");
}

pub(super) fn churn(arguments: &mut Arguments) {
    let store = arguments.store();
    let threads: usize = arguments.next();
    let together = Barrier::new(threads);
    let act = || {
        store.incr(b"members", 1, Counter::or_create(1)).expect("a place");
        together.wait();
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(act)).collect();
        // A scope ends when the threads have done their work, and not when they have ended.
        threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
    });
    println!("ready");
    let _ = std::io::read_to_string(std::io::stdin());
}

#[allow(
    clippy::incompatible_msrv,
    reason = "pipes of the standard library; the test kit is built by our own toolchain only"
)]
pub(super) fn burst(arguments: &mut Arguments) {
    let path: String = arguments.next();
    let count: usize = arguments.next();
    let pipe = || std::io::pipe().expect("a pipe");
    let ((mut go, start), (mut told, mut tell), (mut leave, end)) = (pipe(), pipe(), pipe());
    let mut ends = Some((start, end));
    let mut children = Vec::new();
    for number in 0..count {
        children.push(fork(|| {
            drop(ends.take());
            let wait = |reader: &mut std::io::PipeReader| assert_eq!(reader.read(&mut [0]).expect("read a pipe"), 0);
            wait(&mut go);
            let (begin, cpu) = (Instant::now(), processor_ns());
            let opened = Options::new().create(false).open(&path);
            let took = [begin.elapsed().as_micros() as u64, (processor_ns() - cpu) / 1000, u64::from(opened.is_ok())];
            tell.write_all(took.map(u64::to_le_bytes).as_flattened()).expect("tell");
            wait(&mut leave);
            if number % 2 == 0 {
                std::mem::forget(opened);
            }
        }));
    }
    let (start, end) = ends.take().expect("only children drop them");
    drop(start);
    let mut sums = [0; 3];
    for _ in 0..count {
        let mut line = [0; 24];
        told.read_exact(&mut line).expect("each tells");
        let [took, cpu, opened] = [0, 8, 16].map(|at| u64::from_le_bytes(line[at..at + 8].try_into().expect("a word")));
        sums = [sums[0] + opened, sums[1].max(took), sums[2] + cpu];
    }
    println!("{} {} {}", sums[0], sums[1], sums[2]);
    let _ = std::io::read_to_string(std::io::stdin());
    drop(end);
    children.into_iter().for_each(wait);
    println!("done");
}

/// Time that this thread was on a processor.
fn processor_ns() -> u64 {
    thread_cpu().as_nanos() as u64
}
