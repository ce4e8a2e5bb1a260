//! Queues on heap memory: in one process, deterministic, most of them under Miri as well.

mod canaries;
mod crash;
#[cfg(feature = "shuttle")]
mod models;
mod moves;
mod world;
