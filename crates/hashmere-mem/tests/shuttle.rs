//! The model checker's memory really lets it interleave.

#![cfg(feature = "shuttle")]
#![allow(clippy::unwrap_used)]

use hashmere_mem::{Mem, ShuttleMem};
use shuttle::thread;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::Arc;
use std::time::Duration;

fn memory() -> Arc<ShuttleMem> {
    let mem = ShuttleMem::new(8192);
    mem.back(0, 8192).unwrap();
    Arc::new(mem)
}

fn both(mem: &Arc<ShuttleMem>, body: fn(&ShuttleMem)) {
    let other = Arc::clone(mem);
    let thread = thread::spawn(move || body(&other));
    body(mem);
    thread.join().unwrap();
}

#[test]
fn atomic_adds_add_up() {
    shuttle::check_random(
        || {
            let mem = memory();
            both(&mem, |mem| {
                mem.fetch_add(8, 1, Relaxed);
            });
            assert_eq!(mem.load(8, SeqCst), 2);
        },
        200,
    );
}

#[test]
#[should_panic(expected = "an update was lost")]
fn a_lost_update_is_found() {
    shuttle::check_random(
        || {
            let mem = memory();
            both(&mem, |mem| mem.store(8, mem.load(8, Relaxed) + 1, Relaxed));
            assert_eq!(mem.load(8, SeqCst), 2, "an update was lost");
        },
        200,
    );
}

#[test]
#[should_panic(expected = "a torn read")]
fn a_torn_read_is_found() {
    shuttle::check_random(
        || {
            let mem = memory();
            let other = Arc::clone(&mem);
            let thread = thread::spawn(move || other.write(8, &[1; 16]));
            let mut seen = [0; 16];
            mem.read(8, &mut seen);
            assert!(seen == [0; 16] || seen == [1; 16], "a torn read");
            thread.join().unwrap();
        },
        200,
    );
}

#[test]
fn waiting_ends() {
    shuttle::check_random(
        || {
            let mem = memory();
            let other = Arc::clone(&mem);
            let thread = thread::spawn(move || {
                other.store(16, 1, SeqCst);
                other.wake(16);
            });
            while mem.load(16, SeqCst) == 0 {
                mem.wait(16, 0, Duration::from_secs(1));
            }
            thread.join().unwrap();
        },
        200,
    );
}
