//! The log on heap memory: in one process, deterministic, and at the same time under Miri.

mod beside;
mod canaries;
mod crash;
#[cfg(not(miri))]
mod finish;
#[cfg(feature = "shuttle")]
mod models;
mod past;
#[cfg(feature = "shuttle")]
mod play;
mod world;
