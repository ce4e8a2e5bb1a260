//! Runs the real `hashmere` binary, each test in a namespace folder of its own.

// The lint spares functions marked as tests, but not what they call.
#![allow(clippy::unwrap_used, clippy::panic)]

mod admin;
mod backup;
mod basic;
mod batch;
mod bench;
mod conditions;
mod feed;
mod listing;
mod log;
mod metrics;
mod observe;
mod queue;
mod records;
mod replicate;
mod support;
