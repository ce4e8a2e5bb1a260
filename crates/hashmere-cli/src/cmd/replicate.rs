//! `replicate`: a store follows another one, until the command is stopped.

use super::Outcome;
use crate::args::{show_rebuild, CreateOptions};
use crate::failure::{code, Failure};
use crate::output::{print_line, Output};
use crate::text;
use clap::{Args, ValueHint};
use hashmere::{OpenError, Options, Store};
use hashmere_replica::{status, ReplicaError, ReplicaStatus, Replicator, Served, TwoWay, ORIGIN};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest sleep: status and source are looked at this often.
const PULSE: Duration = Duration::from_millis(100);
/// The same with `--once`: a server may have to be waited for, a file not.
const ONCE: Duration = Duration::from_millis(5);

/// Make a store a copy of another one, and keep it one: first every key, then every change.
///
/// It may be stopped or killed at any moment; started again it resumes. To promote the copy, stop it and write to the
/// copy. What the copy has and FROM does not is deleted. FROM keeps its changes, with values, from then on
/// (--source-feed). A FROM on another machine is served there by `hashmere serve --feed`.
#[derive(Args, Debug)]
pub struct Replicate {
    /// The store that is followed: name or path, or tcp://HOST:PORT, tls://HOST:PORT, unix:PATH where it is served.
    /// With --status: the copy
    #[arg(value_name = "FROM", value_hint = ValueHint::AnyPath)]
    from: PathBuf,
    /// The copy, which is created if it is missing
    #[arg(value_name = "TO", value_hint = ValueHint::AnyPath, required_unless_present = "status")]
    to: Option<PathBuf>,
    /// Print how far a copy is, and end
    #[arg(long, conflicts_with_all = ["to", "once"])]
    status: bool,
    /// Both stores are written to: the last writer of a key wins, on both sides. Where FROM is served, the other
    /// direction is a second command beside it. What is remembered of each key lies in a file beside its store that
    /// ends in .sidecar
    #[arg(long, conflicts_with = "status")]
    two_way: bool,
    /// The origin that what is applied has in the change feed (default 1380274252, which is REPL in ASCII)
    #[arg(long, value_name = "NUMBER", conflicts_with = "status")]
    origin: Option<u32>,
    /// End when every change that was there is applied
    #[arg(long)]
    once: bool,
    /// Bytes of changes that FROM keeps, if it keeps none yet
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size, default_value = "64M")]
    source_feed: u64,
    /// With tls://: the authorities of the server's certificate, or that certificate, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "status")]
    ca: Option<PathBuf>,
    /// With tls://: a certificate to show to the server, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires_all = ["ca", "key"])]
    cert: Option<PathBuf>,
    /// The key of --cert, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    key: Option<PathBuf>,
    /// File with a line name:password, where the server wants to be authenticated to
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "status")]
    account: Option<PathBuf>,
    /// Print a line this often: 500ms, 10s (default 1s; with --once: one at the end)
    #[arg(long, value_name = "TIME", value_parser = text::parse_duration)]
    every: Option<Duration>,
    /// Lines of JSON
    #[arg(short, long)]
    json: bool,
    #[command(flatten)]
    create: CreateOptions,
}

