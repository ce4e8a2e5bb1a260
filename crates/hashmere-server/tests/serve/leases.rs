//! Promise: of many clients that meet a missing or stale value by `lease-get`, one gets a token; what it stores with it
//! is the value, unless the key was written or deleted since, in any process; a lease outlives the server that granted
//! it, and is given again when its holder does not come back. The replies are what mcrouter's parser takes, byte for
//! byte. Catches: two holders, a value from before a delete stored as fresh, a lease that is lost with the server or
//! never given again, a placeholder that other commands take for a value.

use crate::support::{start, start_on, Client, Scratch, PATIENCE};
use hashmere::Options;
use std::time::{Duration, Instant};

/// Asks for a lease that is to be granted; the token, and the rest of the answer.
fn granted(client: &mut Client, key: &str) -> (u64, String) {
    let answer = client.ask(&format!("lease-get {key}\r\n"));
    let rest = answer.strip_prefix(&format!("LVALUE {key} ")).unwrap_or_else(|| panic!("{answer:?}"));
    let (token, rest) = rest.split_once(' ').unwrap();
    let token = token.parse().unwrap();
    assert!(token > 1, "{answer:?}");
    (token, rest.into())
}

/// A missing value that this client is to compute.
fn granted_empty(client: &mut Client, key: &str) -> u64 {
    let (token, rest) = granted(client, key);
    assert_eq!(rest, "0 0\r\n\r\nEND\r\n");
    token
}

/// What a client gets while another one computes a missing value.
fn waiting(key: &str) -> String {
    format!("LVALUE {key} 1 0 0\r\n\r\nEND\r\n")
}

