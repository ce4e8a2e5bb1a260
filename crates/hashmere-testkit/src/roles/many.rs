//! Opens many stores at once, each a file of its own: `many FOLDER COUNT GROWN`.
//!
//! Uses each when all are open, has `GROWN` of them grow by 100 MiB each, and then does the same once more in a forked
//! child. Says `opened`, with how long the first and the last hundred took in microseconds each, how many mappings,
//! descriptors and KiB of memory a store has; then `used`, `grown`, and `forked`.

use super::{limit, Arguments};
use crate::forked::{fork, wait};
use crate::payload;
use hashmere::Store;
use nix::sys::resource::Resource;
use std::path::PathBuf;
use std::time::Instant;

/// Bytes of the values that make a store grow.
const LEN: usize = 1 << 20;

pub(super) fn run(arguments: &mut Arguments) {
    let folder: PathBuf = arguments.next();
    let count: usize = arguments.next();
    let grown: usize = arguments.next();
    limit(Resource::RLIMIT_NOFILE, count as u64 * 2 + 100);
    let before = used();
    let mut times = Vec::new();
    let stores: Vec<Store> = (0..count)
        .map(|number| {
            let start = Instant::now();
            let store = crate::tiny().open(folder.join(format!("{number}.mere"))).expect("one more store");
            times.push(start.elapsed().as_micros());
            store
        })
        .collect();
    let now = used();
    let each: Vec<f64> = (0..3).map(|i| (now[i] - before[i]) as f64 / count as f64).collect();
    let mean = |times: &[u128]| times.iter().sum::<u128>() / times.len().max(1) as u128;
    let (first, last) = (mean(&times[..count.min(100)]), mean(&times[count.saturating_sub(100)..]));
    println!(
        "opened {first} {last} us each, {:.1} mappings, {:.1} descriptors, {:.0} KiB a store",
        each[0], each[1], each[2]
    );
    use_all(&stores, 1);
    println!("used");
    grow(&stores[..grown], 1);
    println!("grown");
    wait(fork(|| {
        let some: Vec<Store> = stores.iter().step_by(50).cloned().collect();
        use_all(&some, 2);
        grow(&stores[..grown], 2);
    }));
    for round in 1..3 {
        stores[..grown].iter().for_each(|store| verify(store, round));
    }
    use_all(&stores, 3);
    println!("forked");
    stores[..grown].iter().for_each(|store| assert!(store.check().is_clean(), "{:?}", store.check().problems));
}

/// Mappings, descriptors and KiB of resident private memory of this process.
fn used() -> [u64; 3] {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("mappings").lines().count();
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("descriptors").count();
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
    let kib = anonymous.trim().trim_end_matches(" kB").parse().expect("a number");
    [maps as u64, descriptors as u64, kib]
}

fn use_all(stores: &[Store], round: u64) {
    for (number, store) in (0..).zip(stores) {
        let key = payload::key(round);
        store.set(&key, &payload::encode(number)).expect("set");
        assert_eq!(store.get(&key).expect("get"), Some(payload::encode(number)));
    }
}

fn grow(stores: &[Store], round: u64) {
    for store in stores {
        let mut views = Vec::new();
        for number in 0..100 {
            let key = payload::key(1000 * round + number);
            store.set(&key, &payload::encode_len(number, LEN)).expect("room to grow");
            if number % 10 == 0 {
                views.push((number, store.view(&key).expect("a view").expect("what was set")));
            }
        }
        for (number, view) in views {
            assert!(view[..] == payload::encode_len(number, LEN)[..], "a view moved");
        }
        verify(store, round);
    }
}

fn verify(store: &Store, round: u64) {
    for number in 0..100 {
        let found = store.get(&payload::key(1000 * round + number)).expect("get");
        assert!(found == Some(payload::encode_len(number, LEN)), "value {number} of round {round}");
    }
}
