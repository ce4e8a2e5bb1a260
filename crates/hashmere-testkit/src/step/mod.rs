//! Death at every machine instruction: one operation of the built program is single-stepped by ptrace and killed behind
//! its k-th instruction, for every k; then other processes must find everything acknowledged, and nothing torn.
//!
//! Crash enumeration on heap memory cuts an operation off at its stores as the source has them; this cuts off what the
//! compiler made of it, on a real mapping, with the kernel dropping the locks of a process that really died. Operations
//! on keys are in `scenario`, those on queues in `queues`.

mod beside;
mod followed;
mod hold;
mod image;
mod judge;
mod queues;
mod route;
mod run;
mod scenario;
mod trace;
mod verify;
mod walk;
mod worker;

pub use hold::{hold, Held};
pub use queues::{run_queue, QueueScenario, QUEUE_SCENARIOS};
pub use run::{run, Counts, Effort};
pub use scenario::{Scenario, HELD, SCENARIOS};
pub use trace::is_allowed;
pub use worker::{work, work_queue};
