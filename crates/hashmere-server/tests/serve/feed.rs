//! Promise: `feed` streams what happens to the store, byte for byte the events of a local consumer, to those who may
//! have it; a slow client costs a bounded amount of memory, delays no other one, and learns that it missed something.

use crate::support::{start, Client, Server, PATIENCE};
use hashmere::{Key, Options, Store, WriteBatch};
use hashmere_feed::{Event, Feed, FeedOptions, FeedStart, Value};
use hashmere_testkit::rng::Rng;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn store(server: &Server) -> Store {
    Options::new().create(false).open(server.folder().join("memcached.mere")).unwrap()
}

fn feed(server: &Server, words: &str) -> Client {
    let mut client = server.connect();
    client.send(format!("feed {words}\r\n").as_bytes());
    assert_eq!(client.until(b"\r\n").0, b"FEED 1\r\n");
    client
}

fn line(client: &mut Client) -> Vec<u8> {
    let (mut line, open) = client.until(b"\r\n");
    assert!(open, "the stream ended: {}", line.escape_ascii());
    line.truncate(line.len() - 2);
    line
}

/// The next line that is no beat.
fn event(client: &mut Client) -> Vec<u8> {
    loop {
        let line = line(client);
        if !line.starts_with(b"BEAT ") {
            return line;
        }
    }
}

/// Words of the next beat that answers this.
fn beat(client: &mut Client, answers: u64) -> Vec<u64> {
    loop {
        let line = String::from_utf8(line(client)).unwrap();
        let Some(words) = line.strip_prefix("BEAT hm1-") else { continue };
        let (token, numbers) = words.split_once(' ').unwrap();
        let position = token.rsplit('-').next().unwrap().parse().unwrap();
        let mut all = vec![position];
        all.extend(numbers.split(' ').map(|number| number.parse::<u64>().unwrap()));
        assert_eq!(all.len(), 4, "{line}");
        if all[3] == answers {
            return all;
        }
    }
}

#[test]
fn the_events_of_a_local_consumer_byte_for_byte() {
    let server = start(&["--feed", "1m"]);
    let store = store(&server);
    let mut streams = [feed(&server, "now values"), feed(&server, "now prefix=a")];
    let options = [FeedOptions::new().values(true), FeedOptions::new().prefix("a")];
    let mut locals = options.map(|options| Feed::open(&store, FeedStart::Now, options).unwrap());
    // So that no stream begins behind what follows.
    streams.iter_mut().for_each(|stream| drop(beat(stream, 0)));
    let mut client = server.connect();
    assert_eq!(client.ask("set ab 7 0 5\r\nv\r\n!\"\r\n"), "STORED\r\n");
    let all: Vec<u8> = (0..=255).collect();
    store.set(&all, &all).unwrap();
    store.set(Key::Hashed(b"a\r\n", 99), b"\r\nBEAT ").unwrap();
    let mut batch = WriteBatch::new();
    batch.set("a1", b"").set("b1", b"2").delete("ab");
    store.write_batch(&batch).unwrap();
    assert_eq!(client.ask("touch a1 1000\r\n"), "TOUCHED\r\n");
    store.clear().unwrap();
    store.set("a-last", b"1").unwrap();
    for (stream, local) in streams.iter_mut().zip(&mut locals) {
        let mut count = 0;
        loop {
            let expected = local.next_within(PATIENCE).unwrap().expect("an event");
            let mut text = Vec::new();
            expected.write_json(&mut text);
            // When a clear is noticed is each consumer's own.
            match (&expected, Event::from_json(&event(stream)).unwrap()) {
                (Event::Clear { token, .. }, Event::Clear { token: theirs, .. }) => assert_eq!(*token, theirs),
                (Event::Clear { .. }, other) => panic!("{other:?} and no clear"),
                (_, got) => {
                    let mut again = Vec::new();
                    got.write_json(&mut again);
                    assert_eq!(again.escape_ascii().to_string(), text.escape_ascii().to_string());
                }
            }
            count += 1;
            if matches!(&expected, Event::Change(change) if change.key == b"a-last") {
                break;
            }
        }
        assert!(count >= 6, "{count} events");
    }
    assert_eq!(server.answer("stats conns\r\n").matches(":state conn_feed").count(), 2);
}

