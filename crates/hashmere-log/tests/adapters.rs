//! What programs log through the crates `log` and `tracing` arrives whole: level, text, target, fields, spans.

#![allow(clippy::unwrap_used, reason = "a test: what is not there ends it")]

use hashmere::Options;
use hashmere_log::{Format, Level, Log, LogAdapter, LogOptions, OnNoDrainer, Sink, TracingLayer};
use log::Log as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tracing_subscriber::layer::SubscriberExt;

/// A store with a log, removed at the end.
struct Case {
    folder: PathBuf,
    log: Log,
}

impl Case {
    fn new(name: &str) -> Case {
        let folder = std::env::temp_dir().join(format!("hashmere-adapters-{name}-{}", std::process::id()));
        // What an ended process of the same number may have left.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let store = Options::new().open(folder.join("store.mere")).unwrap();
        let log = Log::open(&store, "log", LogOptions::new().on_no_drainer(OnNoDrainer::Keep)).unwrap();
        Case { folder, log }
    }

    /// The lines so far, as `LEVEL text fields`.
    fn lines(&self) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Sink::callback({
            let lines = lines.clone();
            move |record| {
                let mut line = Vec::new();
                Format::Text.write(record, &mut line);
                let line = String::from_utf8(line).unwrap();
                let (_, rest) = line.trim_end().split_once("]").unwrap();
                let (_, text) = rest.split_once(": ").unwrap();
                lines.lock().unwrap().push(format!("{} {text}", record.level().name()));
            }
        });
        self.log.drain_manual(sink).unwrap().finish().unwrap();
        let lines = lines.lock().unwrap().clone();
        lines
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn name(level: Level) -> &'static str {
    level.name()
}

#[test]
fn lines_of_the_crate_log() {
    let case = Case::new("log");
    case.log.set_level(Some(Level::Info));
    let adapter = LogAdapter::new(case.log.clone());
    let pairs: [(&str, log::kv::Value<'_>); 5] = [
        ("path", "/index".into()),
        ("ms", 1200u64.into()),
        ("change", (-3i64).into()),
        ("share", 0.5.into()),
        ("cached", true.into()),
    ];
    let mut record = log::Record::builder();
    record.target("web").level(log::Level::Warn).key_values(&pairs);
    adapter.log(&record.args(format_args!("slow request")).build());
    let plain = |level, text: &str| {
        adapter.log(&log::Record::builder().target("job").level(level).args(format_args!("{text}")).build());
    };
    plain(log::Level::Error, "failed");
    plain(log::Level::Debug, "not wanted");
    assert!(!adapter.enabled(&log::Metadata::builder().level(log::Level::Debug).build()));
    assert!(adapter.enabled(&log::Metadata::builder().level(log::Level::Info).build()));
    // Too long for one piece: it goes without its fields, in parts.
    let long = "x".repeat(3 * case.log.line_max() as usize / 2);
    plain(log::Level::Info, &long);
    let lines = case.lines();
    assert_eq!(
        lines[0],
        format!("{} slow request target=web path=/index ms=1200 change=-3 share=0.5 cached=true", name(Level::Warn))
    );
    assert_eq!(lines[1], format!("{} failed target=job", name(Level::Error)));
    let parts: usize = lines[2..].iter().map(|line| line.matches('x').count()).sum();
    assert_eq!(parts, long.len(), "{} parts", lines.len() - 2);
}

#[test]
fn events_of_the_crate_tracing() {
    let case = Case::new("tracing");
    case.log.set_level(Some(Level::Debug));
    let layer = TracingLayer::new(case.log.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        tracing::info!(target: "job", count = 3u64, "started");
        let request = tracing::info_span!("request", user = "ada", status = tracing::field::Empty);
        let _request = request.enter();
        request.record("status", 200i64);
        let query = tracing::debug_span!("query", cached = false);
        let _query = query.enter();
        tracing::error!(target: "db", ratio = 0.25, "lost {}", "connection");
        tracing::trace!("not wanted");
    });
    let expected = [
        format!("{} started target=job count=3", name(Level::Info)),
        format!(
            "{} lost connection target=db user=ada status=200 cached=false spans=request>query ratio=0.25",
            name(Level::Error)
        ),
    ];
    assert_eq!(case.lines(), expected);
}
