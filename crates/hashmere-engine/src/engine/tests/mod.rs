//! Tests of the engine on heap memory: in one process, deterministic, and most of them under Miri as well.

mod asked;
mod audit;
mod backup;
mod backup_cases;
mod checks;
mod crash;
mod crash_calls;
mod crash_cases;
mod damaged;
mod durable_cases;
mod fairness;
mod faults;
mod full_cache;
mod history;
mod late;
mod looks;
mod maximum;
mod meanwhile;
mod medium;
#[cfg(not(miri))]
mod models;
mod ops;
mod power;
mod power_between;
mod probe;
mod quick;
mod reach;
mod refused;
mod refused_space;
mod regions;
mod stalled;
mod vain;
mod world;
