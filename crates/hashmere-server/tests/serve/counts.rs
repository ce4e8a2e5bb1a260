//! Promise: what `stats` counts is what happened: requests by prefix, misses of what had expired or was flushed, and
//! what each connection is about.

use crate::binary::Packet;
use crate::support::{start, Client, Server, PATIENCE};
use hashmere::{Attributes, Options, Ttl};
use hashmere_engine::StoreHandle;
use std::time::Instant;

fn number(client: &mut Client, name: &str) -> u64 {
    let stats = client.ask("stats\r\n");
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {stats}")).trim().parse().unwrap()
}

/// The same requests to memcached, both versions, and to this server give the same counts, in whatever order.
#[test]
fn requests_are_counted_by_prefix() {
    let reference = [Server::memcached(&[]), Server::memcached_today(&[])];
    let servers = std::iter::once(start(&[])).chain(reference.into_iter().flatten());
    for server in servers {
        let mut client = server.connect();
        assert_eq!(client.ask("get foo:a\r\nstats detail dump\r\n"), "END\r\nEND\r\n");
        assert_eq!(client.ask("stats detail on\r\n"), "OK\r\n");
        client.ask("set foo:a 0 0 1\r\n1\r\nset foo:b 0 0 1\r\n1\r\nget foo:a foo:b foo:c\r\ngets foo:a\r\n");
        client.ask(
            "delete foo:a\r\ndelete foo:none\r\nset bar 0 0 1\r\n1\r\nget bar\r\nset x:y:z 0 0 1\r\n1\r\nget x:y:z\r\n",
        );
        client
            .ask("incr foo:b 1\r\ntouch foo:b 0\r\ngat 0 foo:b\r\nadd foo:b 0 0 1\r\n1\r\ncas foo:b 0 0 1 1\r\n1\r\n");
        client.ask("append foo:b 0 0 1\r\n1\r\nset :x 0 0 1\r\n1\r\nset foo:b 0 0 x\r\nset foo:b 0 0 1\r\nlong\r\n");
        client.ask(&format!("set big:x 0 0 1100000\r\n{}\r\n", "x".repeat(1_100_000)));
        // Meta commands do not count.
        client.ask("ms m:k 1\r\n1\r\nmg m:k v\r\nmd m:k\r\n");
        let mut binary = server.connect();
        for (opcode, extras, key) in
            [(0x01, 8, "bin:a"), (0x00, 0, "bin:a"), (0x00, 0, "bin:z"), (0x04, 0, "bin:z"), (0x1d, 4, "bin:a")]
        {
            binary.send(&Packet { opcode, extras: vec![0; extras], key: key.into(), value: vec![], cas: 0 }.bytes(1));
            let head = binary.exactly(24);
            binary.exactly(usize::from(head[11]));
        }
        let dump = client.ask("stats detail dump\r\n");
        let mut lines: Vec<&str> = dump.lines().collect();
        assert_eq!(lines.pop(), Some("END"));
        lines.sort_unstable();
        let expected = [
            "PREFIX  get 0 hit 0 set 1 del 0",
            "PREFIX big get 0 hit 0 set 1 del 0",
            "PREFIX bin get 3 hit 2 set 1 del 1",
            "PREFIX foo get 5 hit 4 set 6 del 2",
            "PREFIX x get 1 hit 1 set 1 del 0",
        ];
        assert_eq!(lines, expected);
        assert!(client.ask("stats settings\r\n").contains("STAT detail_enabled yes\r\n"));
        client.ask("stats detail off\r\nget foo:b\r\n");
        assert_eq!(client.ask("stats detail dump\r\n").lines().count(), 6);
        assert_eq!(client.ask("stats reset\r\nstats detail dump\r\n"), "RESET\r\nEND\r\n");
    }
    // With another end of prefixes it is on from the start.
    let server = start(&["-D", "/"]);
    assert_eq!(
        server.connect().ask("get a/b\r\nstats detail dump\r\n"),
        "END\r\nPREFIX a get 1 hit 0 set 0 del 0\r\nEND\r\n"
    );
    let refusing = start(&["-X"]);
    assert_eq!(refusing.connect().ask("stats detail on\r\n"), "CLIENT_ERROR stats detail not allowed\r\n");
}