/// The bytes themselves.
#[test]
fn lines_as_they_are_documented() {
    let server = start(&["--feed", "1m"]);
    let mut stream = feed(&server, "now values");
    assert_eq!(server.answer("set k 3 0 1\r\nv\r\n"), "STORED\r\n");
    let line = String::from_utf8(event(&mut stream)).unwrap();
    let field = |name: &str| {
        let rest = &line[line.find(name).unwrap_or_else(|| panic!("no {name} in {line}")) + name.len()..];
        rest[..rest.find([',', '}', '"']).unwrap()].to_owned()
    };
    let (ts, uuid) = (field("\"ts_ms\":"), field("\"store\":\""));
    let (token, version) = (field("\"token\":\""), field("\"version\":"));
    let expected = format!(
        "{{\"op\":\"u\",\"ts_ms\":{ts},\"before\":null,\"after\":{{\"key\":\"k\",\"value\":\"v\",\"value_len\":1,\
         \"flags\":3,\"expires_at_ms\":null}},\"source\":{{\"connector\":\"hashmere\",\"store\":\"{uuid}\",\
         \"token\":\"{token}\",\"operation\":\"set\",\"ts_ms\":{ts},\"snapshot\":\"false\",\"version\":{version},\
         \"origin\":0}},\"transaction\":null}}"
    );
    assert_eq!(line, expected);
    let started = Instant::now();
    let [position, end, ms, 0] = beat(&mut stream, 0)[..] else { panic!("a beat of another form") };
    assert_eq!((position, end), (1, 1));
    assert!(ms >= ts.parse().unwrap() && ms < ts.parse::<u64>().unwrap() + PATIENCE.as_millis() as u64);
    // Answered, however its bytes come.
    for piece in ["be", "at 4", "2\r", "\n"] {
        stream.send(piece.as_bytes());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(beat(&mut stream, 42)[..2], [1, 1]);
    stream.send(b"get k\r\nbeat 7\r\n");
    beat(&mut stream, 7);
    // And unasked, each second.
    let before = Instant::now();
    (0..3).for_each(|_| drop(beat(&mut stream, 7)));
    assert!(before.elapsed() < PATIENCE && started.elapsed() >= Duration::from_millis(1500), "they come too often");
    // Resumes behind the event.
    let mut resumed = feed(&server, &format!("{token} values"));
    assert_eq!(server.answer("delete k\r\n"), "DELETED\r\n");
    assert!(event(&mut resumed).starts_with(b"{\"op\":\"d\""));
}

#[test]
fn refused_unless_it_is_allowed() {
    let closed = start(&[]);
    for words in ["start", "now values", "bogus", ""] {
        assert_eq!(closed.answer(&format!("feed {words}\r\n")), "CLIENT_ERROR feed not allowed\r\n");
    }
    drop(closed);
    let folder = crate::support::Scratch::new("serve");
    let accounts = folder.path().join("accounts");
    std::fs::write(&accounts, "ada:secret\n").unwrap();
    let server = start(&["--feed", "1m", "-Y", accounts.to_str().unwrap()]);
    let mut client = server.connect();
    for (request, reply) in [
        ("feed start values\r\n", "CLIENT_ERROR unauthenticated\r\n"),
        ("set x 0 0 9\r\nada wrong\r\n", "CLIENT_ERROR authentication failure\r\n"),
        ("feed start values\r\n", "CLIENT_ERROR unauthenticated\r\n"),
        ("set x 0 0 10\r\nada secret\r\n", "STORED\r\n"),
    ] {
        client.send(request.as_bytes());
        assert_eq!(String::from_utf8(client.until(b"\r\n").0).unwrap(), reply);
    }
    client.send(b"feed start values\r\n");
    assert_eq!(client.until(b"\r\n").0, b"FEED 1\r\n");
    assert!(event(&mut client).starts_with(b"{\"control\":\"reset\""));
}

#[test]
fn at_most_twenty_and_those_that_are_gone_make_room() {
    let server = start(&["--feed", "1m"]);
    let mut streams: Vec<Client> = (0..20).map(|_| feed(&server, "now")).collect();
    assert_eq!(server.answer("feed now\r\n"), "SERVER_ERROR too many feeds\r\n");
    streams.truncate(5);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut client = server.connect();
        client.send(b"feed now\r\n");
        if client.until(b"\r\n").0 == b"FEED 1\r\n" {
            break;
        }
        assert!(Instant::now() < deadline, "no room");
    }
    // A feed that is switched off ends the streams with the reason.
    hashmere_feed::disable(&store(&server)).unwrap();
    for stream in &mut streams {
        assert!(event(stream).starts_with(b"SERVER_ERROR the store keeps no changes"));
    }
    assert!(server.answer("feed now\r\n").starts_with("SERVER_ERROR the store keeps no changes"));
}

