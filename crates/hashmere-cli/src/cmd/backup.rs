//! `backup`.

use super::Outcome;
use crate::args::WriterArgs;
use crate::output::{print_line, progress_bar};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Copy a store as it is at one moment to a new file, while others go on using it. Prints the number of keys in it.
///
/// The copy is a store with the same options, and its name appears when it is complete and on the disk. What is
/// overwritten during the backup takes room until it ends; a store that gets full for that ends the backup (error 51).
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
}

impl Backup {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        let store = self.store.writer()?;
        let bar = progress_bar(store.len(), quiet);
        let backup = store.backup(&self.file).replace(self.force).on_progress(|done, _| bar.set_position(done));
        let report = backup.run();
        bar.finish_and_clear();
        let report = report?;
        if report.thinned && !quiet {
            eprintln!("hashmere: the cache was full: what it evicted during the backup is not in the copy");
        }
        print_line(report.items.to_string())
    }
}
