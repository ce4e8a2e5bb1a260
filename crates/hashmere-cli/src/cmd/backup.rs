//! `backup`.

mod series;

use super::Outcome;
use crate::args::WriterArgs;
use crate::failure::Failure;
use crate::output::{print_line, progress_bar};
use crate::text;
use clap::{Args, ValueHint};
use series::Series;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Copy a store as it is at one moment to a new file, while others go on using it. Prints the number of keys in it.
///
/// The copy is a store with the same options, and its name appears when it is complete and on the disk. What is
/// overwritten during the backup takes room until it ends; a store that gets full for that ends the backup (error 51).
///
/// With --every, FILE is a folder that is made if it is missing, and the command goes on until it is ended: it makes a
/// backup now, unless there is one younger than that, and then one after each interval, named after the store and the
/// time (UTC), prints its path, and removes all but the last --keep. A backup that fails later is reported, and the
/// next one is tried in its turn. It may be killed at any time: there are only whole backups.
#[derive(Args, Debug)]
pub struct Backup {
    #[command(flatten)]
    store: WriterArgs,
    /// The file of the copy; a name without a slash is a file in this folder
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Replace the store that is there, in one step at the end
    #[arg(long)]
    force: bool,
    /// Make backups in the folder FILE at this interval, for example 1h, until the command is ended
    #[arg(long, value_name = "TIME", value_parser = text::parse_duration, conflicts_with = "force")]
    every: Option<Duration>,
    /// How many of those to keep
    #[arg(long, value_name = "N", default_value_t = 24, requires = "every", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
}

impl Backup {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        if let Some(every) = self.every {
            if every < Duration::from_secs(1) {
                return Err(Failure::Usage("--every is at least 1s".into()));
            }
            return Series::new(&self.store.store.store, &self.file, every, self.keep)?
                .run(|path| self.once(path, quiet).map(|_| ()));
        }
        let items = self.once(&self.file, quiet)?;
        print_line(items.to_string())
    }

    /// Makes one backup; returns how many keys it has.
    fn once(&self, path: &Path, quiet: bool) -> Result<u64, Failure> {
        // Opened each time: the name may mean another store by now.
        let store = self.store.writer()?;
        let bar = progress_bar(store.len(), quiet);
        let backup = store.backup(path).replace(self.force).on_progress(|done, _| bar.set_position(done));
        let report = backup.run();
        bar.finish_and_clear();
        let report = report?;
        if report.thinned && !quiet {
            eprintln!("hashmere: the cache was full: what it evicted during the backup is not in the copy");
        }
        Ok(report.items)
    }
}
