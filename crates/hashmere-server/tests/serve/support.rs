//! Servers of the tests.

use crate::child;
pub use hashmere_testkit::memcached::{Client, Port, Server, PATIENCE};
pub use hashmere_testkit::scratch::Scratch;

/// A server on a free port and on a store of its own.
pub fn start(options: &[&str]) -> Server {
    let scratch = Scratch::new("serve");
    let mut server = start_on(&scratch, options);
    server.scratch = Some(scratch);
    server
}

/// A server on a free port, with its store in this folder.
pub fn start_on(scratch: &Scratch, options: &[&str]) -> Server {
    Server::spawn(&mut child::command(scratch, &[&["-p", "0"], options].concat()))
}

/// The same on this port.
pub fn start_at(scratch: &Scratch, port: &Port, options: &[&str]) -> Server {
    Server::spawn(&mut child::command(scratch, &[&["-p", &port.to_string()], options].concat()))
}
