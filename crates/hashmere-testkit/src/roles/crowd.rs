//! Many clients. `crowd STORE THREADS`: so many threads that each write once and stay; says `ready` when all have, or
//! `error CODE` for each that could not, and ends when standard input is closed.
//! `passers STORE COUNT SEED`: so many children, one after the other, that each open the store, write, and either close
//! it or just end; says `done`. A parent that never opens it keeps no place in it.

use super::Arguments;
use crate::rng::Rng;
use hashmere::{Counter, Options};
use std::sync::Barrier;

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
        super::fork::wait(super::fork::fork(|| {
            let store = Options::new().existing_only().open(&path).expect("open");
            store.incr(b"passers", 1, Counter::or_create(1)).expect("increment");
            if !closes {
                std::mem::forget(store);
            }
        }));
    }
    println!("done");
}
