//! Promise: `stats hashmere` separates what came over the sockets of this server from what other processes did, exactly
//! while none works. Catches: figures that a client slot still has from its former owner, taken for those of the
//! server's thread that claims it now.
#![allow(missing_docs, dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod session;

use hashmere::{Options, Store};
use hashmere_server::{Protocol, Server, Session};
use std::path::Path;

fn ask(server: &Server, request: &str) -> String {
    let mut replies = Vec::new();
    session::step(server, &mut Session::new(server, Protocol::Memcached), request.as_bytes(), &mut replies);
    String::from_utf8(replies).unwrap()
}

/// Hits, misses, values stored and keys deleted by others.
fn local(server: &Server) -> [u64; 4] {
    let text = ask(server, "stats hashmere\r\n");
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("STAT local_{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    };
    ["hits", "misses", "sets", "deletes"].map(number)
}

/// Another client: one more slot than those that are taken.
fn other(path: &Path) -> Store {
    Options::new().create(false).open(path).unwrap()
}

fn work(store: &Store, times: u64) {
    for i in 0..times {
        let key = format!("{i}");
        store.set(key.as_bytes(), b"x").unwrap();
        store.get(key.as_bytes()).unwrap();
        store.get(b"none").unwrap();
        store.delete(key.as_bytes()).unwrap();
    }
}

#[test]
fn a_slot_that_a_thread_of_the_server_takes_later_brings_nothing_along() {
    let path = std::env::temp_dir().join(format!("hashmere-figures-{}.mere", std::process::id()));
    let server = session::server(path.clone());
    // Two slots with a past, free again.
    let (first, second) = (other(&path), other(&path));
    work(&first, 5);
    work(&second, 7);
    drop((first, second));
    assert_eq!(ask(&server, "stats reset\r\n"), "RESET\r\n");
    assert_eq!(local(&server), [0; 4]);
    // Only now do threads of the server claim slots: those two.
    ask(&server, "set s 0 0 1\r\nx\r\nget s none\r\ndelete s\r\n");
    std::thread::scope(|scope| {
        let second = || {
            ask(&server, "set s 0 0 1\r\nx\r\nget s none\r\ndelete s\r\n");
            assert_eq!(server.store.stats().clients.len(), 2, "the test wants the server to have taken both slots");
            assert_eq!(local(&server), [0; 4]);
        };
        scope.spawn(second).join().unwrap();
    });
    // Nor does a thread that ends take anything away.
    assert_eq!(local(&server), [0; 4]);
    let others = other(&path);
    work(&others, 9);
    assert_eq!(local(&server), [9; 4]);
    drop(others);
    work(&other(&path), 2);
    assert_eq!(local(&server), [11; 4]);
}
