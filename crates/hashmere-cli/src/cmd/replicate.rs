//! `replicate`: a store follows another one, until the command is stopped.

use super::Outcome;
use crate::args::{show_rebuild, CreateOptions};
use crate::failure::{code, Failure};
use crate::output::{print_line, Output};
use crate::text;
use clap::{Args, ValueHint};
use hashmere::{OpenError, Options, Store};
use hashmere_replica::{status, ReplicaStatus, Replicator, Served, TwoWay, ORIGIN};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest sleep: status and source are looked at this often.
const PULSE: Duration = Duration::from_millis(100);

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
    /// Both stores are written to: the last writer of a key wins, on both sides. What is remembered of each key lies
    /// beside them, in files that end in .sidecar
    #[arg(long, conflicts_with = "status")]
    two_way: bool,
    /// End when every change that was there is applied
    #[arg(long)]
    once: bool,
    /// Bytes of changes that FROM keeps, if it keeps none yet
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size, default_value = "64M")]
    source_feed: u64,
    /// With tls://: the authorities of the server's certificate, or that certificate, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["status", "two_way"])]
    ca: Option<PathBuf>,
    /// With tls://: a certificate to show to the server, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires_all = ["ca", "key"])]
    cert: Option<PathBuf>,
    /// The key of --cert, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    key: Option<PathBuf>,
    /// File with a line name:password, where the server wants to be authenticated to
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["status", "two_way"])]
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
        let options = || Options::new().on_recovery(show_rebuild);
        let served = self.served()?;
        let Some(to) = &self.to else { return self.print_status(&options().create(false).open(&self.from)?) };
        if self.two_way {
            return self.both(options(), to, quiet);
        }
        let target = |options: Options| self.create.added_to(options).origin(ORIGIN).open(to);
        let mut replicator = match &served {
            Some(served) => Replicator::open_served(served, &target(options())?)?,
            None => Replicator::open(&self.source(options())?, &target(options())?)?,
        };
        let mut trouble = None;
        let every = self.every.unwrap_or(Duration::from_secs(1));
        let mut shown: Option<Instant> = None;
        loop {
            let timeout = if self.once && served.is_none() { Duration::ZERO } else { PULSE };
            let is_idle = !replicator.step(timeout)?;
            if trouble.as_deref() != replicator.trouble() {
                trouble = replicator.trouble().map(str::to_owned);
                let text = trouble.as_deref().unwrap_or("followed again");
                let text = format!("{}: {text}", self.from.display());
                if trouble.is_some() && self.once {
                    return Err(Failure::error(code::IO, text));
                }
                eprintln!("hashmere replicate: {text}");
            }
            let is_done = self.once && is_idle && replicator.is_caught_up();
            if !quiet && (is_done || !self.once && shown.is_none_or(|shown| shown.elapsed() >= every)) {
                print_line(self.line(&replicator.status()))?;
                shown = Some(Instant::now());
            }
            if is_done {
                return Ok(());
            }
            if is_idle && replicator.is_source_replaced() {
                let text = format!(
                    "{}: the store was removed or replaced while it was followed; start again to follow the new one",
                    self.from.display()
                );
                return Err(Failure::error(code::IO, text));
            }
        }
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
        if self.two_way {
            return usage("--two-way needs two stores of this machine; a store that is served is followed one way");
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

    fn both(&self, options: Options, to: &Path, quiet: bool) -> Outcome {
        let options = options.origin(ORIGIN);
        let a = options.clone().create(false).open(&self.from)?;
        let b = self.create.added_to(options).open(to)?;
        for store in [&a, &b] {
            hashmere_feed::enable(store, self.source_feed, false)?;
        }
        let mut two_way = TwoWay::open(&a, &b)?;
        let every = self.every.unwrap_or(Duration::from_secs(1));
        let mut shown: Option<Instant> = None;
        loop {
            let is_done = !two_way.step(if self.once { Duration::ZERO } else { PULSE / 5 })? && self.once;
            if !quiet && (is_done || !self.once && shown.is_none_or(|shown| shown.elapsed() >= every)) {
                for status in two_way.status() {
                    print_line(self.line(&status))?;
                }
                shown = Some(Instant::now());
            }
            if is_done {
                return Ok(());
            }
        }
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

fn shown(path: &Path) -> String {
    path.display().to_string()
}
