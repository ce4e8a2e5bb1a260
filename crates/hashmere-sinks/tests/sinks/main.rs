//! Promise: a sink has every change, in order, whatever is killed. The servers are the real ones.

// The lint spares functions marked as tests, but not what they call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod dir;
mod kafka;
mod kill;
mod nats;
mod redis;
mod restore;
mod script;
mod servers;
mod tls;
