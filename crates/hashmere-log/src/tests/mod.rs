//! The log on heap memory: in one process, deterministic, and at the same time under Miri.

mod beside;
mod crash;
mod damaged;
#[cfg(not(miri))]
mod ending;
mod faults;
#[cfg(not(miri))]
mod finish;
mod fixture;
mod loss;
#[cfg(not(miri))]
mod models;
#[cfg(not(miri))]
mod play;
