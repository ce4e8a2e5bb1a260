//! `touch`, `ttl`.

use super::{not_found, Outcome};
use crate::args::{Escape, StoreArgs, TtlArgs, WriterArgs};
use crate::output::print_line;
use crate::text;
use clap::Args;
use std::ffi::OsString;

/// Change when a key expires.
///
/// Exactly one of --ttl, --expires-at and --never says when.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("when").required(true).args(["ttl", "expires_at", "never"]))]
pub struct Touch {
    #[command(flatten)]
    store: WriterArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    #[command(flatten)]
    ttl: TtlArgs,
    /// It does not expire
    #[arg(long)]
    never: bool,
    #[command(flatten)]
    escape: Escape,
}

impl Touch {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        if self.store.writer()?.touch(&key, self.ttl.ttl())? {
            Ok(())
        } else {
            Err(not_found(&key))
        }
    }
}

/// Print how long a key still lives, such as 4m59s250ms, or forever.
#[derive(Args, Debug)]
pub struct TtlOf {
    #[command(flatten)]
    store: StoreArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    /// Print a number of milliseconds; -1 means forever
    #[arg(long)]
    ms: bool,
    #[command(flatten)]
    escape: Escape,
}

impl TtlOf {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let expiry = self.store.reader()?.ttl(&key)?.ok_or_else(|| not_found(&key))?;
        print_line(match (expiry.remaining, self.ms) {
            (None, true) => "-1".to_string(),
            (None, false) => "forever".to_string(),
            (Some(time), true) => time.as_millis().to_string(),
            (Some(time), false) => text::duration(time),
        })
    }
}
