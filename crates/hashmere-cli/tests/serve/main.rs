//! The memcached face: the server as a process, with clients of several kinds.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod differential;
mod grammar;
mod support;
