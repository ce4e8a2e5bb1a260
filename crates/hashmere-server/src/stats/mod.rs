//! Numbers about the server, under the names that memcached gives them.

pub mod counters;
pub mod detail;
mod feeds;
mod general;
mod kinds;
mod settings;

use crate::server::Server;

/// Takes one name and its value.
pub type Sink<'a> = dyn FnMut(&str, &str) + 'a;

/// The reply to `version`: the memcached whose protocol this server speaks, then its own. (Clients parse the first
/// number.)
pub const VERSION: &str = concat!("1.6.45-hashmere-", env!("CARGO_PKG_VERSION"));

/// The result of a request for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The values were given; an end is to follow.
    Done,
    /// The counters were reset.
    Reset,
    /// A switch was turned.
    Switched,
    /// There is no such group.
    Unknown,
}

/// Gives the statistics of a group (empty: the general ones).
pub fn group(server: &Server, name: &[u8], argument: Option<&[u8]>, sink: &mut Sink<'_>) -> Answer {
    match name {
        b"" => general::general(server, sink),
        b"settings" => settings::settings(server, sink),
        b"items" => kinds::items(server, sink),
        b"slabs" => kinds::slabs(server, sink),
        b"sizes" => sink("sizes_status", "disabled"),
        b"conns" => kinds::connections(server, sink),
        b"hashmere" => {
            general::hashmere(server, sink);
            feeds::feed(server, sink);
            feeds::replica(server, sink);
        }
        b"extstore" | b"proxy" | b"proxyfuncs" | b"proxybe" => {}
        b"reset" => {
            server.reset_counters();
            return Answer::Reset;
        }
        b"detail" => match argument {
            Some(switch @ (b"on" | b"off")) => {
                server.detail.switch(switch == b"on");
                return Answer::Switched;
            }
            Some(b"dump") => sink("detailed", &String::from_utf8_lossy(&server.detail.dump())),
            _ => return Answer::Unknown,
        },
        _ => return Answer::Unknown,
    }
    Answer::Done
}

/// Gives a number.
fn put(sink: &mut Sink<'_>, name: &str, value: u64) {
    sink(name, itoa::Buffer::new().format(value));
}
