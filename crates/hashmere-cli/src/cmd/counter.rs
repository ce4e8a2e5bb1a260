//! `incr`, `decr`, `ref inc`, `ref dec`.

use super::{not_found, Outcome};
use crate::args::{AttributeArgs, CreatorArgs, Escape, WriterArgs};
use crate::failure::Failure;
use crate::output::print_line;
use clap::{Args, Subcommand};
use hashmere::Counter;
use std::ffi::OsString;
use std::str::FromStr;

/// How far, and from where: a whole number or a decimal fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Amount {
    Whole(i128),
    Fraction(f64),
}

impl FromStr for Amount {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Amount, &'static str> {
        if let Ok(whole) = text.parse() {
            return Ok(Amount::Whole(whole));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Amount::Fraction(number)),
            _ => Err("it is no number"),
        }
    }
}

impl Amount {
    fn negative(self) -> Amount {
        match self {
            // Of numbers that are within a kind's range none is so small.
            Amount::Whole(whole) => Amount::Whole(whole.saturating_neg()),
            Amount::Fraction(number) => Amount::Fraction(-number),
        }
    }

    fn whole<N: TryFrom<i128>>(self, name: &str, kind: &str) -> Result<N, Failure> {
        match self {
            Amount::Whole(whole) => N::try_from(whole).map_err(|_| Failure::Usage(format!("{name} must be {kind}"))),
            Amount::Fraction(number) => Err(Failure::Usage(format!("{name} is {number}, which takes --float"))),
        }
    }

    fn fraction(self) -> f64 {
        match self {
            Amount::Whole(whole) => whole as f64,
            Amount::Fraction(number) => number,
        }
    }
}

/// Numbers of a counter that is not signed.
const UNSIGNED: &str = "from 0 to 2^64 - 1; --signed counts below zero";
/// Numbers of one that is.
const SIGNED: &str = "from -2^63 to 2^63 - 1";

/// What `incr` and `decr` have in common.
#[derive(Args, Debug)]
pub struct CounterArgs {
    #[command(flatten)]
    store: CreatorArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    /// Count from -2^63 to 2^63 - 1, as Redis does; beyond them nothing changes (E42)
    #[arg(long, conflicts_with = "float")]
    signed: bool,
    /// Count decimal fractions, exactly, with 17 digits behind the point
    #[arg(long)]
    float: bool,
    /// A missing key is created with this value (default: as if it had been 0)
    #[arg(long, value_name = "N", conflicts_with = "no_create", allow_negative_numbers = true)]
    initial: Option<Amount>,
    /// A missing key is left missing (exit 1), a missing store too (exit 3)
    #[arg(long)]
    no_create: bool,
    #[command(flatten)]
    attributes: AttributeArgs,
    #[command(flatten)]
    escape: Escape,
}

impl CounterArgs {
    /// How a missing key is created; `first` is what it has been if it had been 0.
    fn counter<N>(&self, first: N, read: impl Fn(Amount) -> Result<N, Failure>) -> Result<Counter<N>, Failure> {
        let initial = match self.initial {
            _ if self.no_create => None,
            None => Some(first),
            Some(initial) => Some(read(initial)?),
        };
        Ok(Counter { initial, attributes: self.attributes.attributes() })
    }

    fn add(&self, by: Amount) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let now = if self.float {
            let counter = self.counter(by.fraction(), |amount| Ok(amount.fraction()))?;
            self.store.open(self.no_create)?.incr_float(&key, by.fraction(), counter)?.map(|n| n.to_string())
        } else if self.signed {
            let by = by.whole("BY", SIGNED)?;
            let counter = self.counter(by, |amount| amount.whole("--initial", SIGNED))?;
            self.store.open(self.no_create)?.incr_signed(&key, by, counter)?.map(|n| n.to_string())
        } else {
            let (up, down) = match by {
                Amount::Whole(whole) if whole < 0 => (0, by.negative().whole("BY", UNSIGNED)?),
                by => (by.whole("BY", UNSIGNED)?, 0),
            };
            let counter = self.counter(up, |amount| amount.whole("--initial", UNSIGNED))?;
            let store = self.store.open(self.no_create)?;
            let now = if down == 0 { store.incr(&key, up, counter)? } else { store.decr(&key, down, counter)? };
            now.map(|n: u64| n.to_string())
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
