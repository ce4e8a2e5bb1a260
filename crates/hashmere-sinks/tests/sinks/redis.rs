//! Streams of Redis.

use crate::kill::{behind_last_reset, demand_equal};
use crate::script::{all, Script};
use crate::servers::Server;
use hashmere_feed::Event;
use hashmere_sinks::{pump, PumpError, PumpOptions, SinkError, Target};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

pub fn move_all(target: &str, entries: u64, options: &PumpOptions) -> Result<u64, PumpError> {
    let mut sink = target.parse::<Target>().unwrap().sink();
    let open = |from: Option<&_>| Ok(Box::new(Script::open(entries, from)) as Box<dyn hashmere_sinks::Source>);
    pump(sink.as_mut(), open, options, &|| false, &mut |_| {})
}

pub fn once() -> PumpOptions {
    PumpOptions { once: true, batch_events: 100, ..PumpOptions::default() }
}

fn events(server: &Server) -> Vec<Event> {
    server.redis_entries("s").iter().map(|(_, value)| Event::from_json(value).unwrap()).collect()
}

#[test]
fn entries_have_key_and_envelope_and_a_second_run_goes_on() {
    let server = Server::redis();
    let target = format!("redis://127.0.0.1:{}/s", server.port);
    let expected = all(500);
    assert_eq!(move_all(&target, 300, &once()).unwrap(), all(300).len() as u64);
    assert_eq!(events(&server), all(300));
    assert_eq!(move_all(&target, 500, &once()).unwrap(), (expected.len() - all(300).len()) as u64);
    assert_eq!(events(&server), expected);
    for ((key, _), event) in server.redis_entries("s").iter().zip(&expected) {
        let Event::Change(change) = event else { continue };
        assert_eq!(*key, change.key);
    }
    assert_eq!(server.redis_command(&["GET", "{s}:position"]), expected.last().unwrap().token().unwrap().to_string());
    // Without its stream the position says nothing: everything comes again.
    assert_eq!(server.redis_command(&["DEL", "s"]), ":1");
    move_all(&target, 300, &once()).unwrap();
    assert_eq!(events(&server), all(300));
}

#[test]
fn a_stream_is_trimmed() {
    let server = Server::redis();
    move_all(&format!("redis://127.0.0.1:{}/s?max_len=500", server.port), 5000, &once()).unwrap();
    let len: u64 = server.redis_command(&["XLEN", "s"])[1..].parse().unwrap();
    assert!((500..800).contains(&len), "{len}");
}

/// Moves 3000 entries to a server that is killed at some moment before the last of them, and comes back.
pub fn move_over_a_kill(server: &mut Server, target: &str) {
    let mut sink = target.parse::<Target>().unwrap().sink();
    let killed = Arc::new(AtomicBool::new(false));
    let open = |from: Option<&_>| {
        let mut script = Script::open(3000, from);
        script.slow = Some((Duration::from_millis(1), 50));
        script.not_before = Some(killed.clone());
        Ok(Box::new(script) as Box<dyn hashmere_sinks::Source>)
    };
    let failures = Cell::new(0);
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            server.kill();
            killed.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(200));
            server.start_again();
        });
        pump(sink.as_mut(), open, &once(), &|| false, &mut |_| failures.set(failures.get() + 1)).unwrap();
        killer.join().unwrap();
    });
    assert!(failures.get() > 0);
}

#[test]
fn a_server_that_is_killed_is_waited_for() {
    let mut server = Server::redis();
    let target = format!("redis://127.0.0.1:{}/s", server.port);
    move_over_a_kill(&mut server, &target);
    // An append-only file keeps what was written before the kill.
    demand_equal(&behind_last_reset(events(&server)), &all(3000));
}

#[test]
fn a_second_feeder_is_refused() {
    let server = Server::redis();
    let target = format!("redis://127.0.0.1:{}/s", server.port);
    let [mut a, mut b] = [(); 2].map(|()| target.parse::<Target>().unwrap().sink());
    assert!(a.position().unwrap().is_none() && b.position().unwrap().is_none());
    let events = all(30);
    a.send(&events[..10]).unwrap();
    a.flush().unwrap();
    b.send(&events[..10]).unwrap();
    let error = b.flush().unwrap_err();
    assert!(error.is_temporary(), "{error}");
    assert_eq!(b.position().unwrap(), hashmere_sinks::Position::behind(&events[9]));
    assert_eq!(server.redis_command(&["XLEN", "s"]), ":10");
}

#[test]
fn what_is_no_stream_and_what_needs_a_password_is_refused() {
    let server = Server::redis();
    server.redis_command(&["SET", "text", "x"]);
    let refused = |target: &str| match target.parse::<Target>().unwrap().sink().position() {
        Err(SinkError::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    let port = server.port;
    assert!(refused(&format!("redis://127.0.0.1:{port}/text")).contains("no stream"));
    server.redis_command(&["CONFIG", "SET", "requirepass", "secret"]);
    assert!(refused(&format!("redis://127.0.0.1:{port}/s")).contains("NOAUTH"));
    assert!(refused(&format!("redis://:wrong@127.0.0.1:{port}/s")).contains("WRONGPASS"));
    move_all(&format!("redis://:secret@127.0.0.1:{port}/s?db=1"), 30, &once()).unwrap();
}
