//! `get`, `exists`, `value-len`.

use super::{not_found, Outcome};
use crate::args::{Escape, StoreArgs};
use crate::failure::Failure;
use crate::output::{print_line, Output};
use crate::text;
use clap::Args;
use hashmere::{Item, Pair, Ttl};
use hashmere_dump::json;
use std::ffi::OsString;
use std::time::Duration;

/// Print the value of a key; of several keys, lines of key TAB value.
///
/// One key: the value byte by byte as it is. A newline follows only if standard output is a terminal or with
/// --newline. Several keys: a line of key TAB value for each that is there, escaped as by `dump`; if any is not there
/// the exit status is 1.
#[derive(Args, Debug)]
pub struct Get {
    #[command(flatten)]
    store: StoreArgs,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    escape: Escape,
    /// Print a newline behind the value
    #[arg(short, long)]
    newline: bool,
    /// Print a line of JSON with key, value, flags, expiry, version and UID
    #[arg(short, long)]
    json: bool,
    /// Also let the key expire this long from now (writes)
    #[arg(long, value_name = "TIME", value_parser = text::parse_duration)]
    touch: Option<Duration>,
}

impl Get {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let keys: Vec<Vec<u8>> = self.keys.iter().map(|k| self.escape.key(k)).collect::<Result<_, _>>()?;
        let mut output = Output::new();
        let mut missing = None;
        match keys.as_slice() {
            [key] if !self.json && self.touch.is_none() => match self.store.reader()?.get(key)? {
                Some(value) => output.value(&value, self.escape.escape, self.newline)?,
                None => missing = Some(not_found(key)),
            },
            keys if !self.json && self.touch.is_none() => {
                for (key, value) in keys.iter().zip(self.store.reader()?.get_many(keys)?) {
                    match value {
                        Some(value) => output.pair(key, &value)?,
                        None => missing = Some(not_found(key)),
                    }
                }
            }
            keys => {
                for (key, item) in keys.iter().zip(self.items(keys)?) {
                    match item {
                        Some(item) => self.print_item(&mut output, key, item)?,
                        None => missing = Some(not_found(key)),
                    }
                }
            }
        }
        output.finish()?;
        missing.map_or(Ok(()), Err)
    }

    fn items(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Item>>, Failure> {
        let Some(time) = self.touch else {
            let store = self.store.reader()?;
            return Ok(keys.iter().map(|key| store.get_item(key)).collect::<Result<_, _>>()?);
        };
        let store = self.store.writer()?;
        Ok(keys.iter().map(|key| store.get_and_touch(key, Ttl::After(time))).collect::<Result<_, _>>()?)
    }

    fn print_item(&self, output: &mut Output, key: &[u8], item: Item) -> Outcome {
        if self.json {
            let mut line = Vec::new();
            json::write_pair(
                &Pair { key: key.to_vec(), value: item.value, metadata: item.metadata, supplied_hash: None },
                true,
                &mut line,
            );
            output.raw(&line)
        } else if self.keys.len() == 1 {
            output.value(&item.value, self.escape.escape, self.newline)
        } else {
            output.pair(key, &item.value)
        }
    }
}

/// Exit with 0 if all the keys are there, with 1 if not.
#[derive(Args, Debug)]
pub struct Exists {
    #[command(flatten)]
    store: StoreArgs,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    escape: Escape,
}

impl Exists {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let store = self.store.reader()?;
        for key in &self.keys {
            if !store.contains_key(&self.escape.key(key)?)? {
                return Err(Failure::NotMet(String::new()));
            }
        }
        Ok(())
    }
}

/// Print the length of a value in bytes.
#[derive(Args, Debug)]
pub struct ValueLen {
    #[command(flatten)]
    store: StoreArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    #[command(flatten)]
    escape: Escape,
}

impl ValueLen {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        match self.store.reader()?.metadata(&key)? {
            Some(metadata) => print_line(metadata.value_len.to_string()),
            None => Err(not_found(&key)),
        }
    }
}
