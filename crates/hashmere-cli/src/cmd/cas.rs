//! `cas`.

use super::Outcome;
use crate::args::{AttributeArgs, CreatorArgs, Escape};
use crate::failure::Failure;
use crate::output::Output;
use clap::{ArgGroup, Args};
use hashmere::{CasOutcome, Change, Expected, Version};
use std::ffi::OsString;

/// Change or remove a key only if it is as expected.
///
/// Otherwise the exit status is 1. The version of a key is printed by `get --json`, and by `set --json` and
/// `cas --json` when they store it.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("expected").required(true))]
pub struct Cas {
    #[command(flatten)]
    store: CreatorArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    /// The new value; `-` or missing: standard input
    #[arg(value_name = "NEW", allow_negative_numbers = true, conflicts_with = "remove")]
    new: Option<OsString>,
    /// Expect the key at this version; 0: expect that there is none, in a store that is there
    #[arg(long, value_name = "N", group = "expected")]
    version: Option<u64>,
    /// Expect the key with this value
    #[arg(long, value_name = "VALUE", group = "expected", allow_hyphen_values = true)]
    value: Option<OsString>,
    /// Expect that there is no such key (creates the store if it is missing)
    #[arg(long, group = "expected")]
    absent: bool,
    /// Remove the key instead of storing a value
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    attributes: AttributeArgs,
    #[command(flatten)]
    escape: Escape,
    /// Print a line of JSON with the new version, the UID, and whether the key was created
    #[arg(short, long)]
    json: bool,
}

impl Cas {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let old = self.value.as_ref().map(|value| self.escape.bytes("--value", value)).transpose()?;
        let expected = match (self.version, &old) {
            (Some(version), _) => Expected::Version(Version(version)),
            (None, Some(value)) => Expected::Value(value),
            (None, None) => Expected::Absent,
        };
        let new = if self.remove { Vec::new() } else { self.escape.value(self.new.as_ref())? };
        let change = if self.remove { Change::Remove } else { Change::SetWith(&new, self.attributes.attributes()) };
        let store = self.store.open(!self.absent || self.remove)?;
        match store.cas(&key, expected, change)? {
            CasOutcome::Stored(stored) if self.json => {
                let mut output = Output::new();
                output.stored(&stored)?;
                output.finish()
            }
            CasOutcome::Stored(_) | CasOutcome::Removed => Ok(()),
            CasOutcome::Mismatch(now) => Err(Failure::NotMet(format!(
                "key `{}` is not as expected; its version is {}",
                super::shown(&key),
                now.0
            ))),
            CasOutcome::Absent => Err(super::not_found(&key)),
        }
    }
}
