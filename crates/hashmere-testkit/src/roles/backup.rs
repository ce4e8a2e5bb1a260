//! Those who take part in tests of backups.
//!
//! `sequence STORE NAME KEYS`: writes 1, 2, 3 ... to the keys `NAME 0`, `NAME 1` ... in turn, one after the other; from
//! time to time it deletes a key first. `echo STORE FROM NAME`: writes to `NAME` the highest number that it read of the
//! sequence `FROM`. `backup STORE FILE`: makes backups without pause, and says `made` after each. `half-a-backup
//! STORE FILE`: begins one, says `half` when some of it is copied, and stays there. All say `ready` first, and the
//! first two `ended` when standard input is closed.

use super::{input_closed, Arguments};
use hashmere::Store;
use std::sync::atomic::Ordering;

/// The key of a sequence that number `n` is written to.
pub fn key(name: &str, n: u64, keys: u64) -> Vec<u8> {
    format!("{name} {}", n % keys).into_bytes()
}

/// The value of number `n`: longer or shorter, so that segments fill up at different times.
pub fn value(n: u64) -> Vec<u8> {
    format!("{n} {}", "+".repeat((n * 7 % 200) as usize)).into_bytes()
}

/// The number that a value spells.
///
/// # Panics
/// If it is not one that [`value`] made.
pub fn number(text: &[u8]) -> u64 {
    let n = String::from_utf8_lossy(text).split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    assert_eq!(text, value(n), "a value that was never written");
    n
}

pub(super) fn sequence(arguments: &mut Arguments) {
    let (store, name, keys): (Store, String, u64) = (arguments.store(), arguments.next(), arguments.next());
    let closed = input_closed();
    for n in 1.. {
        let key = key(&name, n, keys);
        if n % 11 == 0 {
            store.delete(&key).expect("delete");
        }
        store.set(&key, &value(n)).expect("set");
        if n == 2 * keys {
            println!("ready");
        }
        if closed.load(Ordering::Relaxed) {
            println!("ended");
            return;
        }
    }
}

pub(super) fn echo(arguments: &mut Arguments) {
    let (store, from, name): (Store, String, String) = (arguments.store(), arguments.next(), arguments.next());
    let closed = input_closed();
    println!("ready");
    let mut highest = 0;
    while !closed.load(Ordering::Relaxed) {
        let seen = store.get(&key(&from, 0, 1)).expect("get");
        highest = highest.max(seen.map_or(0, |text| number(&text)));
        store.set(name.as_bytes(), &value(highest)).expect("set");
    }
    println!("ended");
}

pub(super) fn half_a_backup(arguments: &mut Arguments) {
    let (store, file): (Store, String) = (arguments.store(), arguments.next());
    println!("ready");
    let result = store.backup(&file).on_progress(|done, _| {
        if done != 0 {
            println!("half");
            loop {
                std::thread::park();
            }
        }
    });
    println!("{:?}", result.run());
}

pub(super) fn backup(arguments: &mut Arguments) {
    let (store, file): (Store, String) = (arguments.store(), arguments.next());
    println!("ready");
    loop {
        match store.backup(&file).run() {
            Ok(_) => println!("made"),
            Err(error) => println!("{error}"),
        }
    }
}
