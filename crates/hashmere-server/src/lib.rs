//! The memcached protocol on a live Hashmere store: classic text, meta and binary, over TCP and Unix sockets.
//!
//! A key that a client sets over the socket is the same key that local processes read from the mapped file: versions are CAS
//! ids, flags and expiry are the store's, counters are its counters.
//!
//! Layers: [`protocol`] parses and writes bytes and knows nothing else; [`command`] performs requests on a store; `net`
//! moves bytes between sockets and sessions. `docs/internals/protocol.md` describes the mechanism, its bounds, and every difference
//! from memcached.
//!
//! *It is not* a cluster: clients spread keys over several servers, as they do with memcached.

#![forbid(unsafe_code)]

#[path = "access_times.rs"]
mod access;
mod auth;
#[path = "session.rs"]
pub mod command;
mod config;
mod flushed;
mod metrics;
mod net;
mod outbox;
mod peers;
pub mod protocol;
mod server;
mod stats;
mod tls;
mod watch;

pub use config::{Config, Dialects, TlsFiles};
pub use net::serve;
pub use outbox::Outbox;
pub use server::Server;
pub use stats::counters::Counters;
