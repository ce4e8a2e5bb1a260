//! The subcommands, one group a file.

pub mod admin;
pub mod backup;
pub mod batch;
pub mod big;
pub mod cas;
pub mod check;
pub mod counter;
pub mod dump;
pub mod expiry;
pub mod feed;
pub mod generate;
pub mod hot;
pub mod info;
pub mod latency;
pub mod load;
pub mod log;
pub mod metrics;
pub mod queue;
pub mod read;
pub mod remove;
pub mod replicate;
pub mod restore;
pub mod scan;
pub mod stats;
mod step;
pub mod uid;
pub mod wait;
pub mod write;

use crate::failure::Failure;

/// What a command comes to.
pub type Outcome = Result<(), Failure>;

/// The failure for a key that is not there.
pub fn not_found(key: &[u8]) -> Failure {
    Failure::NotMet(format!("no key `{}`", shown(key)))
}

/// The failure for a key that is there and should not be.
pub fn present(key: &[u8]) -> Failure {
    Failure::NotMet(format!("key `{}` is there already", shown(key)))
}

/// A key in a message: escaped, and cut if it is very long.
pub fn shown(key: &[u8]) -> String {
    const MOST: usize = 100;
    match key.get(..MOST) {
        Some(head) if key.len() > MOST => format!("{}... ({} bytes)", crate::text::escaped(head), key.len()),
        _ => crate::text::escaped(key),
    }
}
