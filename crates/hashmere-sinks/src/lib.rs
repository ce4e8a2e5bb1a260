//! Where a change feed goes: engines that others consume from, and a folder that restores any moment.
//!
//! A [`Sink`] keeps the consumer's [`Position`] where the data are, in the same step as the data. So what resumes after
//! a kill is what the sink has. [`pump()`] moves events from a [`Source`] to a sink in batches, reconnects, and never
//! skips; while the sink is away it does not read on.
//!
//! NATS, Redis and Kafka are spoken to directly (`nats/wire.rs`, `redis/resp.rs`, `kafka/wire.rs`), for what is needed
//! of them is small.
//! Measured on two processors, debug build with an empty target folder: `async-nats` is 63 more crates and 109 seconds
//! of processor time, `redis` 35 and 33, each once more for clippy and for a release. Both would have been used below
//! their interface, too: one write for a batch, WATCH behind EXEC, expected sequences for messages under way.

#![forbid(unsafe_code)]

mod dir;
mod kafka;
mod nats;
mod net;
mod pump;
mod redis;
mod restore;
mod sink;
mod source;
mod target;

pub use dir::{read_dir, DirEvents, DirSink, DirSync};
pub use kafka::{KafkaOptions, KafkaSink};
pub use nats::{NatsKind, NatsOptions, NatsSink};
pub use pump::{pump, PumpError, PumpOptions};
pub use redis::{RedisOptions, RedisSink};
pub use restore::{restore, RestoreError, RestoreOptions, RestoreReport};
pub use sink::{Position, Sink, SinkError};
pub use source::{Source, SourceError};
pub use target::{BadTarget, Target};
