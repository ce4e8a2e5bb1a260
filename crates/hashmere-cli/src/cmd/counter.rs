//! `incr`, `decr`, `ref inc`, `ref dec`.

use super::step::{Amount, CountArgs, Step};
use super::{not_found, Outcome};
use crate::args::{CreatorArgs, Escape, WriterArgs};
use crate::output::print_line;
use clap::{Args, Subcommand};
use std::ffi::OsString;

/// What `incr` and `decr` have in common.
#[derive(Args, Debug)]
pub struct CounterArgs {
    #[command(flatten)]
    store: CreatorArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    #[command(flatten)]
    kind: CountArgs,
    #[command(flatten)]
    escape: Escape,
}

impl CounterArgs {
    fn add(&self, by: Amount) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let step = self.kind.step(by)?;
        let store = self.store.open(self.kind.no_create)?;
        let now = match step {
            Step::Up(by, counter) => store.incr(&key, by, counter)?.map(|n| n.to_string()),
            Step::Down(by, counter) => store.decr(&key, by, counter)?.map(|n| n.to_string()),
            Step::Signed(by, counter) => store.incr_signed(&key, by, counter)?.map(|n| n.to_string()),
            Step::Float(by, counter) => store.incr_float(&key, by, counter)?.map(|n| n.to_string()),
        };
        now.map_or_else(|| Err(not_found(&key)), print_line)
    }
}

/// Add to a counter and print its new value.
///
/// A counter wraps at 2^64. A negative amount is subtracted, not below 0. With --signed and --float it may be below 0.
#[derive(Args, Debug)]
pub struct Incr {
    #[command(flatten)]
    counter: CounterArgs,
    /// How much
    #[arg(value_name = "BY", default_value = "1", allow_negative_numbers = true)]
    by: Amount,
}

impl Incr {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.counter.add(self.by)
    }
}

/// Subtract from a counter (not below 0, but with --signed and --float) and print its new value.
#[derive(Args, Debug)]
pub struct Decr {
    #[command(flatten)]
    counter: CounterArgs,
    /// How much
    #[arg(value_name = "BY", default_value = "1")]
    by: Amount,
}

impl Decr {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.counter.add(self.by.negative())
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

/// Add references to a key and print how many there are.
///
/// A missing key is created with them. `ref dec` gives references back.
#[derive(Args, Debug)]
struct RefInc {
    #[command(flatten)]
    store: CreatorArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    /// How many references
    #[arg(long, value_name = "N", default_value_t = 1)]
    by: u64,
    #[command(flatten)]
    escape: Escape,
}

impl RefInc {
    fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        print_line(self.store.open(false)?.inc_ref(&key, self.by)?.to_string())
    }
}

/// Give references back and print how many are left; at zero the key is deleted.
#[derive(Args, Debug)]
struct RefDec {
    #[command(flatten)]
    store: WriterArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    /// How many references
    #[arg(long, value_name = "N", default_value_t = 1)]
    by: u64,
    #[command(flatten)]
    escape: Escape,
}

impl RefDec {
    fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let left = self.store.writer()?.dec_ref(&key, self.by)?.ok_or_else(|| not_found(&key))?;
        print_line(left.to_string())
    }
}
