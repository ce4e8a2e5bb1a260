//! `dump`.

use super::scan::FilterArgs;
use super::Outcome;
use crate::args::{Escape, FormatArg, StoreArgs};
use crate::failure::Failure;
use crate::output::progress_bar;
use clap::{Args, ValueHint};
use hashmere::{Options, Store};
use hashmere_dump::{dump_file, dump_to, DumpError, Format};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Write all records, with their flags and expiry times, in a form that `load` reads.
///
/// Others may write during it: a key that is there during the whole dump is written exactly once. With --snapshot the
/// dump is of one moment, like a backup. A file appears under its name only when it is complete.
#[derive(Args, Debug)]
pub struct Dump {
    #[command(flatten)]
    store: StoreArgs,
    /// The file; `-` or missing: standard output
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// The format (default: by the name of the file, or else tsv)
    #[arg(short, long, value_enum)]
    format: Option<FormatArg>,
    /// Dump the store as it is at one moment; needs room for a copy of it in TMPDIR
    #[arg(long)]
    snapshot: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    escape: Escape,
}

impl Dump {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        let store = if self.snapshot { snapshot(&self.store.writer()?)? } else { self.store.reader()? };
        let filter = self.filter.filter(self.escape)?;
        let file = self.file.as_deref().filter(|file| *file != Path::new("-"));
        let format = self.format.map_or_else(|| Format::of(file.unwrap_or(Path::new(""))), Format::from);
        let bar = progress_bar(store.len(), quiet);
        let each = &mut |records| bar.inc(records);
        let result = match file {
            None => dump_to(&store, &mut io::stdout().lock(), "write to standard output", format, filter, each),
            Some(path) => dump_file(&store, path, format, filter, each),
        };
        bar.finish_and_clear();
        match result {
            Ok(_) => Ok(()),
            Err(DumpError::Io { source, .. }) if file.is_none() => Err(Failure::output(&source)),
            Err(error) => Err(error.into()),
        }
    }
}

/// A copy of one moment, which is gone when it is closed.
fn snapshot(store: &Store) -> Result<Store, Failure> {
    let failed = |e: io::Error| Failure::io("make a folder in TMPDIR", &e);
    let folder = std::env::temp_dir().join(format!("hashmere-dump-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
    let path = folder.join("snapshot.mere");
    let made = store.backup(&path).run().map_err(Failure::from);
    let opened = made.and_then(|_| Ok(Options::new().read_only().open(&path)?));
    // The open copy needs no name.
    let _ = std::fs::remove_dir_all(&folder);
    opened
}
