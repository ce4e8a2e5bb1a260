//! `uid`.

use super::{not_found, Outcome};
use crate::args::{Escape, StoreArgs};
use crate::output::{print_line, Output};
use clap::Args;
use hashmere::{EntryId, Uid};
use std::ffi::OsString;

/// Print the UID of a key, or what is at a UID.
///
/// A UID is a 32-bit number that stays the same as long as the key exists. A handle is a UID with a fingerprint of the
/// key: access through a handle whose key is gone is reported (E21), while a UID may come to mean another key.
#[derive(Args, Debug)]
pub struct UidOf {
    #[command(flatten)]
    store: StoreArgs,
    /// The key
    #[arg(value_name = "KEY", required_unless_present = "at")]
    key: Option<OsString>,
    /// Print the 64-bit handle instead
    #[arg(long)]
    handle: bool,
    /// Print what is at this UID (or at this handle, with --handle)
    #[arg(long, value_name = "NUMBER", conflicts_with = "key")]
    at: Option<u64>,
    /// Print a line of JSON (with --at)
    #[arg(short, long, requires = "at")]
    json: bool,
    #[command(flatten)]
    escape: Escape,
}

impl UidOf {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let store = self.store.reader()?;
        if let Some(number) = self.at {
            let pair = match u32::try_from(number) {
                Ok(uid) if !self.handle => store.get_at(Uid(uid))?,
                _ => store.get_at(EntryId(number))?,
            };
            let mut output = Output::new();
            output.found(&pair, self.json, false)?;
            return output.finish();
        }
        let key = self.escape.key(&self.key.unwrap_or_default())?;
        let number = match self.handle {
            true => store.id_of(&key)?.map(|handle| handle.0),
            false => store.uid_of(&key)?.map(|uid| u64::from(uid.0)),
        };
        print_line(number.ok_or_else(|| not_found(&key))?.to_string())
    }
}
