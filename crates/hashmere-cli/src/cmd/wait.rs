//! `wait`.

use super::{shown, Outcome};
use crate::args::{Escape, WriterArgs};
use crate::failure::Failure;
use crate::output::{print_line, Output};
use crate::text;
use clap::Args;
use hashmere::{Version, WaitOutcome};
use std::ffi::OsString;
use std::time::Duration;

/// A wait without --timeout is made of waits of this length.
const LONG: Duration = Duration::from_secs(3600);

/// Wait until a key changes, in whatever process, and print its new version.
///
/// The key changes when it is stored, deleted, counted with, expires or is evicted; a key that is gone then prints
/// `removed`. Without --version the change is one after the beginning of this command. If the time is over first, the
/// exit status is 1.
#[derive(Args, Debug)]
pub struct Wait {
    #[command(flatten)]
    store: WriterArgs,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
    /// The version that was seen last (0: the key was absent): what has changed since is printed at once
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Wait no longer than this, for example 30s (default: for as long as it takes)
    #[arg(short, long, value_name = "TIME", value_parser = text::parse_duration)]
    timeout: Option<Duration>,
    /// Print the new value instead of its version
    #[arg(long)]
    value: bool,
    #[command(flatten)]
    escape: Escape,
}

impl Wait {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let key = self.escape.key(&self.key)?;
        let store = self.store.writer()?;
        let seen = match self.version {
            Some(version) => (version != 0).then_some(Version(version)),
            None => store.metadata(&key)?.map(|metadata| metadata.version),
        };
        loop {
            match store.wait(&key, seen, self.timeout.unwrap_or(LONG))? {
                WaitOutcome::TimedOut if self.timeout.is_none() => {}
                WaitOutcome::TimedOut => {
                    return Err(Failure::NotMet(format!("key `{}` has not changed", shown(&key))));
                }
                WaitOutcome::Removed => return print_line("removed"),
                WaitOutcome::Changed(version) if !self.value => return print_line(version.0.to_string()),
                WaitOutcome::Changed(_) => {
                    // Deleted since: it has changed again.
                    let Some(value) = store.get(&key)? else { return print_line("removed") };
                    let mut output = Output::new();
                    output.value(&value, self.escape.escape, false)?;
                    return output.finish();
                }
            }
        }
    }
}
