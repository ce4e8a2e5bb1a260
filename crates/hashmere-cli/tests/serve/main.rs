//! `hashmere serve`: its options, and how it is started. What it answers is tested in `hashmere-server`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod follow;
mod partition;
mod service;
mod site;
mod start;
mod support;
mod two_way;
