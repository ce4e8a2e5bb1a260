//! Promise: `/changes` gives every change once it was acknowledged, and goes on where a client was. Catches: a stream
//! that holds the event loop, places for streams that are not given back.

use super::Http;
use crate::support::{Client, PATIENCE};
use std::time::Instant;

fn follow(http: &Http, from: &str, headers: &str) -> Client {
    let mut client = http.connect();
    client.send(format!("GET /changes?from={from}&prefix=k HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes());
    let (head, _) = client.until(b"\n\n");
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Type: text/event-stream\r\n"), "{head}");
    client
}

/// The next event: its id and its data.
fn event(client: &mut Client) -> (String, String) {
    loop {
        let text = String::from_utf8(client.until(b"\n\n").0).unwrap();
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_string();
        let (id, data) = (field("id: "), field("data: "));
        if !data.is_empty() {
            return (id, data);
        }
    }
}

#[test]
fn changes_come_as_events_and_go_on_from_an_id() {
    let http = Http::start(&["--http-write", "--feed", "1m"]);
    let mut memcached = http.server.connect();
    memcached.ask("set k0 0 0 1\r\nx\r\nset other 0 0 1\r\nx\r\n");
    let mut all = follow(&http, "start", "");
    assert!(event(&mut all).1.contains("reset"));
    assert!(event(&mut all).1.contains("\"k0\""));
    assert!(event(&mut all).1.contains("synced"));
    memcached.ask("set k1 0 0 1\r\nx\r\nset other 0 0 1\r\nx\r\ndelete k0\r\n");
    let (id, first) = event(&mut all);
    assert!(first.contains("\"op\":\"u\"") && first.contains("\"k1\""), "{first}");
    drop(all);
    // Two ways to say where.
    for mut again in [follow(&http, &id, ""), follow(&http, "now", &format!("Last-Event-ID: {id}\r\n"))] {
        let (_, second) = event(&mut again);
        assert!(second.contains("\"op\":\"d\"") && second.contains("\"k0\""), "{second}");
    }
    assert_eq!(http.status("GET /changes?from=nonsense", "", ""), 400);
    assert_eq!(Http::start(&[]).status("GET /changes", "", ""), 404);
}

/// Values come along where they are asked for: as text, or in base64 under another name.
#[test]
fn changes_have_values_if_they_are_asked_for() {
    let http = Http::start(&["--http-write", "--feed", "1m"]);
    let mut plain = follow(&http, "now", "");
    let mut valued = follow(&http, "now&values", "");
    assert_eq!(http.status("PUT /store/k1", "", "some text"), 201);
    let mut memcached = http.server.connect();
    memcached.send(b"set k2 0 0 2\r\n\xff\x00\r\n");
    memcached.until(b"STORED\r\n");
    assert!(event(&mut valued).1.contains("\"value\":\"some text\""));
    assert!(event(&mut valued).1.contains("\"value_base64\":\"/wA=\""));
    for _ in 0..2 {
        let (_, data) = event(&mut plain);
        assert!(data.contains("\"k") && !data.contains("some text") && !data.contains("/wA="), "{data}");
    }
    assert_eq!(http.status("GET /changes?values=perhaps", "", ""), 400);
}

#[test]
fn streams_are_bounded_and_give_their_places_back() {
    let http = Http::start(&["--http-write", "--feed", "4m"]);
    let streams: Vec<Client> = (0..64).map(|_| follow(&http, "now", "")).collect();
    assert_eq!(http.status("GET /changes", "", ""), 503);
    // None of them reads; the others are served, and memory does not grow with what they miss.
    let mut memcached = http.server.connect();
    let before = http.server.memory("RssAnon:");
    let sets: String = (0..2000).map(|i| format!("set k{i} 0 0 1 noreply\r\nx\r\n")).collect();
    for _ in 0..5 {
        memcached.ask(&sets);
    }
    let grown = http.server.memory("RssAnon:").saturating_sub(before);
    assert!(grown < 64 * (256 << 10) + (24 << 20), "memory grew by {grown}");
    drop(streams);
    let deadline = Instant::now() + PATIENCE;
    while !http.ask("GET /metrics", "", "").body.contains("\nhashmere_change_streams 0\n") {
        assert!(Instant::now() < deadline, "places are left");
    }
}
