//! Models: small scenarios of a few clients, run under a scheduler that lets them change places before every access.
//!
//! The engine is the real one, on [`hashmere_mem::ShuttleMem`]. Each scenario is run some hundreds of times under two
//! schedulers: one that chooses at random, in bursts of one step to some hundred, and one (PCT) by priorities, which
//! interrupts two times and finds those races for which one thread has to stop for long. Memory is sequentially
//! consistent here: what is explored is interleavings, not orderings.
//!
//! Every scenario has seeded faults: faults of the engine that it must find. See [`crate::fault`].

mod backup;
mod clear;
mod emptied;
mod explore;
mod feed;
mod insert;
mod lock;
mod pin;
mod recycle;
mod split;
mod stage;
mod takeover;
mod transact;
