//! The C interface: `include/hashmere.h`, `hashmere_transaction.h`, `hashmere_queue.h`, `hashmere_log.h` and
//! `hashmere_feed.h` are its documentation and its contract.
//!
//! Each function of the header is an `export!` in one of the modules below, named as the groups of the header are (and
//! those that name a key are two, from one `export_by_key!`). The macro makes it `extern "C"`, turns the raw arguments
//! into Rust's own types (`args`), keeps panics inside, and writes the error text (`failure`). So nothing outside
//! `args`, `arrays`, `key`, `export`, `failure`, `handle` and the structures that a caller provides room for (`view`,
//! `reserve`, `scan`) or hold for the caller (`queue`, `waiting`, `locks`, `atomics`, `transaction`, `write_batch`,
//! `log`, `log_drain`, `feed`) is unsafe.
//!
//! The structures in `abi`, `log_abi` and `feed_abi` are those of the headers, field by field; `tests/header` and the
//! committed `abi/layout.txt` hold them to it.

// The header says, once, what a caller has to keep to.
#![allow(clippy::missing_safety_doc)]

#[macro_use]
mod export;

pub mod abi;
mod args;
mod arrays;
mod failure;
mod handle;
pub mod result;

pub mod atomics;
pub mod batch;
pub mod bulk;
pub mod conditions;
pub mod counters;
pub mod dump;
pub mod expiry;
pub mod feed;
pub mod feed_abi;
pub mod key;
pub mod locks;
pub mod log;
pub mod log_abi;
pub mod log_drain;
mod log_loop;
pub mod opening;
pub mod queue;
pub mod reading;
pub mod reserve;
pub mod scanning;
pub mod store;
pub mod transaction;
pub mod view;
pub mod waiting;
pub mod write_batch;
pub mod writing;
