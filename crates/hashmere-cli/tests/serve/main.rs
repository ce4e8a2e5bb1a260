//! The memcached face: the server as a process, with clients of several kinds.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod admin;
mod auth;
mod binary;
mod clients;
mod differential;
mod grammar;
mod hostile;
mod killed;
mod recache;
mod support;
mod tls;
mod visible;
