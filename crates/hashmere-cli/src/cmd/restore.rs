//! `restore`.

use super::Outcome;
use crate::failure::{code, Failure};
use crate::output::print_line;
use crate::text;
use clap::{Args, ValueHint};
use hashmere_sinks::{restore, RestoreError, RestoreOptions};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Make a store what it was at any moment after a backup, from the changes in a folder (`hashmere feed STORE --to
/// dir:PATH`). Prints the number of keys in it.
///
/// The backup stays as it is. The name of the new store appears when it is complete.
#[derive(Args, Debug)]
pub struct Restore {
    /// The backup; a name without a slash is a file in this folder
    #[arg(value_name = "BACKUP", value_hint = ValueHint::FilePath)]
    backup: PathBuf,
    /// The new store
    #[arg(value_name = "STORE", value_hint = ValueHint::AnyPath)]
    store: PathBuf,
    /// The folder with the changes
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    feed: PathBuf,
    /// The moment, as 2026-11-24T08:30:00Z, or milliseconds since 1970 (default: the last change)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<u64>,
    /// Replace the store that is there, in one step at the end
    #[arg(long)]
    force: bool,
}

impl Restore {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        let options = RestoreOptions { until_ms: self.until, replace: self.force };
        let report = restore(&Path::new(".").join(&self.backup), &self.feed, &self.store, options).map_err(
            |error| match error {
                RestoreError::Open(error) => error.into(),
                RestoreError::Backup(error) => error.into(),
                RestoreError::Store(error) => Failure::error(error.code(), error.to_string()),
                error => Failure::error(code::RESTORE, error.to_string()),
            },
        )?;
        if !quiet {
            let [applied, before, later] = [report.applied, report.passed_over, report.later].map(text::grouped);
            eprintln!("hashmere: {applied} changes applied; {before} were in the backup already, {later} came later");
        }
        print_line(report.items.to_string())
    }
}

fn parse_time(text: &str) -> Result<u64, String> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    let time = humantime::parse_rfc3339_weak(text)
        .map_err(|error| format!("{error}; write 2026-11-24T08:30:00Z (UTC), or milliseconds since 1970"))?;
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| "a time before 1970".to_owned())?;
    u64::try_from(since.as_millis()).map_err(|_| "too late a time".into())
}
