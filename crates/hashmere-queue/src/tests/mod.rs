//! Queues on heap memory: in one process, deterministic, most of them under Miri as well.

mod changing;
mod crash;
mod faults;
mod fixture;
#[cfg(not(miri))]
mod models;
mod transfer;
