//! TLS to Redis and NATS: every event comes, over a death of the server too, and a server or client with another
//! certificate is refused.

use crate::redis::{move_all, once};
use crate::script::{all, is_repetition};
use crate::servers::Server;
use hashmere_sinks::PumpError;

fn refused(target: &str) -> String {
    match move_all(target, 10, &once()) {
        Err(PumpError::Sink(error)) => error.to_string(),
        other => panic!("{target}: {other:?}"),
    }
}

/// `expected`: messages of this many entries; `count`: those that are there.
fn through_tls(mut server: Server, scheme: &str, expected: impl Fn(u64) -> usize, count: impl Fn(&Server) -> usize) {
    let address = format!("{scheme}://localhost:{}/s", server.tls_port.unwrap());
    let words = |ca: &str, who: &str| {
        let file = |name: String| server.file(&name);
        let (chain, key) = (file(format!("{who}.pem")), file(format!("{who}.key")));
        format!("{address}?ca={}&cert={chain}&key={key}", file(format!("{ca}.pem")))
    };
    let right = words("server", "client");
    assert!(refused(&words("other", "client")).contains("certificate"));
    assert!(refused(&right.replace("localhost:", "127.0.0.1:")).contains("certificate"));
    assert!(refused(&format!("{address}?ca={}", server.file("none"))).contains("none"));
    assert_eq!(count(&server), 0);
    assert_eq!(move_all(&right, 300, &once()).unwrap(), all(300).len() as u64);
    assert_eq!(count(&server), expected(300));
    server.kill();
    server.start_again();
    move_all(&right, 500, &once()).unwrap();
    assert_eq!(count(&server), expected(500));
}

#[test]
fn redis_through_tls() {
    let Some(server) = Server::with_tls("redis-server") else { return };
    through_tls(server, "rediss", |entries| all(entries).len(), |server| server.redis_entries("s").len());
}

#[test]
fn nats_through_tls() {
    let Some(server) = Server::with_tls("nats-server") else { return };
    // It drops repetitions.
    let expected = |entries| all(entries).iter().filter(|event| !is_repetition(event)).count();
    through_tls(server, "tls", expected, |server| {
        match server.nats_ask("$JS.API.STREAM.INFO.s", &serde_json::Value::Null) {
            info if info["error"].is_null() => info["state"]["messages"].as_u64().unwrap() as usize,
            _ => 0,
        }
    });
}
