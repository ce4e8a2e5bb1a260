//! What the dashboard asks for: figures, look-ups, the keys that take the room, the last lines of a log.

use super::Http;
use crate::support::PATIENCE;
use hashmere::{Options, Store};
use hashmere_log::{Level, Log, LogOptions, Sink};
use serde_json::Value;
use std::time::Instant;

fn json(http: &Http, target: &str) -> Value {
    let reply = http.ask(&format!("GET {target}"), "", "");
    assert_eq!((reply.status, reply.header("Content-Type")), (200, Some("application/json")), "{reply:?}");
    serde_json::from_str(&reply.body).unwrap()
}

fn store_of(http: &Http) -> Store {
    Options::new().create(false).open(http.server.folder().join("memcached.mere")).unwrap()
}

/// Asks until all keys are counted; the last reply.
fn count_all(http: &Http, first: &str) -> Value {
    let mut reply = json(http, first);
    while reply["done"] != true {
        reply = json(http, "/api/big");
    }
    reply
}

#[test]
fn the_keys_that_take_the_room_are_counted_from_question_to_question() {
    let http = Http::start(&[]);
    let empty = count_all(&http, "/api/big");
    assert_eq!((&empty["keys"], &empty["items"], &empty["largest"]), (&0.into(), &0.into(), &Value::Array(vec![])));
    let store = store_of(&http);
    for i in 0..20_000u32 {
        store.set(&format!("user:{i}"), &vec![b'x'; (i % 100) as usize]).unwrap();
    }
    store.set(b"\xff:big", &[0; 5000]).unwrap();
    // What was counted stays until it is counted again.
    assert_eq!(json(&http, "/api/big")["keys"], 0);
    let all = count_all(&http, "/api/big?new");
    assert_eq!((&all["keys"], &all["items"]), (&20_001.into(), &20_001.into()));
    let bytes: u64 = (0..20_000u64).map(|i| format!("user:{i}").len() as u64 + i % 100).sum::<u64>() + 5005;
    assert_eq!(all["bytes"], bytes);
    let largest = all["largest"].as_array().unwrap();
    assert_eq!(
        (largest.len(), &largest[0]["key_base64"], &largest[0]["bytes"]),
        (20, &"/zpiaWc=".into(), &5005.into())
    );
    let prefixes = all["prefixes"].as_array().unwrap();
    assert_eq!((&prefixes[0]["prefix"], &prefixes[0]["keys"]), (&"user:".into(), &20_000.into()));
    assert_eq!((&prefixes[1]["prefix_base64"], &prefixes[1]["keys"]), (&"/zo=".into(), &1.into()));
    let sizes = all["sizes"].as_array().unwrap();
    assert_eq!(sizes.iter().map(|size| size["keys"].as_u64().unwrap()).sum::<u64>(), 20_001);
    // How far it is comes with every reply, the rest if it is asked for.
    let first = json(&http, "/api/big?new&details");
    assert!(first["largest"].is_array() && first["items"] == 20_001, "{first}");
    // Two clients that ask at a time have one count.
    assert_eq!(count_all(&http, "/api/big")["keys"], 20_001);
    assert_eq!(http.status("POST /api/big", "", "x"), 405);
}

#[test]
fn what_names_keys_is_refused_where_listings_are() {
    let http = Http::start(&["-X"]);
    for target in ["/api/big", "/api/hot", "/store/"] {
        let reply = http.ask(&format!("GET {target}"), "", "");
        assert!(reply.status == 403 && reply.body.contains("-X"), "{target}: {reply:?}");
    }
    assert_eq!(http.status("GET /api/stats", "", ""), 200);
}

#[test]
fn look_ups_are_timed_and_are_no_reads_of_the_store() {
    let http = Http::start(&[]);
    assert_eq!(json(&http, "/api/stats")["lookups"], Value::Null);
    let store = store_of(&http);
    (0..500).for_each(|i| assert!(store.set(&format!("key:{i}"), b"value").is_ok()));
    let deadline = Instant::now() + PATIENCE;
    let lookups = loop {
        assert!(Instant::now() < deadline, "no look-up is timed");
        let stats = json(&http, "/api/stats");
        assert_eq!((&stats["store"]["hits"], &stats["store"]["misses"]), (&0.into(), &0.into()));
        if !stats["lookups"].is_null() {
            break stats["lookups"].clone();
        }
    };
    let of = |name: &str| lookups[name].as_u64().unwrap();
    assert!(of("count") > 0 && of("clock_ns") > 0, "{lookups}");
    let times = ["p50_ns", "p90_ns", "p99_ns", "max_ns"].map(of);
    assert!(times[0] > 0 && times.is_sorted(), "{lookups}");
}

#[test]
fn the_last_lines_of_a_log_come_once_each() {
    let http = Http::start(&[]);
    let store = store_of(&http);
    assert_eq!(http.status("GET /api/log?name=events", "", ""), 404);
    assert_eq!(http.status("GET /api/log", "", ""), 400);
    assert_eq!(http.status("GET /api/log?name=events&after=x", "", ""), 400);
    assert_eq!(http.status("GET /api/log?name=%ff", "", ""), 400);
    let log = Log::open(&store, "events", LogOptions::default()).unwrap();
    assert_eq!(json(&http, "/api/log?name=events")["lines"], Value::Array(vec![]));
    let mut drain = log.drain_manual(Sink::callback(|_| ())).unwrap();
    let mut write = |text: &str| {
        assert!(log.line_fields(Level::Info, text, &[("user", 7u64.into())]).unwrap());
        while drain.poll().unwrap().1 {}
    };
    write("first");
    write("second \"<b>\"");
    let lines = json(&http, "/api/log?name=events")["lines"].as_array().unwrap().clone();
    let texts: Vec<_> = lines.iter().map(|line| line["line"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["first", "second \"<b>\""]);
    assert_eq!((&lines[0]["line"]["level"], &lines[0]["line"]["fields"]["user"]), (&"info".into(), &7.into()));
    let position = |line: &Value| line["position"].as_str().unwrap().to_string();
    let after =
        |of: &str| json(&http, &format!("/api/log?name=events&after={of}"))["lines"].as_array().unwrap().clone();
    assert_eq!(after(&position(&lines[0])), lines[1..]);
    assert_eq!(after(&position(&lines[1])).len(), 0);
    write("third");
    assert_eq!(after(&position(&lines[1]))[0]["line"]["text"], "third");
    // Any number is a position: lines behind it come.
    assert_eq!(after("18446744073709551615").len(), 0);
}
