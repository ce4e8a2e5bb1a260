//! The same bytes to a session, whole and in pieces: both get the same replies.

#[path = "../../crates/hashmere-server/tests/session/mod.rs"]
mod session;

use hashmere_server::{Protocol, Server};
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let path = || std::env::temp_dir().join(format!("hashmere-fuzz-{}.mere", std::process::id()));
    SERVER.get_or_init(|| session::server(path()))
}

/// Whether it asks for what differs between two runs: times, versions, counters, of which the binary protocol also says
/// how many digits they have (its `stat` is 0x10).
fn differs(input: &[u8]) -> bool {
    let asks = [&b"stats"[..], b"metrics", b"flush_all", b"dump", b"me ", b"\x80\x10"];
    asks.iter().any(|word| input.windows(word.len()).any(|window| window == *word))
}

/// One run of the fuzzer.
pub fn run(protocol: Protocol, input: &[u8]) {
    // They would change the server for all runs that follow.
    let lasting = [&b"shutdown"[..], b"cache_memlimit"];
    if lasting.iter().any(|word| input.windows(word.len()).any(|window| window == *word)) {
        return;
    }
    let server = server();
    let whole = session::converse(server, protocol, input, || usize::MAX);
    let pieces = session::converse(server, protocol, input, || 7);
    // Times that are left differ by the second that may pass.
    let plain = |replies: Vec<u8>| replies.into_iter().filter(|byte| !byte.is_ascii_digit()).collect::<Vec<u8>>();
    assert!(differs(input) || plain(whole) == plain(pieces));
}
