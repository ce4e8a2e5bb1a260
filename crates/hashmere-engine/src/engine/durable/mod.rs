//! Durable stores: [`sync`] brings what was written to the medium and says so in one word; after a power cut
//! [`log_scan`] finds the records that survived, and [`rebuild`] makes an index for them.
//! `docs/internals/durability.md` has the proof.

pub(super) mod log_scan;
pub(super) mod rebuild;
pub(super) mod sync;
