//! The command as a server.

pub use hashmere_testkit::memcached::{Client, Port, Server, PATIENCE};
pub use hashmere_testkit::scratch::Scratch;
use std::process::Command;

/// A server on a free port and on a store of its own.
pub fn start(arguments: &[&str]) -> Server {
    let scratch = Scratch::new("serve");
    let mut server = start_on(&scratch, arguments);
    server.scratch = Some(scratch);
    server
}

/// A server on a free port, with its store in this folder.
pub fn start_on(scratch: &Scratch, arguments: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hashmere"));
    command.args(["serve", "-p", "-1", "-l", "127.0.0.1", "-t", "2"]).args(arguments);
    Server::spawn(command.env("HASHMERE_DIR", scratch.path().join("ns")))
}