#[test]
fn the_replies_byte_for_byte() {
    let server = start(&[]);
    let mut client = server.connect();
    let token = granted_empty(&mut client, "k");
    assert_eq!(client.ask("lease-get k\r\n"), waiting("k"));
    assert_eq!(client.ask(&format!("lease-set k {token} 7 0 3\r\nabc\r\n")), "STORED\r\n");
    assert_eq!(client.ask("lease-get k\r\n"), "VALUE k 7 3\r\nabc\r\nEND\r\n");
    // It is used: the value is fresh.
    assert_eq!(client.ask(&format!("lease-set k {token} 7 0 3\r\nxyz\r\n")), "NOT_STORED\r\n");
    assert_eq!(client.ask("get k\r\n"), "VALUE k 7 3\r\nabc\r\nEND\r\n");
    // Invalidated: one gets a token and the stale value, the others the value.
    assert_eq!(client.ask("md k I\r\n"), "HD\r\n");
    let (next, rest) = granted(&mut client, "k");
    assert_eq!(rest, "7 3\r\nabc\r\nEND\r\n");
    assert!(next > token);
    assert_eq!(client.ask("lease-get k\r\n"), "LVALUE k 1 7 3\r\nabc\r\nEND\r\n");
    assert_eq!(client.ask(&format!("lease-set k {token} 1 0 4\r\npast\r\n")), "STALE_STORED\r\n");
    assert_eq!(client.ask("lease-get k\r\n"), "LVALUE k 1 1 4\r\npast\r\nEND\r\n");
    // That took nothing from the holder.
    assert_eq!(client.ask(&format!("lease-set k {next} 0 0 3\r\nnew\r\n")), "STORED\r\n");
    // Several keys, and one END.
    granted_empty(&mut client, "gone");
    let several = "VALUE k 0 3\r\nnew\r\nLVALUE gone 1 0 0\r\n\r\nVALUE k 0 3\r\nnew\r\nEND\r\n";
    assert_eq!(client.ask("lease-get k  gone k\r\n"), several);
    assert_eq!(client.ask("lease-set none 99 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
    assert_eq!(
        client.ask("lease-set gone 1 0 0 1 noreply\r\nx\r\nlease-get gone\r\n"),
        "LVALUE gone 1 0 1\r\nx\r\nEND\r\n"
    );
    assert!(client.ask("version\r\n").starts_with("VERSION 1.6"), "the probe of mcrouter");
    let stats = client.ask("stats hashmere\r\n");
    for line in ["lease_grants 3", "lease_waits 5", "lease_stale 2"] {
        assert!(stats.contains(&format!("STAT {line}\r\n")), "{line}: {stats}");
    }
}

#[test]
fn bad_lines() {
    let server = start(&[]);
    let mut client = server.connect();
    let bad = "CLIENT_ERROR bad command line format\r\n";
    for line in ["lease-get\r\n", "lease-get \r\n", "metaget\r\n", "lease-set k 9 0 0\r\n", "lease-set k 9 0 0 +1\r\n"]
    {
        assert_eq!(client.ask(line), bad, "{line:?}");
    }
    let long = "k".repeat(251);
    for line in [format!("lease-get {long}\r\n"), format!("metaget a {long}\r\n")] {
        assert_eq!(client.ask(&line), bad, "{line:?}");
    }
    // Their data are ignored.
    for line in ["k x 0 0", "k -1 0 0", "k 9 -1 0", "k 9 0 x", "k 18446744073709551616 0 0", &format!("{long} 9 0 0")] {
        assert_eq!(client.ask(&format!("lease-set {line} 2\r\nxx\r\n")), bad, "{line:?}");
    }
    let token = granted_empty(&mut client, "k");
    let chunk = format!("lease-set k {token} 0 0 1\r\nxxxx\r\n");
    assert_eq!(client.ask(&chunk), format!("CLIENT_ERROR bad data chunk\r\n{bad}"));
    let big = format!("lease-set k {token} 0 0 2000000\r\n{}\r\n", "z".repeat(2_000_000));
    assert_eq!(client.ask(&big), "SERVER_ERROR object too large for cache\r\n");
    // None of that took the lease.
    assert_eq!(client.ask(&format!("lease-set k {token} 0 0 1\r\nx\r\n")), "STORED\r\n");
    assert_eq!(client.ask("lease\r\nlease-getk k\r\n"), "ERROR\r\nERROR\r\n");
}

#[test]
fn metaget_as_mcrouter_reads_it() {
    let server = start(&[]);
    let mut client = server.connect();
    client.ask("set k 0 0 1\r\nx\r\nset e 0 4102444800 1\r\nx\r\nset g 0 -1 1\r\nx\r\n");
    granted_empty(&mut client, "p");
    let line = |key, age: &str, exptime| {
        format!("META {key} age: {age}; exptime: {exptime}; from: unknown; is_transient: 0\r\n")
    };
    let (k, e) = (line("k", "unknown", 0), line("e", "unknown", 4_102_444_800u64));
    assert_eq!(client.ask("metaget k\r\n"), format!("{k}END\r\n"));
    assert_eq!(client.ask("metaget e none p k g\r\n"), format!("{e}{k}END\r\n"));
    assert_eq!(client.ask("metaget none\r\n"), "END\r\n");
    // Where accesses are recorded, the age of what was not read since it was stored is known.
    let server = start(&["-o", "access_times"]);
    let mut client = server.connect();
    client.ask("set k 0 0 1\r\nx\r\n");
    let known = client.ask("metaget k\r\n");
    assert!((0..30).any(|age| known == format!("{}END\r\n", line("k", &age.to_string(), 0))), "{known:?}");
    client.ask("get k\r\n");
    assert_eq!(client.ask("metaget k\r\n"), format!("{k}END\r\n"));
}

/// Every way in which a key can be written or deleted between the two halves of a lease.
#[test]
fn what_happens_to_the_key_takes_the_lease() {
    let scratch = Scratch::new("serve");
    let server = start_on(&scratch, &[]);
    let store = Options::new().create(false).open(scratch.path().join("ns/memcached.mere")).unwrap();
    let mut client = server.connect();
    for (request, answer, then, left) in [
        ("delete k\r\n", "NOT_FOUND\r\n", "NOT_STORED\r\n", "END\r\n"),
        ("md k\r\n", "HD\r\n", "NOT_STORED\r\n", "END\r\n"),
        ("flush_all\r\n", "OK\r\n", "NOT_STORED\r\n", "END\r\n"),
        ("set k 0 0 3\r\nnew\r\n", "STORED\r\n", "NOT_STORED\r\n", "VALUE k 0 3\r\nnew\r\nEND\r\n"),
        ("add k 0 0 3\r\nnew\r\n", "STORED\r\n", "NOT_STORED\r\n", "VALUE k 0 3\r\nnew\r\nEND\r\n"),
        ("ma k N0 J5\r\n", "HD\r\n", "NOT_STORED\r\n", "VALUE k 0 1\r\n5\r\nEND\r\n"),
        ("md k I\r\n", "HD\r\n", "STALE_STORED\r\n", "VALUE k 0 3\r\nold\r\nEND\r\n"),
        ("verbosity 0\r\n", "OK\r\n", "STORED\r\n", "VALUE k 0 3\r\nold\r\nEND\r\n"),
    ] {
        client.ask("delete k\r\n");
        let token = granted_empty(&mut client, "k");
        assert_eq!(client.ask(request), answer);
        let set = format!("lease-set k {token} 0 0 3\r\nold\r\n");
        assert_eq!((client.ask(&set), client.ask("get k\r\n")), (then.into(), left.into()), "{request:?}");
    }
    // By a local process.
    type Local = fn(&hashmere::Store);
    for (change, left) in [
        ((|store| assert!(store.delete(b"k").unwrap())) as Local, "END\r\n"),
        (|store| assert!(store.set(b"k", b"new").is_ok()), "VALUE k 0 3\r\nnew\r\nEND\r\n"),
        (|store| store.clear().unwrap(), "END\r\n"),
    ] {
        client.ask("delete k\r\n");
        let token = granted_empty(&mut client, "k");
        change(&store);
        assert_eq!(client.ask(&format!("lease-set k {token} 0 0 3\r\nold\r\n")), "NOT_STORED\r\n");
        assert_eq!(client.ask("get k\r\n"), left);
    }
    // A delete and a new lease: the value from before is stale, and the new holder is not disturbed.
    client.ask("delete k\r\n");
    let before = granted_empty(&mut client, "k");
    client.ask("delete k\r\n");
    let after = granted_empty(&mut client, "k");
    assert!(after > before);
    for _ in 0..3 {
        assert_eq!(client.ask(&format!("lease-set k {before} 0 0 3\r\nold\r\n")), "STALE_STORED\r\n");
    }
    assert_eq!(client.ask("lease-get k\r\n"), "LVALUE k 1 0 3\r\nold\r\nEND\r\n");
    assert_eq!(client.ask(&format!("lease-set k {after} 0 0 3\r\nnew\r\n")), "STORED\r\n");
    assert_eq!(client.ask("lease-get k\r\n"), "VALUE k 0 3\r\nnew\r\nEND\r\n");
}

/// Another command than those of the meta protocol does not take a placeholder for a value.
#[test]
fn a_placeholder_is_no_value() {
    let server = start(&[]);
    let mut client = server.connect();
    let token = granted_empty(&mut client, "k");
    client.ask("set a 0 0 1\r\n1\r\nset b 0 0 1\r\n2\r\n");
    for (request, answer) in [
        ("get k\r\n", "END\r\n"),
        ("gets k\r\n", "END\r\n"),
        ("get a k b k\r\n", "VALUE a 0 1\r\n1\r\nVALUE b 0 1\r\n2\r\nEND\r\n"),
        ("gat 100 k\r\n", "END\r\n"),
        ("gats 100 k a\r\n", "VALUE a 0 1 C\r\n1\r\nEND\r\n"),
        ("touch k 0\r\n", "NOT_FOUND\r\n"),
        ("incr k 1\r\n", "NOT_FOUND\r\n"),
        ("decr k 1\r\n", "NOT_FOUND\r\n"),
        ("replace k 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("append k 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("prepend k 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("cas k 0 0 1 0\r\nx\r\n", "NOT_FOUND\r\n"),
        ("cas k 0 0 1 9\r\nx\r\n", "NOT_FOUND\r\n"),
        ("ma k\r\n", "NF\r\n"),
        ("ms k 1 MR\r\nx\r\n", "NS\r\n"),
        ("ms k 1 MA\r\nx\r\n", "NS\r\n"),
        ("metaget k\r\n", "END\r\n"),
        // The meta protocol shows it as one of its own.
        ("mg k v\r\n", "VA 0 Z\r\n\r\n"),
        ("mg k N30 v\r\n", "VA 0 Z\r\n\r\n"),
    ] {
        let got = client.ask(request);
        let got = match got.split_once("VALUE a 0 1 ") {
            Some((before, rest)) => format!("{before}VALUE a 0 1 C{}", &rest[rest.find('\r').unwrap()..]),
            None => got,
        };
        assert_eq!(got, answer, "{request:?}");
    }
    let stats = client.ask("stats\r\n");
    assert!(stats.contains("STAT get_misses 7\r\n"), "{stats}");
    // In binary: get, get and touch, touch, delete.
    let mut binary = server.connect();
    for (opcode, extras) in [(0x00u8, 0u8), (0x0c, 0), (0x1d, 4), (0x1c, 4), (0x05, 20)] {
        let extras = match opcode {
            // Do not create.
            0x05 => [vec![0; 16], vec![0xff; 4]].concat(),
            _ => vec![0; usize::from(extras)],
        };
        let packet = crate::binary::Packet { opcode, extras, key: "k".into(), value: Vec::new(), cas: 0 };
        binary.send(&packet.bytes(1));
        let answer = binary.exactly(24);
        assert_eq!(answer[6..8], [0, 1], "{opcode:#x}: found");
        binary.exactly(u32::from_be_bytes(answer[8..12].try_into().unwrap()) as usize);
    }
    // None of that took the lease.
    assert_eq!(client.ask(&format!("lease-set k {token} 0 0 1\r\nx\r\n")), "STORED\r\n");
}

/// The marks are shared with the meta protocol.
#[test]
fn a_winner_of_the_meta_protocol_excludes_leases_and_the_reverse() {
    let server = start(&["-o", "lease_time=1000"]);
    let mut client = server.connect();
    client.ask("set k 0 0 1\r\nx\r\nmd k I\r\n");
    assert_eq!(client.ask("mg k v\r\n"), "VA 1 X W\r\nx\r\n");
    assert_eq!(client.ask("lease-get k\r\n"), "LVALUE k 1 0 1\r\nx\r\nEND\r\n");
    assert_eq!(client.ask("ms k 1\r\ny\r\nlease-get k\r\n"), "HD\r\nVALUE k 0 1\r\ny\r\nEND\r\n");
    client.ask("md k I\r\n");
    let (token, _) = granted(&mut client, "k");
    assert_eq!(client.ask("mg k v\r\n"), "VA 1 Z X\r\ny\r\n");
    assert_eq!(client.ask(&format!("lease-set k {token} 0 0 1\r\nz\r\nmg k v\r\n")), "STORED\r\nVA 1\r\nz\r\n");
    // What `mg` creates is no value either, and a winner that does not come back is not waited for.
    assert_eq!(client.ask("mg new N60\r\nlease-get new\r\n"), format!("HD W\r\n{}", waiting("new")));
    let server = start(&["-o", "lease_time=1"]);
    let mut client = server.connect();
    assert_eq!(client.ask("mg new N600\r\n"), "HD W\r\n");
    again(&mut client, "new");
}

/// Waits until a lease is given again, which is after the second of these tests, and before long; the token, and when
/// it was asked for.
fn again(client: &mut Client, key: &str) -> (u64, Instant) {
    let start = Instant::now();
    loop {
        let asked = Instant::now();
        let answer = client.ask(&format!("lease-get {key}\r\n"));
        if answer != waiting(key) {
            let (token, rest) = answer.strip_prefix(&format!("LVALUE {key} ")).unwrap().split_once(' ').unwrap();
            assert_eq!(rest, "0 0\r\n\r\nEND\r\n");
            return (token.parse().unwrap(), asked);
        }
        assert!(start.elapsed() < PATIENCE, "it is never given again");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_lease_of_a_killed_client_goes_to_another() {
    let server = start(&["-o", "lease_time=1"]);
    let mut holder = server.connect();
    let start = Instant::now();
    let token = granted_empty(&mut holder, "k");
    drop(holder);
    let mut client = server.connect();
    let (next, mut granted) = again(&mut client, "k");
    // A grant has at least its time, however late in its second it was.
    assert!(start.elapsed() >= Duration::from_secs(1), "after {:?}", start.elapsed());
    assert_eq!(next, token);
    // On a busy machine the next one may be over as well by the time of an answer.
    loop {
        let answer = client.ask("lease-get k\r\n");
        if granted.elapsed() < Duration::from_secs(1) {
            assert_eq!(answer, waiting("k"));
            break;
        }
        granted = again(&mut client, "k").1;
    }
    // Who comes first stores; the other has lost nothing but its work.
    assert_eq!(client.ask(&format!("lease-set k {token} 0 0 1\r\na\r\n")), "STORED\r\n");
    assert_eq!(server.connect().ask(&format!("lease-set k {token} 0 0 1\r\nb\r\n")), "NOT_STORED\r\n");
    assert_eq!(client.ask("get k\r\n"), "VALUE k 0 1\r\na\r\nEND\r\n");
}

/// A lease is in the file: it survives the server, and every server of the store honours it.
#[test]
fn leases_survive_the_server_and_span_all_of_a_store() {
    let scratch = Scratch::new("serve");
    let (mut first, second) = (start_on(&scratch, &[]), start_on(&scratch, &[]));
    let (mut a, mut b) = (first.connect(), second.connect());
    let token = granted_empty(&mut a, "k");
    assert_eq!(b.ask("lease-get k\r\n"), waiting("k"));
    a.ask("set s 3 0 3\r\nold\r\nmd s I\r\n");
    let (stale, rest) = granted(&mut b, "s");
    assert_eq!(rest, "3 3\r\nold\r\nEND\r\n");
    first.signal("KILL");
    first.child.wait().unwrap();
    // Through the other one, and through the next one on the same store.
    assert_eq!(b.ask("lease-get k\r\n"), waiting("k"));
    let third = start_on(&scratch, &[]);
    let mut c = third.connect();
    assert_eq!(c.ask("lease-get k\r\n"), waiting("k"));
    assert_eq!(c.ask("lease-get s\r\n"), "LVALUE s 1 3 3\r\nold\r\nEND\r\n");
    assert_eq!(c.ask(&format!("lease-set k {token} 0 0 1\r\nx\r\n")), "STORED\r\n");
    assert_eq!(b.ask("lease-get k\r\n"), "VALUE k 0 1\r\nx\r\nEND\r\n");
    assert_eq!(c.ask(&format!("lease-set s {stale} 0 0 1\r\ny\r\n")), "STORED\r\n");
    assert_eq!(b.ask("get s\r\n"), "VALUE s 0 1\r\ny\r\nEND\r\n");
}

#[test]
fn one_holder_in_a_race() {
    let scratch = Scratch::new("serve");
    let servers = [start_on(&scratch, &[]), start_on(&scratch, &[])];
    for round in 0..50 {
        // Half of them with a stale value.
        if round % 2 == 0 {
            servers[0].connect().ask(&format!("set r{round} 0 0 1\r\nx\r\nmd r{round} I\r\n"));
        }
        let key = format!("r{round}");
        let wait = if round % 2 == 0 { format!("LVALUE {key} 1 0 1\r\nx\r\nEND\r\n") } else { waiting(&key) };
        let tokens: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|i| {
                    let (server, key) = (&servers[i % 2], &key);
                    scope.spawn(move || server.connect().ask(&format!("lease-get {key}\r\n")))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|answer| *answer != wait).collect()
        });
        assert_eq!(tokens.len(), 1, "round {round}: {tokens:?}");
    }
}

/// Long values are sent from the file itself; a long line of keys is answered in parts.
#[test]
fn long_values_and_long_lines() {
    let server = start(&["-m", "128"]);
    let mut client = server.connect();
    let value = "v".repeat(500_000);
    let token = granted_empty(&mut client, "k");
    client.send(format!("lease-set k {token} 5 0 500000\r\n{value}\r\nmd k I\r\n").as_bytes());
    assert_eq!(client.until(b"HD\r\n").0, b"STORED\r\nHD\r\n");
    // The holder's copy, and twice that of the others.
    for _ in 0..3 {
        let got = client.ask("lease-get k\r\n");
        assert!(got.starts_with("LVALUE k ") && got.ends_with(&format!(" 5 500000\r\n{value}\r\nEND\r\n")));
    }
    client.send(format!("set k 5 0 500000\r\n{value}\r\n").as_bytes());
    assert_eq!(client.until(b"\r\n").0, b"STORED\r\n");
    // Ten megabytes for a line of twenty keys, among them one that is computed by another.
    granted_empty(&mut client, "p");
    let keys = " k".repeat(10) + " p" + &" k".repeat(10);
    client.send(format!("lease-get{keys}\r\n").as_bytes());
    let one = format!("VALUE k 5 500000\r\n{value}\r\n");
    let expected = one.repeat(10) + "LVALUE p 1 0 0\r\n\r\n" + &one.repeat(10) + "END\r\n";
    assert!(client.exactly(expected.len()) == expected.as_bytes());
    // A line far above that of other commands.
    let many: String = (0..2000).map(|n| format!(" key{n}")).collect();
    let answer = client.ask(&format!("metaget{many}\r\n"));
    assert_eq!(answer, "END\r\n");
}

/// A server that cannot write the lease says that another client has it: mcrouter waits for an answer.
#[test]
fn a_full_store_grants_nothing_and_answers() {
    let server = start(&["-M", "-m", "16"]);
    let mut client = server.connect();
    let value = "v".repeat(100_000);
    for n in 0.. {
        let answer = client.ask(&format!("set k{n} 0 0 100000\r\n{value}\r\n"));
        if answer != "STORED\r\n" {
            break;
        }
        assert!(n < 1000);
    }
    // Small values fill what is left.
    for n in 0.. {
        if client.ask(&format!("set s{n} 0 0 100\r\n{}\r\n", "s".repeat(100))) != "STORED\r\n" {
            break;
        }
        assert!(n < 100_000);
    }
    let answers: Vec<String> = (0..2000).map(|n| client.ask(&format!("lease-get new{n}\r\n"))).collect();
    let refused = answers.iter().enumerate().filter(|(n, answer)| **answer == waiting(&format!("new{n}"))).count();
    assert!(refused > 0, "every lease was granted");
    assert!(answers.iter().all(|answer| answer.starts_with("LVALUE new") && answer.ends_with(" 0 0\r\n\r\nEND\r\n")));
}
