//! The memcached face: the server as a process, with clients of several kinds.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod admin;
mod around;
mod auth;
mod binary;
mod clients;
mod counts;
mod differential;
mod exact;
mod grammar;
mod hostile;
mod killed;
mod mixed;
mod recache;
mod room;
mod service;
mod start;
mod support;
mod tls;
mod visible;
mod watch;
