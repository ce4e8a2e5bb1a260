//! A session on a small store, without a socket: what the tests of pieces and the fuzzers drive.

use hashmere::{Mode, Options};
use hashmere_server::protocol::Next;
use hashmere_server::{Config, HttpOptions, Outbox, Protocol, Server, Session, Turn};
use std::path::PathBuf;

/// Times that a session may ask for room for one piece of input before it counts as caught in a loop.
const ROUNDS_MAX: u32 = 10_000;

/// A server on a small cache at this path, which goes with it. Values stay short; versions, which two runs do not
/// share, are not shown. Accesses are noted from the start: otherwise the first request for such a time would change
/// what later ones say.
pub fn server(path: PathBuf) -> Server {
    // What a process of the same number left that was killed.
    let _ = std::fs::remove_file(&path);
    let options = Options::new().mode(Mode::Cache).segment_bytes(8192).max_bytes(4 << 20).remove_on_last_close(true);
    let http = HttpOptions { write: true, ..HttpOptions::default() };
    let config = Config { item_max: 4096, threads: 1, cas: false, access_times: true, http, ..Config::default() };
    Server::new(options.open(path).expect("a store"), config).expect("a server")
}

/// Feeds input, cut as `cut` says, to a session on an empty store; returns all replies.
///
/// # Panics
/// If the session consumes more than it was given, or loops.
pub fn converse(server: &Server, protocol: Protocol, input: &[u8], mut cut: impl FnMut() -> usize) -> Vec<u8> {
    server.store.clear().expect("an empty store");
    let mut session = Session::new(server, protocol);
    let (mut have, mut replies, mut at) = (Vec::new(), Vec::new(), 0);
    while at < input.len() {
        let end = at.saturating_add(cut().max(1)).min(input.len());
        have.extend_from_slice(&input[at..end]);
        at = end;
        for round in 0.. {
            assert!(round < ROUNDS_MAX, "the session loops");
            let (consumed, next) = step(server, &mut session, &have, &mut replies);
            assert!(consumed <= have.len(), "more was consumed than given");
            have.drain(..consumed);
            match next {
                Next::Output => {}
                Next::Input(_) => break,
                Next::Close => return replies,
            }
        }
    }
    replies
}

/// Feeds a session once, and takes its replies.
pub fn step(server: &Server, session: &mut Session, input: &[u8], replies: &mut Vec<u8>) -> (usize, Next) {
    let mut out = Outbox::default();
    let counters = &server.counters[0];
    let mut turn = Turn { server, counters, out: &mut out, now: 1 << 30, worker: 0, connection: 0 };
    let done = session.feed(&mut turn, input);
    while let Some(bytes) = out.single().filter(|bytes| !bytes.is_empty()) {
        replies.extend_from_slice(bytes);
        let sent = bytes.len();
        out.advance(sent);
    }
    done
}
