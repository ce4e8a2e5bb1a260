//! The protocols of memcached (classic text, meta and binary) and Redis, and HTTP, on a live Hashmere store, over TCP
//! and Unix sockets.
//!
//! A key that a client sets over the socket is the same key that local processes read from the mapped file: versions
//! are CAS ids, flags and expiry are the store's, counters are its counters.
//!
//! Layers: [`net`](serve) moves bytes between sockets and sessions; a [`Session`] passes them to one of the protocols;
//! [`protocol`] parses requests, performs them through `commands`, and writes the replies. `docs/internals/protocol.md`
//! describes the mechanism, its bounds, and every difference from memcached; `docs/internals/http.md` has HTTP.
//!
//! *It is not* a cluster: clients spread keys over several servers, as they do with memcached.

#![forbid(unsafe_code)]

mod access_times;
mod asked;
mod auth;
mod commands;
mod config;
mod feed_stream;
mod flushed;
mod hot;
pub mod metrics;
mod net;
mod outbox;
mod peers;
pub mod protocol;
mod server;
mod session;
mod stats;
mod tls;
mod turn;
mod watch;

pub use config::{Address, Config, Endpoint, EventLoop, HttpOptions, Protocol, TlsFiles};
pub use net::serve;
pub use outbox::Outbox;
pub use server::Server;
pub use session::Session;
pub use stats::counters::Counters;
pub use turn::Turn;
