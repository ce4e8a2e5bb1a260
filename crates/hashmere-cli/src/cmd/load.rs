//! `load`.

use super::Outcome;
use crate::args::CreatorArgs;
use crate::failure::{code, Failure};
use crate::record::{Format, Record};
use crate::text;
use clap::{Args, ValueHint};
use hashmere::Store;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Records of one bulk call: at most this many, and no more once this many bytes are together.
const BATCH_RECORDS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

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
    format: Option<Format>,
    /// Fail if the store does not exist, instead of creating it
    #[arg(long)]
    no_create: bool,
}

impl Load {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        let file = self.file.as_deref().filter(|file| *file != Path::new("-"));
        let (mut input, len): (Box<dyn BufRead>, Option<u64>) = match file {
            None => (Box::new(std::io::stdin().lock()), None),
            Some(path) => {
                let file = File::open(path).map_err(|e| Failure::io(format!("open {}", path.display()), &e))?;
                let len = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
                (Box::new(BufReader::with_capacity(256 << 10, file)), len)
            }
        };
        let format = Format::choose(self.format, file);
        let store = self.store.open(self.no_create)?;
        let bar = bar(len, quiet);
        let mut loader = Loader { store: &store, batch: Vec::new(), bytes: 0, loaded: 0 };
        let source = file.map_or("standard input".to_string(), |path| path.display().to_string());
        let result = load_lines(&mut *input, format, &mut loader, &bar, &source);
        bar.finish_and_clear();
        result?;
        if !quiet {
            eprintln!("hashmere: {} loaded", text::plural(loader.loaded, "record"));
        }
        Ok(())
    }
}

fn load_lines(
    input: &mut dyn BufRead,
    format: Format,
    loader: &mut Loader<'_>,
    bar: &ProgressBar,
    source: &str,
) -> Outcome {
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        let bytes = match read {
            Ok(0) => break,
            Ok(bytes) => bytes as u64,
            Err(e) => {
                loader.flush()?;
                return Err(Failure::io(format!("read {source}"), &e).and(&loader.so_far()));
            }
        };
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        match format.parse(text) {
            Ok(record) => loader.push(record)?,
            Err(why) => {
                loader.flush()?;
                let text = format!("{source}, line {number}: {why}");
                return Err(Failure::error(code::MALFORMED, text).and(&loader.so_far()));
            }
        }
        bar.inc(bytes);
    }
    loader.flush()
}

/// Collects records for bulk calls. Every line is a record, so what is loaded is always the lines from the first on.
struct Loader<'a> {
    store: &'a Store,
    batch: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    loaded: u64,
}

impl Loader<'_> {
    fn push(&mut self, record: Record) -> Outcome {
        if let Some(attributes) = record.attributes() {
            // The bulk call attaches nothing. What came before goes first: the last line of a key must win.
            self.flush()?;
            let stored = self.store.set_with(&record.key, &record.value, attributes);
            stored.map_err(|e| Failure::from(e).and(&self.so_far()))?;
            self.loaded += 1;
            return Ok(());
        }
        self.bytes += record.key.len() + record.value.len();
        self.batch.push((record.key, record.value));
        if self.batch.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Outcome {
        let stored = self.store.set_many(&self.batch);
        stored.map_err(|e| {
            let most = text::grouped(self.loaded + self.batch.len() as u64);
            Failure::from(e).and(&format!("{}, and of the lines up to {most} those that fitted", self.so_far()))
        })?;
        self.loaded += self.batch.len() as u64;
        self.batch.clear();
        self.bytes = 0;
        Ok(())
    }

    fn so_far(&self) -> String {
        match self.loaded {
            0 => "no line before it was loaded".into(),
            n => format!("the first {} loaded", text::plural(n, "line") + if n == 1 { " is" } else { " are" }),
        }
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
