//! `set`, `add`, `replace`, `append`, `prepend`.

use super::{not_found, present, Outcome};
use crate::args::{AttributeArgs, CreatorArgs, Escape, WriterArgs};
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use hashmere::Stored;
use std::ffi::OsString;

/// Key, value, and whether to tell what was done.
#[derive(Args, Debug)]
pub struct PairArgs {
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    /// The value; `-` or missing: standard input (a value that is a hyphen: --escape '\x2d')
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    value: Option<OsString>,
    #[command(flatten)]
    escape: Escape,
    /// Print a line of JSON with the new version, the UID, and whether the key was created
    #[arg(short, long)]
    json: bool,
}

impl PairArgs {
    /// Calls `write` with the bytes of key and value, and prints what it did if that was asked for. Both are read
    /// before the store is opened: a wrong argument creates none.
    fn run(&self, write: impl FnOnce(&[u8], &[u8]) -> Result<Stored, Failure>) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let value = self.escape.value(self.value.as_ref())?;
        let stored = write(&key, &value)?;
        if !self.json {
            return Ok(());
        }
        let mut output = Output::new();
        output.stored(&stored)?;
        output.finish()
    }
}

/// Store a value (creates the store if it is missing).
#[derive(Args, Debug)]
pub struct Set {
    #[command(flatten)]
    store: CreatorArgs,
    #[command(flatten)]
    pair: PairArgs,
    #[command(flatten)]
    attributes: AttributeArgs,
    /// Fail if the store does not exist, instead of creating it
    #[arg(long)]
    no_create: bool,
}

impl Set {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.pair.run(|key, value| {
            let store = self.store.open(self.no_create)?;
            Ok(store.set_with(key, value, self.attributes.attributes())?)
        })
    }
}

/// Store a value only if the key is absent (otherwise the exit status is 1).
#[derive(Args, Debug)]
pub struct Add {
    #[command(flatten)]
    store: CreatorArgs,
    #[command(flatten)]
    pair: PairArgs,
    #[command(flatten)]
    attributes: AttributeArgs,
    /// Fail if the store does not exist, instead of creating it
    #[arg(long)]
    no_create: bool,
}

impl Add {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.pair.run(|key, value| {
            let store = self.store.open(self.no_create)?;
            store.add(key, value, self.attributes.attributes())?.ok_or_else(|| present(key))
        })
    }
}

/// Store a value only if the key is present (otherwise the exit status is 1).
#[derive(Args, Debug)]
pub struct Replace {
    #[command(flatten)]
    store: WriterArgs,
    #[command(flatten)]
    pair: PairArgs,
    #[command(flatten)]
    attributes: AttributeArgs,
}

impl Replace {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.pair.run(|key, value| {
            let store = self.store.writer()?;
            store.replace(key, value, self.attributes.attributes())?.ok_or_else(|| not_found(key))
        })
    }
}

/// Append to the value of a key that is present.
#[derive(Args, Debug)]
pub struct Append {
    #[command(flatten)]
    store: WriterArgs,
    #[command(flatten)]
    pair: PairArgs,
}

impl Append {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.pair.run(|key, tail| self.store.writer()?.append(key, tail)?.ok_or_else(|| not_found(key)))
    }
}

/// Put something in front of the value of a key that is present.
#[derive(Args, Debug)]
pub struct Prepend {
    #[command(flatten)]
    store: WriterArgs,
    #[command(flatten)]
    pair: PairArgs,
}

impl Prepend {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.pair.run(|key, head| self.store.writer()?.prepend(key, head)?.ok_or_else(|| not_found(key)))
    }
}
