//! Promise: commands of clients of Redis are atomic beside each other, beside local processes, and at a kill of the
//! server. Catches: a value that is read and written later without a guard, half of a transaction.

use crate::resp::{serve, store_of, Redis};
use crate::support::{start_on, Scratch};
use hashmere::Update;
use hashmere_testkit::limits::SetOnDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Two connections and a local writer change one key in different ways; nothing of it is lost.
#[test]
fn changes_from_everywhere_add_up() {
    const TIMES: usize = 400;
    let server = serve(&[]);
    let store = store_of(&server);
    thread::scope(|scope| {
        for number in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut client = Redis::new(server);
                for i in 0..TIMES {
                    client.ask("INCR n");
                    client.ask("APPEND log x");
                    client.ask(&format!("INCRBYFLOAT f {}", if i % 2 == 0 { "0.5" } else { "0.25" }));
                    client.ask("MULTI");
                    client.ask("DECRBY from 1");
                    client.ask("INCRBY to 1");
                    assert!(client.ask("EXEC").starts_with("*2"), "connection {number}");
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..TIMES {
                store
                    .update_with("log", |item| Update::Set([item.map_or(&b""[..], |item| &item.value), b"y"].concat()))
                    .unwrap();
                store
                    .update_with("n", |item| {
                        let number =
                            item.map_or(0, |item| std::str::from_utf8(&item.value).unwrap().parse::<i64>().unwrap());
                        Update::Set((number + 1).to_string().into())
                    })
                    .unwrap();
            }
        });
    });
    let mut client = Redis::new(&server);
    assert_eq!(client.ask("STRLEN log"), format!(":{}", 3 * TIMES));
    assert_eq!(client.ask("GET n"), format!("\"{}\"", 3 * TIMES));
    assert_eq!(client.ask("GET f"), format!("\"{}\"", TIMES * 3 / 4));
    assert_eq!(client.ask("MGET from to"), format!("*2\n \"-{0}\"\n \"{0}\"", 2 * TIMES));
}

/// Of several that set a key if it is absent, or give it an expiry if it has none, one succeeds.
#[test]
fn one_of_several_succeeds() {
    let server = serve(&[]);
    for round in 0..60 {
        let won = |command: &str, yes: &str| {
            let wins: usize = thread::scope(|scope| {
                let threads: Vec<_> = (0..3)
                    .map(|_| {
                        let mut client = Redis::new(&server);
                        scope.spawn(move || usize::from(client.ask(command) == yes))
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(wins, 1, "{command}");
        };
        won(&format!("SET lock{round} x NX PX 100000"), "+OK");
        Redis::new(&server).ask(&format!("SET other{round} x"));
        won(&format!("EXPIRE other{round} 100 NX"), ":1");
    }
}

/// `WATCH` notices what others did, also local processes.
#[test]
fn a_watched_key_that_changes_undoes_exec() {
    let server = serve(&[]);
    let (mut client, store) = (Redis::new(&server), store_of(&server));
    store.set("k", b"1").unwrap();
    let mut attempt = |change: &dyn Fn()| {
        client.ask("WATCH k other");
        change();
        client.ask("MULTI");
        client.ask("SET done 1");
        client.ask("EXEC")
    };
    let happened = "*1\n +OK";
    assert_eq!(attempt(&|| {}), happened);
    assert_eq!(attempt(&|| _ = store.set("k", b"1").unwrap()), "*-1");
    assert_eq!(attempt(&|| _ = store.touch("k", hashmere::Ttl::At(1 << 45)).unwrap()), "*-1");
    assert_eq!(attempt(&|| _ = store.set("other", b"1").unwrap()), "*-1");
    assert_eq!(attempt(&|| _ = store.delete("k").unwrap()), "*-1");
    assert_eq!(attempt(&|| _ = store.set("third", b"1").unwrap()), happened);
    assert_eq!(attempt(&|| store.clear().unwrap()), "*-1");
}

/// A server that is killed within transactions leaves each of them whole or absent.
#[test]
fn a_killed_server_leaves_no_half_of_a_transaction() {
    let scratch = Scratch::new("serve");
    for round in 0..5u64 {
        let mut server = start_on(&scratch, &["--resp"]);
        let store = store_of_folder(&scratch);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _end = SetOnDrop(&stop);
            for _ in 0..2 {
                let mut client = server.connect();
                let stop = &stop;
                scope.spawn(move || {
                    let transfer = b"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nDECR\r\n$1\r\na\r\n*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n*1\r\n$4\r\nEXEC\r\n";
                    while !stop.load(Ordering::Relaxed) {
                        client.send(transfer);
                        // OK, twice QUEUED, and two numbers.
                        if !(0..6).all(|_| client.until(b"\r\n").1) {
                            return;
                        }
                    }
                });
            }
            // Until some have happened, and then a little more.
            let before = number(&store, "b");
            while number(&store, "b") < before + 200 + round as i64 * 37 {
                thread::yield_now();
            }
            server.child.kill().unwrap();
            server.child.wait().unwrap();
        });
        let items = store.get_many_snapshot(&["a", "b"]).unwrap();
        let numbers: Vec<i64> = items
            .iter()
            .map(|item| item.as_ref().map_or(0, |item| std::str::from_utf8(&item.value).unwrap().parse().unwrap()))
            .collect();
        assert_eq!(numbers[0] + numbers[1], 0, "{numbers:?}");
    }
}

fn store_of_folder(scratch: &Scratch) -> hashmere::Store {
    hashmere::Options::new().create(false).open(scratch.path().join("ns/memcached.mere")).unwrap()
}

fn number(store: &hashmere::Store, key: &str) -> i64 {
    let value = store.get(key).unwrap();
    value.map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap())
}