/// Words at random: a stream or a refusal, and the server lives.
#[test]
fn any_words() {
    const WORDS: &[&str] = &[
        "start",
        "now",
        "values",
        "prefix=a",
        "prefix=",
        "hm1-",
        "noreply",
        "\t",
        "\u{1}",
        "Start",
        "=",
        "-1",
        "values=1",
        "hm1-0001020304050607ffffffffffffffff-1795000000000-3-77",
        "hm1-0001020304050607ffffffffffffffff-18446744073709551615-18446744073709551615-18446744073709551615",
    ];
    let server = start(&["--feed", "1m", "-c", "100"]);
    let mut rng = Rng::for_test("feed-words");
    for _ in 0..300 {
        let words: Vec<&str> = (0..rng.below(5)).map(|_| WORDS[rng.index(WORDS.len())]).collect();
        let line = format!("feed {}", words.join(" "));
        let begins = words.first().is_some_and(|word| ["start", "now"].contains(word) || word.len() > 10);
        let rest = words.get(1..).unwrap_or_default();
        let once = |what: &str| rest.iter().filter(|word| word.starts_with(what)).count() <= 1;
        let known = rest
            .iter()
            .all(|word| *word == "values" || word.starts_with("prefix=") || word.trim_matches(' ').is_empty());
        let is_right = begins && known && once("values") && once("prefix=");
        let mut client = server.connect();
        client.send(format!("{line}\r\n").as_bytes());
        let reply = client.until(b"\r\n").0;
        let expected: &[u8] = if is_right { b"FEED 1\r\n" } else { b"CLIENT_ERROR usage: feed " };
        // The streams of before may not be gone yet.
        let is_full = is_right && reply == b"SERVER_ERROR too many feeds\r\n";
        assert!(reply.starts_with(expected) || is_full, "{line:?}: {}", reply.escape_ascii());
    }
    assert_eq!(server.answer("get k\r\n"), "END\r\n");
}

#[test]
fn a_slow_client_is_bounded_and_begins_again() {
    const VALUE: usize = 4000;
    let server = start(&["--feed", "1m", "-m", "64"]);
    let mut slow = feed(&server, "now values");
    beat(&mut slow, 0);
    let mut client = server.connect();
    let set = |client: &mut Client, n: u32| {
        let value = format!("{n:0VALUE$}");
        assert_eq!(client.ask(&format!("set k{} 0 0 {VALUE}\r\n{value}\r\n", n % 100)), "STORED\r\n");
    };
    (0..500).for_each(|n| set(&mut client, n));
    let before = server.memory("RssAnon");
    // Much more than the feed keeps and the sockets take; the slow client reads nothing.
    (500..8000).for_each(|n| set(&mut client, n));
    let grown = server.memory("RssAnon").saturating_sub(before);
    assert!(grown < 4 << 20, "{} KiB more", grown >> 10);
    // What it gets now: changes, a reset, every key, and then no change is missing.
    let (mut seen, mut resets, mut is_live) = (BTreeMap::new(), 0, true);
    loop {
        match Event::from_json(&event(&mut slow)).unwrap() {
            Event::Reset { .. } => {
                (resets, is_live) = (resets + 1, false);
                seen.clear();
            }
            Event::Synced { .. } => is_live = true,
            Event::Read(change) | Event::Change(change) => {
                let Value::Bytes(value) = change.value else { panic!("{change:?}") };
                seen.insert(String::from_utf8(change.key).unwrap(), value);
            }
            other => panic!("{other:?}"),
        }
        let is_whole = seen.len() == 100 && seen.get("k99").is_some_and(|value| value.ends_with(b"7999"));
        if resets > 0 && is_live && is_whole {
            break;
        }
    }
    for n in 7900..8000u32 {
        assert!(seen[&format!("k{}", n % 100)].ends_with(n.to_string().as_bytes()), "k{}", n % 100);
    }
}

#[test]
fn a_stopping_server_does_not_wait_for_streams() {
    let server = start(&["--feed", "1m"]);
    let mut stream = feed(&server, "start values");
    event(&mut stream);
    let mut server = server;
    server.signal("TERM");
    let deadline = Instant::now() + PATIENCE;
    while server.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it does not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
    while stream.until(b"\r\n").1 {}
}
