//! The log on heap memory: in one process, deterministic, and at the same time under Miri.

mod beside;
mod canaries;
mod crash;
mod damaged;
#[cfg(not(miri))]
mod ending;
#[cfg(not(miri))]
mod finish;
#[cfg(not(miri))]
mod models;
mod past;
#[cfg(not(miri))]
mod play;
mod world;
