//! The C interface: `include/hashmere.h`, `hashmere_queue.h` and `hashmere_log.h` are its documentation and its contract.
//!
//! Each function of the header is an `entry!` in one of the modules below, named as the groups of the header are. The macro
//! makes it `extern "C"`, turns the raw arguments into Rust's own types (`arg`), keeps panics inside, and writes the error
//! text (`failure`). So nothing outside `arg`, `several`, `entry`, `failure`, `handle` and the structures that a caller provides
//! room for (`view`, `reserve`, `scan`) or hold for the caller (`queue`, `waiting`, `log`, `log_drain`) is unsafe.
//!
//! The structures in `abi` and `log_abi` are those of the headers, field by field; `tests/header.rs` and the committed `abi.txt` hold them to
//! it.

// The header says, once, what a caller has to keep to.
#![allow(clippy::missing_safety_doc)]

#[macro_use]
mod entry;

pub mod abi;
mod arg;
mod failure;
mod handle;
pub mod result;
mod several;

pub mod attributes;
pub mod batch;
pub mod bulk;
pub mod conditions;
pub mod counters;
pub mod hashed;
pub mod key;
pub mod log;
pub mod log_abi;
pub mod log_drain;
mod log_loop;
pub mod numbers;
pub mod opening;
pub mod queue;
pub mod reading;
pub mod reserve;
pub mod scanning;
pub mod view;
pub mod waiting;
pub mod whole;
pub mod writing;
