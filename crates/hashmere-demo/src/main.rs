//! The demo: processes count the words of real files into one store, one of them is killed in mid-run, and the totals
//! agree exactly with a plain count. How that is possible is explained in [`job`].

#![forbid(unsafe_code)]

mod crew;
mod failure;
mod input;
mod job;
mod plan;
mod screen;
mod text;
mod verify;
mod watch;
mod words;
mod worker;

use bytesize::ByteSize;
use clap::{Parser, Subcommand};
use failure::{Failure, Outcome};
use hashmere::{Options, Store};
use input::Piece;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use text::{plural, size};

fn main() -> ExitCode {
    let demo = Demo::parse();
    let outcome = match demo.part {
        None => demo.run(),
        Some(Part::Worker(worker)) => worker.run(),
        Some(Part::Watch(watch)) => watch.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(text)) => {
            eprintln!("hashmere-demo: {text}");
            ExitCode::FAILURE
        }
    }
}

/// What the demo starts itself as.
#[derive(Subcommand, Debug)]
enum Part {
    /// A worker process.
    #[command(hide = true)]
    Worker(worker::Worker),
    /// The reader process.
    #[command(hide = true)]
    Watch(watch::Watch),
}

/// Watch processes count words into one store: one is killed, and not a word is lost.
///
/// Worker processes claim chunks of the text files of this machine and count their words into one shared table. At a
/// random moment one of them is killed with SIGKILL, and started again. A reader process watches. At the end every
/// word is compared with a plain count by a single process: nothing is lost, nothing is counted twice. Exit status 0
/// says that all totals agree.
#[derive(Parser, Debug)]
#[command(name = "hashmere-demo", version, max_term_width = 110, disable_help_subcommand = true)]
struct Demo {
    /// Name of the store
    #[arg(long, value_name = "STORE", default_value = "demo")]
    store: PathBuf,
    /// Worker processes
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    workers: u8,
    /// How many kills
    #[arg(long, value_name = "N", default_value_t = 1)]
    kills: u32,
    /// The random moments (printed by every run)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Count the files of this folder instead of the usual ones (may be repeated)
    #[arg(long, value_name = "DIR")]
    input: Vec<PathBuf>,
    /// Count files of at most this many bytes together
    #[arg(long, value_name = "SIZE", default_value = "40MiB")]
    max_input: ByteSize,
    /// Bytes of a chunk of work, about
    #[arg(long, value_name = "SIZE", default_value = "8KiB")]
    chunk: ByteSize,
    /// Do not show how the numbers grow
    #[arg(long)]
    no_watch: bool,
    /// Leave the store there
    #[arg(long)]
    keep: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

impl Demo {
    /// Runs it.
    fn run(self) -> Outcome {
        let files = input::find_files(&self.input, self.max_input.as_u64())?;
        let pieces = input::cut(&files, self.chunk.as_u64().max(1))?;
        self.make_way()?;
        let store = Options::new().create_new(true).open(&self.store)?;
        let removal = Removal { store: self.store.clone(), keep: self.keep };
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
        self.list_work(&store, &files, &pieces)?;
        self.announce(&store, &files, &pieces, seed);
        let plan = plan::Plan {
            slots: usize::from(self.workers),
            kills: self.kills,
            seed,
            watch: !self.no_watch,
            store: self.store.clone(),
            bytes: pieces.iter().map(|piece| piece.len).sum(),
            chunks: pieces.len() as u64,
        };
        let ran = crew::run(&store, &plan)?;
        let verdict = verify::compare(&store, &files, &plan, &ran)?;
        verify::report(&store, &plan, &ran, &verdict, self.keep)?;
        drop(store);
        drop(removal);
        verdict.outcome()
    }

    /// Removes what an earlier demo left; leaves alone what is not a demo's, or one that runs.
    fn make_way(&self) -> Outcome {
        let path = Store::path_of(&self.store)?;
        if std::fs::symlink_metadata(&path).is_err() {
            return Ok(());
        }
        let earlier = Options::new().read_only().open(&self.store)?;
        let Some(pid) = earlier.get(job::JOB_PID)? else {
            let text = format!("{} exists and is not the demo's; choose another name with --store", path.display());
            return Err(Failure::new(text));
        };
        let pid = String::from_utf8_lossy(&pid).into_owned();
        if !earlier.contains_key(job::JOB_OVER)? && PathBuf::from("/proc").join(&pid).exists() {
            let text = format!("another demo (pid {pid}) uses {}; choose another name with --store", path.display());
            return Err(Failure::new(text));
        }
        Store::remove(&self.store)?;
        Ok(())
    }

    /// Puts the chunks into the store, as work to do, and what the others need to know.
    fn list_work(&self, store: &Store, files: &[PathBuf], pieces: &[Piece]) -> Outcome {
        let chunks: Vec<(Vec<u8>, Vec<u8>)> = (1..)
            .zip(pieces)
            .map(|(id, piece)| {
                let chunk = job::Chunk { state: job::State::Todo, piece: piece.clone() };
                (job::chunk_key(id), chunk.encode())
            })
            .collect();
        store.set_many(&chunks)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        let facts: [(&[u8], String); 9] = [
            (job::JOB_CHUNKS, pieces.len().to_string()),
            (job::JOB_BYTES, pieces.iter().map(|piece| piece.len).sum::<u64>().to_string()),
            (job::JOB_FILES, files.len().to_string()),
            (job::JOB_SLOTS, self.workers.to_string()),
            (job::JOB_STARTED, now.to_string()),
            (job::LIVE_WORDS, "0".into()),
            (job::LIVE_BYTES, "0".into()),
            (job::LIVE_UPDATES, "0".into()),
            (job::JOB_PID, std::process::id().to_string()),
        ];
        store.set_many(&facts)?;
        Ok(())
    }

    fn announce(&self, store: &Store, files: &[PathBuf], pieces: &[Piece], seed: u64) {
        let bytes: u64 = pieces.iter().map(|piece| piece.len).sum();
        println!(
            "\n  {}, {}, {} of work, {} workers, seed {seed}",
            plural(files.len() as u64, "file"),
            size(bytes),
            plural(pieces.len() as u64, "chunk"),
            self.workers
        );
        println!("  the table: {}\n", store.path().display());
    }
}

/// Removes the store at the end, whatever the end is.
struct Removal {
    store: PathBuf,
    keep: bool,
}

impl Drop for Removal {
    fn drop(&mut self) {
        if !self.keep {
            let _ = Store::remove(&self.store);
        }
    }
}
