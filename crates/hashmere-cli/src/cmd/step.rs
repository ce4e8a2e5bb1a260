//! What a counting command, or line of a batch, adds to which kind of counter.

use crate::args::AttributeArgs;
use crate::failure::Failure;
use clap::Args;
use hashmere::Counter;
use std::str::FromStr;

/// How far, and from where: a whole number or a decimal fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
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
    /// The same the other way.
    pub fn negative(self) -> Amount {
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

/// Which kind of counter it is, and how a missing key is created.
#[derive(Args, Debug)]
pub struct CountArgs {
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
    pub no_create: bool,
    #[command(flatten)]
    attributes: AttributeArgs,
}

/// A step of one kind of counter.
pub enum Step {
    /// Adds to one that is not signed.
    Up(u64, Counter),
    /// Subtracts from it.
    Down(u64, Counter),
    /// Adds to one that is.
    Signed(i64, Counter<i64>),
    /// Adds to a decimal fraction.
    Float(f64, Counter<f64>),
}

impl CountArgs {
    /// How a missing key is created; `first` is what it has been if it had been 0.
    fn counter<N>(&self, first: N, read: impl Fn(Amount) -> Result<N, Failure>) -> Result<Counter<N>, Failure> {
        let initial = match self.initial {
            _ if self.no_create => None,
            None => Some(first),
            Some(initial) => Some(read(initial)?),
        };
        Ok(Counter { initial, attributes: self.attributes.attributes() })
    }

    /// What adding this amount is.
    pub fn step(&self, by: Amount) -> Result<Step, Failure> {
        if self.float {
            let counter = self.counter(by.fraction(), |amount| Ok(amount.fraction()))?;
            return Ok(Step::Float(by.fraction(), counter));
        }
        if self.signed {
            let by = by.whole("BY", SIGNED)?;
            return Ok(Step::Signed(by, self.counter(by, |amount| amount.whole("--initial", SIGNED))?));
        }
        let unsigned = |first| self.counter(first, |amount| amount.whole("--initial", UNSIGNED));
        match by {
            Amount::Whole(whole) if whole < 0 => Ok(Step::Down(by.negative().whole("BY", UNSIGNED)?, unsigned(0)?)),
            by => {
                let by = by.whole("BY", UNSIGNED)?;
                Ok(Step::Up(by, unsigned(by)?))
            }
        }
    }
}
