//! The same bytes to a session, whole and in pieces: both get the same replies.

#[path = "../../crates/hashmere-server/tests/session/mod.rs"]
mod session;

use hashmere_server::{Dialects, Server};
use std::sync::OnceLock;

fn server(dialects: Dialects) -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let path = || std::env::temp_dir().join(format!("hashmere-fuzz-{}.mere", std::process::id()));
    SERVER.get_or_init(|| session::server(dialects, path()))
}

/// One run of the fuzzer.
pub fn run(dialects: Dialects, input: &[u8]) {
    // What tells the time, the process or a version differs between two runs.
    let tells = [&b"stats"[..], b"flush_all", b"shutdown", b"cache_memlimit", b"dump", b"me "];
    if tells.iter().any(|word| input.windows(word.len()).any(|window| window == *word)) {
        return;
    }
    let server = server(dialects);
    let whole = session::converse(server, input, || usize::MAX);
    let pieces = session::converse(server, input, || 7);
    // Times that are left differ by the second that may pass.
    let plain = |replies: Vec<u8>| replies.into_iter().filter(|byte| !byte.is_ascii_digit()).collect::<Vec<u8>>();
    assert!(plain(whole) == plain(pieces));
}
