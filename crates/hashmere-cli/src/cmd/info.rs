//! `info`, `ls`.

use super::Outcome;
use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::text;
use clap::Args;
use hashmere::{Options, Store};
use std::os::unix::fs::MetadataExt;

/// Describe a store.
#[derive(Args, Debug)]
pub struct Info {
    #[command(flatten)]
    store: StoreArgs,
}

impl Info {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let mut output = Output::new();
        describe(&self.store.reader()?, &mut output)?;
        output.finish()
    }
}

/// List the stores in the namespace folder: lines of name, number of keys, allocated memory.
#[derive(Args, Debug)]
pub struct Ls {}

impl Ls {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let mut output = Output::new();
        list(&mut output)?;
        output.finish()
    }
}

fn describe(store: &Store, output: &mut Output) -> Outcome {
    let stats = store.stats();
    let path = store.path();
    let file = std::fs::metadata(path).map_err(|e| Failure::io(format!("look at {}", path.display()), &e))?;
    let maximum = if stats.bytes_max == 0 { "none".to_string() } else { text::size(stats.bytes_max) };
    let mut line = |name: &str, value: String| output.line(format!("{name:<10} {value}"));
    line("path", path.display().to_string())?;
    line("mode", format!("{:?}", stats.mode).to_lowercase())?;
    line("maximum", maximum)?;
    line("items", text::grouped(stats.items))?;
    line("size", format!("{}, of which {} allocated", text::size(file.len()), text::size(file.blocks() * 512)))?;
    line("owner", format!("user {}, group {}, permissions {:o}", file.uid(), file.gid(), file.mode() & 0o7777))?;
    line("clients", stats.clients.len().to_string())
}

fn list(output: &mut Output) -> Outcome {
    // The folder is where any name resolves to, and what a name gets as its ending is that of all stores there.
    let sample = Store::path_of("any")?;
    let Some(folder) = sample.parent() else { return Ok(()) };
    let failed = |e| Failure::io(format!("read the folder {}", folder.display()), &e);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(e)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    for path in paths.iter().filter(|path| path.extension() == sample.extension()) {
        let Ok(store) = Options::new().read_only().open(path) else { continue };
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stats = store.stats();
        let items = text::plural(stats.items, "item");
        output.line(format!("{name:<24} {items:>20} {:>12}", text::size(stats.bytes_allocated)))?;
    }
    Ok(())
}