#[test]
fn misses_of_what_had_expired_or_was_flushed() {
    let server = start(&[]);
    let mut client = server.connect();
    for (request, misses) in [
        ("get e\r\n", "get_misses"),
        ("get none e other\r\n", "get_misses"),
        ("gat 0 e\r\n", "touch_misses"),
        ("mg e v\r\n", "get_misses"),
        ("mg e N30\r\n", "get_misses"),
        ("incr e 1\r\n", "incr_misses"),
        ("touch e 0\r\n", "touch_misses"),
        ("ma e\r\n", "incr_misses"),
        ("append e 0 0 1\r\n1\r\n", "cmd_set"),
    ] {
        client.ask("delete e\r\nset e 0 -1 1\r\n1\r\nstats reset\r\n");
        client.ask(request);
        assert_eq!(number(&mut client, "get_expired"), 1, "{request:?} ({misses})");
        // Once: it is gone now.
        client.ask("delete e\r\nget e\r\n");
        assert_eq!(number(&mut client, "get_expired"), 1, "{request:?}, again");
    }
    assert_eq!(number(&mut client, "get_flushed"), 0);
    client.ask("set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\nset c 0 0 1\r\n1\r\nflush_all\r\nstats reset\r\n");
    // A key that was stored again does not count.
    client.ask("set c 0 0 1\r\n1\r\ndelete c\r\nget a none c\r\nget a\r\nincr b 1\r\n");
    assert_eq!((number(&mut client, "get_flushed"), number(&mut client, "get_expired")), (2, 0));
}

/// What a local process wrote counts the same, and what lives stays.
#[test]
fn only_what_has_expired_is_taken_away() {
    let server = start(&[]);
    let mut client = server.connect();
    let store = Options::new().create(false).open(server.folder().join("memcached.mere")).unwrap();
    let past = Attributes { ttl: Ttl::At(1), ..Attributes::NONE };
    store.set_with(b"past", b"x", past).unwrap();
    store.set(b"lives", b"x").unwrap();
    assert_eq!(
        (store.shared().delete_expired(b"lives").unwrap(), store.shared().delete_expired(b"none").unwrap()),
        (false, false)
    );
    assert_eq!(client.ask("get past lives\r\n"), "VALUE lives 0 1\r\nx\r\nEND\r\n");
    assert_eq!((number(&mut client, "get_expired"), number(&mut client, "reclaimed")), (1, 1));
    assert!(!store.shared().delete_expired(b"past").unwrap());
}

#[test]
fn what_each_connection_is_about() {
    let server = start(&[]);
    let mut asking = server.connect();
    let mut opened = Vec::new();
    let mut wait_for = |sent: &[u8], state: &str| {
        let mut client = server.connect();
        client.send(sent);
        opened.push(client);
        // That one, those before it, and the one that asks.
        let connections = opened.len() + 1;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let conns = asking.ask("stats conns\r\n");
            let are_all = conns.matches(":listen_addr ").count() == connections;
            if are_all && conns.matches(&format!(":state {state}\r\n")).count() == 1 {
                return conns;
            }
            assert!(Instant::now() < deadline, "no {state} in {conns}");
        }
    };
    wait_for(b"", "conn_new_cmd");
    wait_for(b"set k 0 0 100\r\nabc", "conn_nread");
    wait_for(b"get k", "conn_read");
    wait_for(b"watch\n", "conn_watch");
    wait_for(b"set k 0 0 2000000\r\nabc", "conn_swallow");
    let conns = wait_for(&[0x80, 0x01, 0, 1, 8, 0, 0, 0, 0, 0, 0, 100], "conn_listening");
    let address = format!("tcp:127.0.0.1:{}", server.port);
    // The listener first: it has no `listen_addr`.
    let first: Vec<&str> = conns.lines().take(3).collect();
    assert_eq!(first[0], format!("STAT 0:addr {address}"));
    assert_eq!(first[1], "STAT 0:state conn_listening");
    assert!(first[2].starts_with("STAT 0:secs_since_last_cmd "), "{conns}");
    // And the one that asks.
    assert_eq!(conns.matches(":state conn_parse_cmd\r\n").count(), 1, "{conns}");
    assert_eq!(conns.matches(&format!(":listen_addr {address}\r\n")).count(), 7, "{conns}");
}
