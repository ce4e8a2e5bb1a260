//! `incr`, `decr`, `ref inc`, `ref dec`.

use super::{not_found, Outcome};
use crate::args::{AttributeArgs, CreatorArgs, Escape, WriterArgs};
use crate::failure::Failure;
use crate::output::print_line;
use clap::{Args, Subcommand};
use hashmere::Counter;
use std::ffi::OsString;

/// What `incr` and `decr` have in common.
#[derive(Args, Debug)]
pub struct CounterArgs {
    #[command(flatten)]
    store: CreatorArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    /// A missing key is created with this value (default: as if it had been 0)
    #[arg(long, value_name = "N", conflicts_with = "no_create")]
    initial: Option<u64>,
    /// A missing key is left missing (exit 1), a missing store too (exit 3)
    #[arg(long)]
    no_create: bool,
    #[command(flatten)]
    attributes: AttributeArgs,
    #[command(flatten)]
    escape: Escape,
}

impl CounterArgs {
    /// Adds `by`; a missing key is created with `first`.
    fn add(&self, by: i128, first: u64) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let counter = Counter {
            initial: if self.no_create { None } else { Some(self.initial.unwrap_or(first)) },
            attributes: self.attributes.attributes(),
        };
        let store = self.store.open(self.no_create)?;
        let amount = u64::try_from(by.unsigned_abs()).map_err(|_| too_large())?;
        let new = if by < 0 { store.decr(&key, amount, counter)? } else { store.incr(&key, amount, counter)? };
        new.map_or_else(|| Err(not_found(&key)), |n| print_line(n.to_string()))
    }
}

fn too_large() -> Failure {
    Failure::Usage("BY must be below 2^64".into())
}

/// Add to a counter and print its new value.
///
/// A counter wraps at 2^64. A negative amount is subtracted, not below 0.
#[derive(Args, Debug)]
pub struct Incr {
    #[command(flatten)]
    counter: CounterArgs,
    /// How much
    #[arg(value_name = "BY", default_value_t = 1, allow_negative_numbers = true)]
    by: i128,
}

impl Incr {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let first = if self.by < 0 { 0 } else { u64::try_from(self.by).map_err(|_| too_large())? };
        self.counter.add(self.by, first)
    }
}

/// Subtract from a counter (not below 0) and print its new value.
#[derive(Args, Debug)]
pub struct Decr {
    #[command(flatten)]
    counter: CounterArgs,
    /// How much
    #[arg(value_name = "BY", default_value_t = 1)]
    by: u64,
}

impl Decr {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.counter.add(-i128::from(self.by), 0)
    }
}

/// Count references to a key.
#[derive(Args, Debug)]
pub struct RefOf {
    #[command(subcommand)]
    command: RefCommand,
}

#[derive(Subcommand, Debug)]
enum RefCommand {
    Inc(RefInc),
    Dec(RefDec),
}

impl RefOf {
    /// Runs it.
    pub fn run(self) -> Outcome {
        match self.command {
            RefCommand::Inc(c) => c.run(),
            RefCommand::Dec(c) => c.run(),
        }
    }
}

/// Add a reference to a key and print the number of references.
///
/// The key is created with 1 reference. `ref dec` gives a reference back.
#[derive(Args, Debug)]
struct RefInc {
    #[command(flatten)]
    store: CreatorArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    #[command(flatten)]
    escape: Escape,
}

impl RefInc {
    fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        print_line(self.store.open(false)?.inc_ref(&key)?.to_string())
    }
}

/// Give a reference back and print how many are left; at zero the key is deleted.
#[derive(Args, Debug)]
struct RefDec {
    #[command(flatten)]
    store: WriterArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    #[command(flatten)]
    escape: Escape,
}

impl RefDec {
    fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let left = self.store.writer()?.dec_ref(&key)?.ok_or_else(|| not_found(&key))?;
        print_line(left.to_string())
    }
}
