//! The log on heap memory: in one process, deterministic.

mod crash;
mod world;
