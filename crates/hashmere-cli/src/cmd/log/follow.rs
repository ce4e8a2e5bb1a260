//! Following a log: as its drainer if it has none, else beside it.

use super::{failed, parse_level, LogArgs};
use crate::args::StoreArgs;
use crate::cmd::Outcome;
use crate::failure::Failure;
use clap::{Args, ValueEnum, ValueHint};
use hashmere_log::{Follower, Format, Level, Log, LogError, LogFile, LogLine, ManualDrainer, Since, Sink};
use hashmere_os::process::{catch_stop, is_asked_to_stop};
use regex::bytes::Regex;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Codes of what is not there yet.
const NO_STORE: i32 = 1;
const NO_LOG: i32 = 70;
/// A follower looks this often whether there still is a drainer.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// How a log is followed.
#[derive(Args, Debug)]
pub(super) struct Follow {
    /// Name of the store; or its path, if it has a slash or ends in .mere
    #[arg(value_name = "STORE", value_hint = ValueHint::AnyPath)]
    store: Option<PathBuf>,
    /// Name of the log
    #[arg(long, default_value = "log")]
    name: String,
    /// Open a file that another user owns
    #[arg(long)]
    allow_foreign_owner: bool,
    /// Start with this many lines that were drained before (default: 0; 10 if another process drains)
    #[arg(short = 'n', long, value_name = "LINES")]
    lines: Option<u64>,
    /// Print what there is and end; without this, a store or log that is not there yet is waited for
    #[arg(long)]
    once: bool,
    /// Only lines of this level and more important ones
    #[arg(short, long, value_parser = parse_level)]
    level: Option<Level>,
    /// Only lines of processes with this name or id; may be given several times
    #[arg(short, long, value_name = "NAME|PID")]
    process: Vec<String>,
    /// Only lines whose text matches this regular expression
    #[arg(short, long, value_name = "PATTERN")]
    grep: Option<Regex>,
    /// One JSON object a line
    #[arg(short, long)]
    json: bool,
    /// Colours
    #[arg(long, value_enum, default_value = "auto")]
    colour: When,
    /// Drain to this file instead of standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "lines")]
    output: Option<PathBuf>,
    /// Rename the file to FILE.1 before it has more than this many bytes
    #[arg(long, value_name = "BYTES", requires = "output")]
    rotate: Option<u64>,
    /// How many such files to keep
    #[arg(long, value_name = "N", default_value = "5", requires = "rotate")]
    keep: u32,
}

#[derive(Debug)]
struct Filter {
    level: Level,
    process: Vec<String>,
    pattern: Option<Regex>,
}

impl Filter {
    fn wants(&self, record: &LogLine) -> bool {
        let is_named = |name: &String| name.as_bytes() == record.process() || *name == record.pid().to_string();
        record.level() <= self.level
            && (self.process.is_empty() || self.process.iter().any(is_named))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(record.text()))
    }
}

impl Follow {
    fn format(&self) -> Format {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let on_terminal = || self.output.is_none() && std::io::stdout().is_terminal() && !is_set("NO_COLOR");
        match self.colour {
            _ if self.json => Format::Json,
            When::Always => Format::Colour,
            When::Auto if on_terminal() => Format::Colour,
            When::Auto | When::Never => Format::Text,
        }
    }