impl Replicate {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        let Some(to) = &self.to else {
            self.served()?;
            return self.print_status(&options().create(false).open(&self.from)?);
        };
        let mut following = self.start(to)?;
        let mut trouble = None;
        let every = self.every.unwrap_or(Duration::from_secs(1));
        let mut shown: Option<Instant> = None;
        loop {
            let is_idle = !following.step(if self.once { ONCE } else { PULSE })?;
            if trouble.as_deref() != following.trouble() {
                trouble = following.trouble().map(str::to_owned);
                let text = trouble.as_deref().unwrap_or("followed again");
                let text = format!("{}: {text}", self.from.display());
                if trouble.is_some() && self.once {
                    return Err(Failure::error(code::IO, text));
                }
                eprintln!("hashmere replicate: {text}");
            }
            let is_done = self.once && is_idle && following.is_caught_up();
            if !quiet && (is_done || !self.once && shown.is_none_or(|shown| shown.elapsed() >= every)) {
                for status in following.status() {
                    print_line(self.line(&status))?;
                }
                shown = Some(Instant::now());
            }
            if is_done {
                return Ok(());
            }
            if is_idle && following.is_source_replaced() {
                let text = format!(
                    "{}: the store was removed or replaced while it was followed; start again to follow the new one",
                    self.from.display()
                );
                return Err(Failure::error(code::IO, text));
            }
        }
    }

    fn start(&self, to: &Path) -> Result<Following, Failure> {
        let served = self.served()?;
        let origin = self.origin.unwrap_or(ORIGIN);
        let target = || self.create.added_to(options()).origin(origin).open(to);
        if self.two_way {
            let to = target()?;
            hashmere_feed::enable(&to, self.source_feed, true)?;
            let Some(served) = served else {
                let from = options().origin(origin).create(false).open(&self.from)?;
                hashmere_feed::enable(&from, self.source_feed, true)?;
                return Ok(Following::TwoWay(Box::new(TwoWay::open(&from, &to)?)));
            };
            return Ok(Following::TwoWay(Box::new(TwoWay::open_served(&served, &to)?)));
        }
        Ok(Following::OneWay(Box::new(match &served {
            Some(served) => Replicator::open_served(served, &target()?)?,
            None => Replicator::open(&self.source(options())?, &target()?)?,
        })))
    }

    /// FROM, if it is the address of a server.
    fn served(&self) -> Result<Option<Served>, Failure> {
        let usage = |text: &str| Err(Failure::Usage(format!("{}: {text}", self.from.display())));
        let address = self.from.to_str().filter(|text| Served::is_address(text));
        let Some(address) = address else {
            return match self.ca.is_some() || self.account.is_some() {
                true => usage("--ca and --account are for a FROM that is served (tcp://, tls://, unix:)"),
                false => Ok(None),
            };
        };
        if self.status {
            return usage("--status reads a copy of this machine; name that");
        }
        let mut served = Served::parse(address)?;
        if let Some(file) = &self.ca {
            served = served.authorities(file);
        }
        if let (Some(chain), Some(key)) = (&self.cert, &self.key) {
            served = served.identity(chain, key);
        }
        if let Some(file) = &self.account {
            served = served.account(file)?;
        }
        Ok(Some(served))
    }

    /// Opens the source for writing, so that its writers wake this process; read-only where that is not allowed and
    /// changes are kept already.
    fn source(&self, options: Options) -> Result<Store, Failure> {
        let opened = options.clone().create(false).open(&self.from);
        let from = match opened {
            Err(error @ OpenError::Io { .. }) => {
                let reader = options.read_only().open(&self.from)?;
                return if hashmere_feed::info(&reader).is_some() { Ok(reader) } else { Err(error.into()) };
            }
            opened => opened?,
        };
        hashmere_feed::enable(&from, self.source_feed, true)?;
        Ok(from)
    }

    fn print_status(&self, replica: &Store) -> Outcome {
        let Some(status) = status(replica)? else {
            return Err(Failure::NotMet(format!("{} is no copy of another store", shown(replica.path()))));
        };
        let mut output = Output::new();
        output.line(self.line(&status))?;
        output.finish()
    }

    fn line(&self, status: &ReplicaStatus) -> String {
        if self.json {
            let line = json!({
                "phase": status.phase.name(), "pid": status.pid, "position": status.position,
                "source_position": status.source_position, "lag": status.lag(), "lag_ms": status.lag_ms,
                "changes": status.changes, "copied": status.copied, "updated_ms": status.updated_ms,
            });
            return line.to_string();
        }
        let by = status.pid.map_or_else(|| "stopped".to_string(), |pid| format!("process {pid}"));
        format!(
            "{} ({by}): position {}, {} changes ({} ms) behind; {} keys copied, {} changes applied",
            status.phase.name(),
            status.position,
            status.lag(),
            status.lag_ms,
            status.copied,
            status.changes
        )
    }
}

fn options() -> Options {
    Options::new().on_recovery(show_rebuild)
}

/// What runs.
enum Following {
    OneWay(Box<Replicator>),
    TwoWay(Box<TwoWay>),
}

impl Following {
    fn step(&mut self, timeout: Duration) -> Result<bool, ReplicaError> {
        match self {
            Following::OneWay(replicator) => replicator.step(timeout),
            Following::TwoWay(two_way) => two_way.step(timeout),
        }
    }

    fn trouble(&self) -> Option<&str> {
        match self {
            Following::OneWay(replicator) => replicator.trouble(),
            Following::TwoWay(two_way) => two_way.trouble(),
        }
    }

    fn is_caught_up(&mut self) -> bool {
        match self {
            Following::OneWay(replicator) => replicator.is_caught_up(),
            Following::TwoWay(two_way) => two_way.is_caught_up(),
        }
    }

    fn status(&self) -> Vec<ReplicaStatus> {
        match self {
            Following::OneWay(replicator) => vec![replicator.status()],
            Following::TwoWay(two_way) => two_way.status(),
        }
    }

    fn is_source_replaced(&self) -> bool {
        match self {
            Following::OneWay(replicator) => replicator.is_source_replaced(),
            Following::TwoWay(_) => false,
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
