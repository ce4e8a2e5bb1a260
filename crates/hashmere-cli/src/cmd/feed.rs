//! `feed`.

use super::Outcome;
use crate::args::{Escape, StoreArgs};
use crate::failure::{code, Failure};
use crate::output::Output;
use crate::text;
use clap::{Args, ValueHint};
use hashmere::Store;
use hashmere_feed::{Feed, FeedError, FeedOptions, FeedStart};
use hashmere_os::process::{catch_stop, is_asked_to_stop};
use hashmere_sinks::{pump, DirSink, DirSync, Position, PumpError, PumpOptions, Sink, Source, SourceError, Target};
use std::ffi::OsString;
use std::time::Duration;

/// Follow the changes of a store: JSON lines, or into another engine.
///
/// Prints one line for each change, in the envelope of Debezium, until it is stopped. With --to they go to a stream of
/// NATS or Redis, a topic of Kafka, or into a folder, which also keeps how far they have come: the command goes on from
/// there when it is started again, and begins with every key where there is nothing yet.
#[derive(Args, Debug)]
#[command(after_help = "SINK is one of\n  \
    nats://[USER:PASSWORD@]HOST[:PORT]/STREAM[?max_bytes=N&max_len=N&replicas=N]\n  \
    nats-kv://[USER:PASSWORD@]HOST[:PORT]/BUCKET[?replicas=N]\n  \
    redis://[USER:PASSWORD@]HOST[:PORT]/STREAM[?db=N&max_len=N]\n  \
    kafka://[USER:PASSWORD@]HOST[:PORT]/TOPIC[?partitions=N&replicas=N]\n  \
    tls://, tls-kv://, rediss://, kafkas://: the same with TLS, ?ca=FILE[&cert=FILE&key=FILE]\n  \
    dir:PATH")]
pub struct FeedOf {
    #[command(flatten)]
    store: StoreArgs,
    /// Where to begin: behind a token, with the next change, or with every key (default: now; with --to, where the sink
    /// is, or else start)
    #[arg(long, value_name = "TOKEN|now|start", value_parser = parse_start)]
    from: Option<FeedStart>,
    /// Only keys that begin with this
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<OsString>,
    /// With the values
    #[arg(long)]
    values: bool,
    /// Send them to this sink
    #[arg(long, value_name = "SINK", value_hint = ValueHint::Url)]
    to: Option<Target>,
    /// End when there are no more changes for the moment
    #[arg(long)]
    once: bool,
    /// When a folder puts changes on the disk: `batch` before it takes more, `never` leaves it to the system, or this
    /// long after they came
    #[arg(long, value_name = "batch|never|TIME", value_parser = parse_sync, requires = "to")]
    sync: Option<DirSync>,
    /// Bytes of a folder's file after which the next one is begun (default 64M)
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size, requires = "to")]
    rotate: Option<u64>,
    /// Make the store keep about this many bytes of changes (with --values: and their values), and end
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size, conflicts_with_all = ["from", "prefix", "to"])]
    enable: Option<u64>,
    /// Make the store keep no changes, and end
    #[arg(long, conflicts_with_all = ["from", "prefix", "values", "to", "enable"])]
    disable: bool,
    #[command(flatten)]
    escape: Escape,
}

impl FeedOf {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        if let Some(bytes) = self.enable {
            return Ok(hashmere_feed::enable(&self.store.writer()?, bytes, self.values)?);
        }
        if self.disable {
            let was_on = hashmere_feed::disable(&self.store.writer()?)?;
            return if was_on { Ok(()) } else { Err(Failure::NotMet("the store keeps no changes".into())) };
        }
        let is_dir = matches!(self.to, Some(Target::Dir(_)));
        if !is_dir && (self.sync.is_some() || self.rotate.is_some()) {
            return Err(Failure::Usage("--sync and --rotate are for a folder: --to dir:PATH".into()));
        }
        let needs_values = self.to.as_ref().is_some_and(Target::needs_values);
        let mut options = FeedOptions::new().values(self.values || needs_values);
        if let Some(prefix) = &self.prefix {
            options = options.prefix(self.escape.bytes("PREFIX", prefix)?);
        }
        // One that writes is woken by changes; one that only reads has to look for them.
        let store = self.store.writer()?;
        catch_stop();
        match self.to {
            None => print(Feed::open(&store, self.from.unwrap_or(FeedStart::Now), options)?, self.once),
            Some(target) => {
                let mut sink: Box<dyn Sink> = match target {
                    Target::Dir(path) => {
                        let sink = DirSink::new(path).sync(self.sync.unwrap_or_default());
                        Box::new(match self.rotate {
                            Some(bytes) => sink.rotate_bytes(bytes),
                            None => sink,
                        })
                    }
                    target => target.sink(),
                };
                send(&store, sink.as_mut(), self.from, &options, self.once, quiet)
            }
        }
    }
}

fn print(mut feed: Feed, once: bool) -> Outcome {
    const AT_ONCE: usize = 1024;
    const WAIT: Duration = Duration::from_millis(100);
    let mut output = Output::new();
    let mut line = Vec::new();
    while !is_asked_to_stop() {
        let batch = feed.next_batch(AT_ONCE, if once { Duration::ZERO } else { WAIT })?;
        for event in &batch {
            line.clear();
            event.write_json(&mut line);
            output.line(&line)?;
        }
        output.flush()?;
        if once && batch.is_empty() {
            break;
        }
    }
    output.finish()
}

fn send(
    store: &Store,
    sink: &mut dyn Sink,
    from: Option<FeedStart>,
    options: &FeedOptions,
    once: bool,
    quiet: bool,
) -> Outcome {
    let open = |at: Option<&Position>| -> Result<Box<dyn Source>, SourceError> {
        let start = at.map_or(from.unwrap_or(FeedStart::Start), |at| FeedStart::At(at.token));
        Ok(Box::new(Feed::open(store, start, options.clone())?))
    };
    let mut report = |error: &hashmere_sinks::SinkError| {
        if !quiet {
            eprintln!("hashmere: {error}; trying again");
        }
    };
    let moving = PumpOptions { once, ..PumpOptions::default() };
    match pump(sink, open, &moving, &is_asked_to_stop, &mut report) {
        Ok(_) => Ok(()),
        Err(PumpError::Sink(error)) => Err(Failure::error(code::SINK, error.to_string())),
        Err(PumpError::Source(error)) => match error.0.downcast::<FeedError>() {
            Ok(error) => Err((*error).into()),
            Err(error) => Err(Failure::error(code::SINK, error.to_string())),
        },
    }
}

fn parse_start(text: &str) -> Result<FeedStart, String> {
    match text {
        "now" => Ok(FeedStart::Now),
        "start" => Ok(FeedStart::Start),
        token => token.parse().map(FeedStart::At).map_err(|error: hashmere_feed::BadToken| error.to_string()),
    }
}

fn parse_sync(text: &str) -> Result<DirSync, String> {
    match text {
        "batch" => Ok(DirSync::Batch),
        "never" => Ok(DirSync::Never),
        time => {
            text::parse_duration(time).map(DirSync::Every).map_err(|error| format!("batch, never, or a time: {error}"))
        }
    }
}
