//! `dump`.

use super::scan::FilterArgs;
use super::Outcome;
use crate::args::{Escape, StoreArgs};
use crate::failure::Failure;
use crate::output::progress_bar;
use crate::record::Format;
use clap::{Args, ValueHint};
use hashmere::{Cursor, Options, Store};
use indicatif::ProgressBar;
use std::fs::{DirBuilder, File};
use std::io::Write;
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
    format: Option<Format>,
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
        let file = self.file.as_deref().filter(|file| *file != Path::new("-"));
        let bar = progress_bar(store.len(), quiet);
        let result = match file {
            None => {
                let mut stdout = std::io::stdout().lock();
                self.write_to(&store, &bar, |bytes| stdout.write_all(bytes).map_err(|e| Failure::output(&e)))
            }
            Some(path) => self.write_file(&store, path, &bar),
        };
        bar.finish_and_clear();
        result
    }

    /// Writes beside the file and renames at the end, unless the file is something special such as a pipe.
    fn write_file(&self, store: &Store, path: &Path, bar: &ProgressBar) -> Outcome {
        let special = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = if special { path.to_owned() } else { PathBuf::from(name) };
        let failed = |e: std::io::Error| Failure::io(format!("write {}", path.display()), &e);
        let mut file = File::options().write(true).create(true).truncate(!special).open(&partial).map_err(failed)?;
        let written = self.write_to(store, bar, |bytes| file.write_all(bytes).map_err(failed));
        if special {
            return written;
        }
        let renamed = written.and_then(|()| std::fs::rename(&partial, path).map_err(failed));
        if renamed.is_err() {
            let _ = std::fs::remove_file(&partial);
        }
        renamed
    }

    fn write_to(&self, store: &Store, bar: &ProgressBar, mut write: impl FnMut(&[u8]) -> Outcome) -> Outcome {
        const BUFFER: usize = 256 << 10;
        let format = Format::choose(self.format, self.file.as_deref());
        let mut lines = Vec::with_capacity(BUFFER);
        let mut fresh = 0;
        for pair in store.scan(Cursor::START, self.filter.filter(self.escape)?) {
            format.write(&pair?, &mut lines);
            fresh += 1;
            if lines.len() >= BUFFER {
                write(&lines)?;
                lines.clear();
                bar.inc(fresh);
                fresh = 0;
            }
        }
        write(&lines)
    }
}

/// A copy of one moment, which is gone when it is closed.
fn snapshot(store: &Store) -> Result<Store, Failure> {
    let failed = |e: std::io::Error| Failure::io("make a folder in TMPDIR", &e);
    let folder = std::env::temp_dir().join(format!("hashmere-dump-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
    let path = folder.join("snapshot.mere");
    let made = store.backup(&path).run().map_err(Failure::from);
    let opened = made.and_then(|_| Ok(Options::new().read_only().open(&path)?));
    // The open copy needs no name.
    let _ = std::fs::remove_dir_all(&folder);
    opened
}
