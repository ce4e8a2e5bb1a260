//! `uid`.

use super::{not_found, Outcome};
use crate::args::{Escape, StoreArgs};
use crate::output::{print_line, Output};
use clap::Args;
use hashmere::{EntryId, Key, Pair, ReadError, Uid};
use std::ffi::OsString;

/// Print the UID of a key, or what is at a UID.
///
/// A UID is a 32-bit number that stays the same as long as the key exists. An entry id is a UID with a fingerprint of
/// the key: access by an entry id whose key is gone is reported (E21), while a UID may come to mean another key.
#[derive(Args, Debug)]
pub struct UidOf {
    #[command(flatten)]
    store: StoreArgs,
    /// The key
    #[arg(value_name = "KEY", required_unless_present = "at")]
    key: Option<OsString>,
    /// Print the 64-bit entry id instead
    #[arg(long)]
    entry_id: bool,
    /// Print what is at this UID (or at this entry id, with --entry-id)
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
            let named: Key<'_> = match u32::try_from(number) {
                Ok(uid) if !self.entry_id => Uid(uid).into(),
                _ => EntryId(number).into(),
            };
            let (Some(key), Some(item)) = (store.key_of(named)?, store.get_item(named)?) else {
                return Err(ReadError::Stale.into());
            };
            let pair = Pair { key, value: item.value, metadata: item.metadata, supplied_hash: None };
            let mut output = Output::new();
            output.found(&pair, self.json, false)?;
            return output.finish();
        }
        let key = self.escape.key(&self.key.unwrap_or_default())?;
        let number = match self.entry_id {
            true => store.id_of(&key)?.map(|id| id.0),
            false => store.metadata(&key)?.map(|meta| u64::from(meta.uid.0)),
        };
        print_line(number.ok_or_else(|| not_found(&key))?.to_string())
    }
}
