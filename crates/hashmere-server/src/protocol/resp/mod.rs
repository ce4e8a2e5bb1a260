//! The protocol of Redis, RESP2 and RESP3, for what a table of byte strings can do: `docs/internals/resp.md`.

mod about;
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
mod lock;
mod lookup;
pub mod notify;
mod number;
pub mod parse;
pub mod pubsub;
mod reply;
mod run;
mod scan;
pub mod shared;
mod slow;
mod slowlog;
mod state;
mod subscribe;
mod table;
mod transaction;

pub use connection::Resp;
