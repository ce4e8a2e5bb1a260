//! A session on a small store, fed whole and in pieces.

use hashmere::{Mode, Options, Store};
use hashmere_server::command::{Context, Next, Session};
use hashmere_server::{Config, Dialects, Outbox, Server};
use std::sync::OnceLock;

fn server(dialects: Dialects) -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("hashmere-fuzz-{}.mere", std::process::id()));
        let store: Store = Options::new()
            .mode(Mode::Cache)
            .segment_bytes(8192)
            .max_bytes(4 << 20)
            .delete_on_last_exit()
            .open(path)
            .expect("a store");
        // Values stay short; versions, which two runs do not share, are not shown.
        let config = Config { dialects, item_max: 4096, threads: 1, cas: false, ..Config::default() };
        Server::new(store, config).expect("a server")
    })
}

/// Feeds everything, `step` bytes at a time, and returns all replies.
fn converse(server: &Server, input: &[u8], step: usize) -> Vec<u8> {
    server.store.clear().expect("an empty store");
    let mut session = Session::new(server);
    let (mut have, mut replies) = (Vec::new(), Vec::new());
    for piece in input.chunks(step) {
        have.extend_from_slice(piece);
        loop {
            let mut out = Outbox::default();
            let mut cx = Context { server, counters: &server.counters[0], out: &mut out, now: 1_000_000_000 };
            let (eaten, next) = session.feed(&mut cx, &have);
            assert!(eaten <= have.len());
            have.drain(..eaten);
            while let Some(bytes) = out.single().filter(|bytes| !bytes.is_empty()) {
                replies.extend_from_slice(bytes);
                let sent = bytes.len();
                out.advance(sent);
            }
            match next {
                Next::Output => {}
                Next::Input(_) => break,
                Next::Close => return replies,
            }
        }
    }
    replies
}

/// One run of the fuzzer.
pub fn run(dialects: Dialects, input: &[u8]) {
    // What tells the time, the process or a version differs between two runs.
    let tells = [&b"stats"[..], b"flush_all", b"shutdown", b"cache_memlimit", b"dump", b"me "];
    if tells.iter().any(|word| input.windows(word.len()).any(|window| window == *word)) {
        return;
    }
    let server = server(dialects);
    let whole = converse(server, input, input.len().max(1));
    let pieces = converse(server, input, 7);
    // Times that are left differ by the second that may pass.
    let plain = |replies: Vec<u8>| replies.into_iter().filter(|byte| !byte.is_ascii_digit()).collect::<Vec<u8>>();
    assert!(plain(whole) == plain(pieces));
}
