//! Streams and buckets of NATS JetStream.

use crate::kill::{behind_last_reset, demand_equal};
use crate::redis::{move_all, move_over_a_kill, once};
use crate::script::{all, is_repetition, key};
use crate::servers::Server;
use hashmere_feed::{Event, ResetReason};
use hashmere_sinks::{Position, PumpError, SinkError, Target};
use std::collections::BTreeMap;

fn events(server: &Server) -> Vec<Event> {
    server.nats_messages("S").iter().map(|(_, _, payload)| Event::from_json(payload).unwrap()).collect()
}

fn expected(entries: u64) -> Vec<Event> {
    all(entries).into_iter().filter(|event| !is_repetition(event)).collect()
}

#[test]
fn messages_have_subject_id_and_envelope_and_a_second_run_goes_on() {
    let server = Server::nats();
    let target = format!("nats://127.0.0.1:{}/S", server.port);
    assert_eq!(move_all(&target, 300, &once()).unwrap(), all(300).len() as u64);
    assert_eq!(events(&server), expected(300));
    move_all(&target, 500, &once()).unwrap();
    assert_eq!(events(&server), expected(500));
    let messages = server.nats_messages("S");
    assert_eq!(messages[0].0, "S._feed");
    for ((subject, headers, _), event) in messages.iter().zip(expected(500)) {
        let Event::Change(change) = event else { continue };
        let prefix = std::str::from_utf8(&change.key[..5]).unwrap();
        assert_eq!(*subject, format!("S.{prefix}"));
        assert!(headers.contains(&format!("Hashmere-Position: {}", change.token)), "{headers}");
    }
}

#[test]
fn a_server_that_is_killed_is_waited_for() {
    let mut server = Server::nats();
    let target = format!("nats://127.0.0.1:{}/S", server.port);
    move_over_a_kill(&mut server, &target);
    demand_equal(&behind_last_reset(events(&server)), &expected(3000));
}

#[test]
fn a_second_feeder_is_refused() {
    let server = Server::nats();
    let target = format!("nats://127.0.0.1:{}/S", server.port);
    let [mut a, mut b] = [(); 2].map(|()| target.parse::<Target>().unwrap().sink());
    assert!(a.position().unwrap().is_none() && b.position().unwrap().is_none());
    let events = all(30);
    a.send(&events[..10]).unwrap();
    a.flush().unwrap();
    b.send(&events[..10]).unwrap();
    assert!(b.flush().unwrap_err().is_temporary());
    assert_eq!(b.position().unwrap(), Position::behind(&events[9]));
    assert_eq!(server.nats_messages("S").len(), 10);
}

#[test]
fn an_event_that_the_server_does_not_take_ends_it() {
    let server = Server::nats();
    server.nats_ask(
        "$JS.API.STREAM.CREATE.S",
        &serde_json::json!({"name": "S", "subjects": ["S.>"], "max_msg_size": 100}),
    );
    match move_all(&format!("nats://127.0.0.1:{}/S", server.port), 30, &once()) {
        Err(PumpError::Sink(SinkError::Refused(text))) => assert!(text.contains("10054"), "{text}"),
        other => panic!("{other:?}"),
    }
}

/// Keys of the bucket as the server has them.
fn bucket(server: &Server) -> BTreeMap<String, Vec<u8>> {
    let all = server.nats_messages("KV_B").into_iter();
    let live = all.filter(|(_, headers, _)| !headers.contains("KV-Operation"));
    let keys = live.map(|(subject, _, payload)| (subject["$KV.B.".len()..].to_owned(), payload));
    keys.filter(|(key, _)| key != "_feed").collect()
}

#[test]
fn a_bucket_is_a_copy() {
    let server = Server::nats();
    let target = format!("nats-kv://127.0.0.1:{}/B", server.port);
    move_all(&target, 500, &once()).unwrap();
    let mut model = BTreeMap::new();
    for event in all(500) {
        let (Event::Change(change) | Event::Read(change)) = event else { continue };
        match change.value.bytes() {
            _ if change.operation.removes() => drop(model.remove(&change.key)),
            Some(value) if change.operation.name() != "touch" => drop(model.insert(change.key, value.to_vec())),
            _ => {}
        }
    }
    let found = bucket(&server);
    assert_eq!(found.len(), model.len());
    let is_text = |n: u64| n % 7 != 6;
    for n in (0..50).filter(|n| is_text(*n)) {
        let name = format!("kind{}.{n}", n % 3);
        assert_eq!(found.get(&name), model.get(&key(n)), "{name}");
    }

    // A reset: what is not read is gone. A clear: everything is.
    let mut sink = target.parse::<Target>().unwrap().sink();
    assert_eq!(sink.position().unwrap(), Position::behind(all(500).last().unwrap()));
    let copy = all(0);
    assert!(matches!(copy[0], Event::Reset { reason: ResetReason::Asked }));
    sink.send(&copy).unwrap();
    sink.flush().unwrap();
    assert_eq!(bucket(&server).len(), copy.len() - 2);
    sink.send(&[Event::Clear { ts_ms: 1, token: crate::script::token(1, None) }]).unwrap();
    sink.flush().unwrap();
    assert_eq!(bucket(&server).len(), 0);
    assert_eq!(sink.position().unwrap(), Some(crate::script::token(1, None).into()));
}