    pub(super) fn run(self) -> Outcome {
        let format = self.format();
        let filter =
            Arc::new(Filter { level: self.level.unwrap_or(Level::Trace), process: self.process, pattern: self.grep });
        let Some(store) = self.store else {
            return Err(Failure::Usage("which store? See `hashmere log --help`".into()));
        };
        let store = StoreArgs { store, allow_foreign_owner: self.allow_foreign_owner };
        let log = LogArgs { store, name: self.name };
        catch_stop();
        let log = if self.once { Some(log.open()?) } else { wait_for(&log)? };
        let Some(log) = log else { return Ok(()) };
        let wants = filter.clone();
        let sink = match self.output {
            Some(path) => {
                let file = LogFile::new(path).rotate(self.rotate.unwrap_or(u64::MAX), self.keep);
                let drain = log.drain_manual(Sink::file(file, format).only(move |record| wants.wants(record)));
                return drain_on(drain.map_err(failed)?, self.once);
            }
            None => || -> Result<Sink, LogError> {
                let wants = filter.clone();
                Ok(Sink::stdout(format)?.only(move |record| wants.wants(record)))
            },
        };
        let printer = Printer { format, filter: &filter };
        match log.drain_manual(sink().map_err(failed)?) {
            Ok(drain) => {
                let mut before = log.follow(Since::Last(self.lines.unwrap_or(0))).map_err(failed)?;
                printer.print(&mut before, drain.position())?;
                drain_on(drain, self.once)
            }
            Err(LogError::Taken { .. }) => {
                let mut follower = log.follow(Since::Last(self.lines.unwrap_or(10))).map_err(failed)?;
                printer.follow(&log, &mut follower, self.once, sink)
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// Opens a log as soon as a process has made it, with the sizes that it shall have: the drainer may be there first.
/// `None`: asked to stop.
fn wait_for(log: &LogArgs) -> Result<Option<Log>, Failure> {
    let mut is_reported = false;
    while !is_asked_to_stop() {
        match log.open() {
            Err(Failure::Error { code: code @ (NO_STORE | NO_LOG), .. }) => {
                if !is_reported {
                    let what = if code == NO_STORE { "store" } else { "log in the store" };
                    eprintln!("hashmere: there is no such {what} yet; waiting for the first process that logs to it");
                }
                is_reported = true;
                std::thread::sleep(LOOK);
            }
            opened => return opened.map(Some),
        }
    }
    Ok(None)
}

/// Drains until there is no more to do, or forever.
fn drain_on(mut drain: ManualDrainer, once: bool) -> Outcome {
    if once {
        return drain.finish().map(|_| ()).map_err(failed);
    }
    while !is_asked_to_stop() {
        match drain.poll() {
            Ok((_, true)) => {}
            Ok((_, false)) => drain.wait(Duration::MAX),
            Err(error) => return Err(failed(error)),
        }
    }
    drain.finish().map(|_| ()).map_err(failed)
}

struct Printer<'a> {
    format: Format,
    filter: &'a Filter,
}

impl Printer<'_> {
    /// Prints lines that were drained, up to a position.
    fn print(&self, follower: &mut Follower, end: u64) -> Outcome {
        let mut out = std::io::stdout().lock();
        let mut text = Vec::new();
        while follower.position() < end {
            let Some(record) = follower.next().map_err(failed)? else { break };
            if record.position() >= end {
                break;
            }
            if self.filter.wants(record) {
                self.format.write(record, &mut text);
            }
            if text.len() > 1 << 16 {
                out.write_all(&text).map_err(|e| Failure::output(&e))?;
                text.clear();
            }
        }
        out.write_all(&text).and_then(|()| out.flush()).map_err(|e| Failure::output(&e))
    }

    /// Prints lines as another process drains them; takes its place if it is gone.
    fn follow(
        &self,
        log: &Log,
        follower: &mut Follower,
        once: bool,
        sink: impl Fn() -> Result<Sink, LogError>,
    ) -> Outcome {
        while !is_asked_to_stop() {
            let missed = follower.missed_bytes();
            self.print(follower, u64::MAX)?;
            if follower.missed_bytes() > missed {
                eprintln!(
                    "hashmere: {} bytes of the log were written over before they were read",
                    follower.missed_bytes() - missed
                );
            }
            if once {
                break;
            }
            match log.drain_manual(sink().map_err(failed)?) {
                Ok(mut drain) => {
                    self.print(follower, u64::MAX)?;
                    drain.skip_to(follower.position());
                    return drain_on(drain, false);
                }
                Err(LogError::Taken { .. }) => follower.wait(LOOK),
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }
}
