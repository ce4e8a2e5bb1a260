//! Takes part in races to create a store: `opener NAME THREADS`.
//!
//! For each line `shared PATH` all threads open the path at once and try to `add` the key `creator`; the answer is
//! `won N` with the number that succeeded, and the handles stay open until the line `verify NAME...`, whose answer
//! is `seen` when the threads see the keys of all those openers. For `exclusive PATH` the answer is the number of
//! threads that created the store.

use super::Arguments;
use hashmere::{Attributes, OpenError, Options, Store};
use std::io::BufRead;

pub(super) fn run(arguments: &mut Arguments) {
    let name: String = arguments.next();
    let threads: usize = arguments.next();
    let mut stores: Vec<Store> = Vec::new();
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let (verb, rest) = line.split_once(' ').expect("a verb and what it is about");
        match verb {
            "shared" => {
                let results = race(threads, rest, &Options::new());
                stores = results.into_iter().map(|result| result.unwrap_or_else(|e| panic!("{rest}: {e}"))).collect();
                let won = stores.iter().filter(|store| claim(store, &name)).count();
                println!("won {won}");
            }
            "verify" => {
                for store in stores.drain(..) {
                    for other in rest.split(' ') {
                        let found = store.get(other.as_bytes()).expect("get");
                        assert_eq!(found.as_deref(), Some(other.as_bytes()), "{name} does not see {other}");
                    }
                }
                println!("seen");
            }
            _ => {
                let results = race(threads, rest, &Options::new().create_new(true));
                let created = results.iter().filter(|result| result.is_ok()).count();
                for error in results.iter().filter_map(|result| result.as_ref().err()) {
                    assert!(matches!(error, OpenError::AlreadyExists { .. }), "{error:?}");
                }
                println!("won {created}");
            }
        }
    }
}

fn race(threads: usize, path: &str, options: &Options) -> Vec<Result<Store, OpenError>> {
    let gate = crate::threads::Gate::new();
    std::thread::scope(|scope| {
        let run = || {
            gate.pass(threads, 0);
            options.open(path)
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        handles.into_iter().map(|handle| handle.join().expect("opening does not panic")).collect()
    })
}

fn claim(store: &Store, name: &str) -> bool {
    store.set(name.as_bytes(), name.as_bytes()).expect("set");
    store.add(b"creator", name.as_bytes(), Attributes::NONE).expect("add").is_some()
}
