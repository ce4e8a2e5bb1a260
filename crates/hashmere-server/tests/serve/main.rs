//! The server as a process, with clients of several kinds.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod admin;
mod all_protocols;
mod around;
mod auth;
mod binary;
mod child;
mod clients;
mod counts;
mod differential;
mod event_loops;
mod exact;
mod feed;
mod grammar;
mod hostile;
mod http;
mod killed;
mod leases;
mod mixed;
mod ports;
mod recache;
mod resp;
mod resp_atomic;
mod resp_differential;
mod resp_grammar;
mod resp_pubsub;
mod room;
mod support;
mod tls;
mod user;
mod visible;
mod watch;
