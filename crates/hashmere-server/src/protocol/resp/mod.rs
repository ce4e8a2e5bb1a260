//! The protocol of Redis, RESP2 and RESP3, for what a table of byte strings can do: `docs/internals/resp.md`.

mod auth;
mod client;
mod command;
mod config;
mod connection;
mod direct;
mod glob;
mod info;
mod inline;
mod keys;
pub mod notify;
mod number;
pub mod parse;
pub mod pubsub;
mod reply;
mod scan;
pub mod shared;
mod slowlog;
mod subscribe;
mod table;
mod transaction;

pub use connection::Resp;
