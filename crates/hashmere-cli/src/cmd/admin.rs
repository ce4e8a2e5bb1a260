//! `create`, `clear`, `remove`, `compact`, `sync`.

use super::Outcome;
use crate::args::{CreatorArgs, StoreArgs, WriterArgs};
use crate::failure::Failure;
use crate::output::print_line;
use crate::text;
use clap::Args;
use hashmere::{OpenError, Store};
use std::io::{IsTerminal, Write};

/// Create a store and print its path.
///
/// Other commands that write create it too, with the same options.
#[derive(Args, Debug)]
pub struct Create {
    #[command(flatten)]
    store: CreatorArgs,
    /// Accept a store that exists, if its options agree (--max-bytes gives it another maximum)
    #[arg(long)]
    or_open: bool,
}

impl Create {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let options = self.store.options();
        let options = if self.or_open { options } else { options.create_new(true) };
        let store = options.open(&self.store.writer.store.store)?;
        print_line(std::os::unix::ffi::OsStrExt::as_bytes(store.path().as_os_str()))
    }
}

/// Remove all keys. Others may go on using the store.
#[derive(Args, Debug)]
pub struct Clear {
    #[command(flatten)]
    store: WriterArgs,
}

impl Clear {
    /// Runs it.
    pub fn run(self) -> Outcome {
        Ok(self.store.writer()?.clear()?)
    }
}

/// Remove what has expired, move live records together, and print the number of bytes that became free.
#[derive(Args, Debug)]
pub struct Compact {
    #[command(flatten)]
    store: WriterArgs,
}

impl Compact {
    /// Runs it.
    pub fn run(self) -> Outcome {
        print_line(self.store.writer()?.compact()?.to_string())
    }
}

/// Write a durable store to disk: what was stored before survives a power cut.
///
/// A store that was open when the machine went down is rebuilt first, as by every command that writes.
#[derive(Args, Debug)]
pub struct Sync {
    #[command(flatten)]
    store: WriterArgs,
}

impl Sync {
    /// Runs it.
    pub fn run(self) -> Outcome {
        Ok(self.store.writer()?.sync()?)
    }
}

/// Remove a store.
///
/// Processes that have it open keep it; the next to open the name find nothing. Asks on a terminal; elsewhere --yes is
/// needed. If there is no such store the exit status is 1.
#[derive(Args, Debug)]
pub struct Remove {
    #[command(flatten)]
    store: StoreArgs,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Remove the file even if it is damaged or no store at all
    #[arg(long)]
    force: bool,
}

impl Remove {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let path = Store::path_of(&self.store.store)?;
        let missing = || Failure::NotMet(format!("no store at {}", path.display()));
        let items = match self.store.reader() {
            Ok(store) => text::plural(store.len(), "item"),
            Err(_) if std::fs::symlink_metadata(&path).is_err() => return Err(missing()),
            Err(_) if self.force => "not readable".into(),
            Err(e) => return Err(e.and("with --force the file is removed all the same")),
        };
        if !self.yes && !confirmed(&format!("Remove the store {} ({items})?", path.display()))? {
            return Err(Failure::NotMet("not removed".into()));
        }
        match Store::remove(&self.store.store) {
            Ok(true) => Ok(()),
            Ok(false) | Err(OpenError::NotFound { .. }) => Err(missing()),
            Err(_) if self.force => {
                std::fs::remove_file(&path).map_err(|e| Failure::io(format!("remove {}", path.display()), &e))
            }
            Err(e) => Err(e.into()),
        }
    }
}

fn confirmed(question: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage("remove asks before it removes a store; without a terminal it needs --yes".into()));
    }
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|e| Failure::io("read the answer", &e))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes" | "YES"))
}
