//! `load`.

use super::Outcome;
use crate::args::{CreatorArgs, FormatArg};
use crate::text;
use clap::{Args, ValueHint};
use hashmere_dump::{load_from, Format, Input};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::{Path, PathBuf};

/// Read records from a file or standard input into the store.
///
/// The records are those of `dump`, or of another program. The number loaded is printed on standard error. The loading
/// stops at the first malformed line with an error that names it; the lines before it are loaded.
#[derive(Args, Debug)]
pub struct Load {
    #[command(flatten)]
    store: CreatorArgs,
    /// The file; `-` or missing: standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// The format (default: by the name of the file, or else tsv)
    #[arg(short, long, value_enum)]
    format: Option<FormatArg>,
    /// Fail if the store does not exist, instead of creating it
    #[arg(long)]
    no_create: bool,
}

impl Load {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        let file = self.file.as_deref().filter(|file| *file != Path::new("-"));
        let input = match file {
            None => Input::new(std::io::stdin().lock(), "standard input"),
            Some(path) => Input::open(path)?,
        };
        let store = self.store.open(self.no_create)?;
        let bar = bar(input.len(), quiet);
        let loaded = load_from(&store, input, self.format.map(Format::from), &mut |bytes| bar.inc(bytes));
        bar.finish_and_clear();
        let loaded = loaded?;
        if !quiet {
            eprintln!("hashmere: {} loaded", text::plural(loaded, "record"));
        }
        Ok(())
    }
}

/// A bar on standard error, drawn only if that is a terminal.
fn bar(len: Option<u64>, quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(len, target);
    let style = match len {
        Some(_) => "{wide_bar:.cyan/blue} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
        None => "{spinner} {bytes}, {bytes_per_sec}",
    };
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}
