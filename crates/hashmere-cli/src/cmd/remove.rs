//! `delete`, `take`.

use super::{not_found, Outcome};
use crate::args::{Escape, WriterArgs};
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use std::ffi::OsString;

/// Delete keys.
///
/// If any of them was not there the exit status is 1 (the others are deleted all the same).
#[derive(Args, Debug)]
pub struct Delete {
    #[command(flatten)]
    store: WriterArgs,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    escape: Escape,
}

impl Delete {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let keys: Vec<Vec<u8>> = self.keys.iter().map(|k| self.escape.key(k)).collect::<Result<_, _>>()?;
        let removed = self.store.writer()?.delete_many(&keys)?;
        match keys.as_slice() {
            keys if keys.len() == removed => Ok(()),
            [key] => Err(not_found(key)),
            keys => {
                Err(Failure::NotMet(format!("deleted {removed} of {} keys, the others were not there", keys.len())))
            }
        }
    }
}

/// Print the value of a key and delete it, in one step.
///
/// Of several processes that take a key at the same time only one gets it.
#[derive(Args, Debug)]
pub struct Take {
    #[command(flatten)]
    store: WriterArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    #[command(flatten)]
    escape: Escape,
    /// Print a newline behind the value, also if standard output is no terminal
    #[arg(short, long)]
    newline: bool,
}

impl Take {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let value = self.store.writer()?.take(&key)?.ok_or_else(|| not_found(&key))?;
        let mut output = Output::new();
        output.value(&value, self.escape.escape, self.newline)?;
        output.finish()
    }
}
