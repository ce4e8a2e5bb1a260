//! Tests of the engine on heap memory: in one process, deterministic, and most of them under Miri as well.

mod audit;
mod backup;
mod backup_cases;
#[cfg(not(miri))]
mod changing;
mod checks;
mod crash;
mod crash_calls;
mod crash_cases;
mod crash_feed;
mod crash_transact;
mod damaged;
mod disk;
mod durable_cases;
mod exhaustive;
mod fairness;
mod faults;
mod feed;
mod fixture;
mod full_cache;
mod history;
mod in_place;
mod interleaving;
mod looks;
mod maximum;
mod miri_subset;
#[cfg(not(miri))]
mod models;
mod ops;
mod power;
mod power_between;
mod power_transact;
mod probe;
mod reach;
mod refused;
mod refused_space;
mod regions;
mod sampling;
mod stalled;
mod stalled_transact;
mod store_reordering;
mod transact;
mod vain;
mod version_floor;
