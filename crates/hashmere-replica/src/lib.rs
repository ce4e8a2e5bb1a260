//! A store that follows another one: a warm standby, a copy to read from, two sites that both write.
//!
//! [`Replicator`] copies every key of one store to another and then applies its changes; it resumes behind what it
//! applied. `docs/internals/replicas.md` has the mechanism and the argument.

#![forbid(unsafe_code)]

mod apply;
mod error;
mod file;
mod keys;
mod one_way;
mod place;
mod source;
mod status;
mod sweep;
mod two_way;

pub use error::ReplicaError;
pub use one_way::{Replicator, ORIGIN};
pub use place::{peek_status, status};
pub use source::Served;
pub use status::{ReplicaPhase, ReplicaStatus};
pub use two_way::{BadStamp, Stamp, Stamped, StampedFeed, TwoWay};
