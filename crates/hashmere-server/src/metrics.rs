//! Metrics in the forms of Prometheus and OpenMetrics, of a store and of a server.

use crate::server::{now_ms, Server};
use crate::stats::counters::Totals;
use hashmere::{Stats, Store};
use hashmere_format::region::kind;
use hashmere_replica::{ReplicaPhase, ReplicaStatus};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prometheus's text, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

/// Whether a figure only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// A figure of a store.
#[derive(Debug)]
pub struct Figure {
    /// What it is called in `/api/stats`; metrics put `hashmere_store_` in front.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: Kind,
    /// What it is.
    pub help: &'static str,
    /// Its value.
    pub read: fn(&Stats) -> u64,
}

macro_rules! figures {
    ($($kind:ident $name:literal $help:literal $read:expr,)+) => {
        &[$(Figure { name: $name, kind: Kind::$kind, help: $help, read: $read },)+]
    };
}

/// The figures of a store.
pub const STORE: &[Figure] = figures! {
    Gauge "items" "Keys, expired ones included until they are cleaned away." |s| s.items,
    Gauge "live_bytes" "Records that live, headers and padding included." |s| s.bytes_live,
    Gauge "dead_bytes" "Records that were superseded or deleted and still take room." |s| s.bytes_dead,
    Gauge "free_bytes" "Room in segments that nothing was written to yet." |s| s.bytes_free,
    Gauge "index_bytes" "Segments of the index." |s| s.segments_index.saturating_mul(s.segment_bytes),
    Gauge "file_bytes" "Size of the file." |s| s.bytes_file,
    Gauge "allocated_bytes" "Memory or disk that the file takes." |s| s.bytes_allocated,
    Gauge "max_bytes" "The maximum size; 0: none." |s| s.bytes_max,
    Gauge "no_space" "1 while the file system refuses more memory." |s| u64::from(s.no_space_since_ms != 0),
    Gauge "segments" "Segments of the file." |s| s.segments_total,
    Gauge "segments_log" "Segments of records." |s| s.segments_log,
    Gauge "segments_index" "Segments of the index." |s| s.segments_index,
    Gauge "segments_large" "Segments of large records." |s| s.segments_large,
    Gauge "segments_free" "Free segments." |s| s.segments_free,
    Gauge "segments_region" "Segments of regions: queues, logs, feed." |s| s.segments_region,
    Gauge "segments_waiting" "Durable stores: segments that are free after the next sync." |s| s.segments_waiting,
    Gauge "segments_offline" "Segments that a lower maximum took out of use." |s| s.segments_offline,
    Gauge "index_slots" "Slots of the index." |s| s.index_slots,
    Gauge "index_used" "Slots of the index in use." |s| s.index_used,
    Gauge "index_overflow" "Keys in the overflow tree of the index." |s| s.index_overflow,
    Gauge "clients" "Threads that have the store open for writing." |s| s.clients.len() as u64,
    Gauge "pins" "Segments that views keep from being cleaned." |s| s.clients.iter().map(|client| client.pins).sum(),
    Gauge "poisoned" "1 if a flush of a durable store has failed: nothing is written any more." |s| u64::from(s.poisoned),
    Gauge "backup_running" "1 while a backup is made." |s| u64::from(s.backup_pid.is_some()),
    Gauge "last_sync_timestamp_seconds" "Durable stores: when the last sync was completed." |s| s.last_sync_ms / 1000,
    Gauge "feed_bytes" "What the change feed takes; 0: there is none." |s| s.feed.map_or(0, |feed| feed.bytes),
    Gauge "feed_kept" "Changes that the feed keeps." |s| s.feed.map_or(0, |feed| feed.position.saturating_sub(feed.oldest)),
    Counter "feed_changes" "Changes that went into the feed." |s| s.feed.map_or(0, |feed| feed.position),
    Counter "hits" "Reads that found their key, of all processes." |s| s.hits,
    Counter "misses" "Reads that did not, of all processes." |s| s.misses,
    Counter "sets" "Values stored, by all processes." |s| s.sets,
    Counter "deletes" "Keys deleted, by all processes." |s| s.deletes,
    Counter "evictions" "Records dropped to make room." |s| s.evictions,
    Counter "expiries" "Records dropped because they had expired." |s| s.expiries,
    Counter "segments_cleaned" "Segments cleaned." |s| s.segments_cleaned,
    Counter "records_moved" "Records moved by cleaning." |s| s.records_moved,
    Counter "splits" "Leaves of the index split." |s| s.splits,
    Counter "lock_waits" "Locks that were not free at once." |s| s.lock_waits,
    Counter "takeovers" "Crashed clients repaired." |s| s.takeovers,
    Counter "read_retries" "Reads repeated because a segment was recycled during them." |s| s.read_retries,
    Counter "clears" "Times the store was cleared." |s| s.clears,
    Counter "syncs" "Durable stores: syncs completed." |s| s.syncs,
};

type ReplicaFigure = (&'static str, Kind, &'static str, fn(&ReplicaStatus) -> u64);

/// The figures of a store that follows another one, or followed it.
const REPLICA: &[ReplicaFigure] = &[
    ("running", Kind::Gauge, "1 while a process applies the source's changes.", |s| u64::from(s.pid.is_some())),
    ("live", Kind::Gauge, "1 after the first copy.", |s| u64::from(s.phase == ReplicaPhase::Live)),
    ("lag", Kind::Gauge, "Changes of the source that are not applied yet.", ReplicaStatus::lag),
    ("lag_milliseconds", Kind::Gauge, "How long the replica is behind its source.", |s| s.lag_ms_at(now_ms())),
    ("changes", Kind::Counter, "Changes that were applied.", |s| s.changes),
];

/// What a region is.
pub(crate) fn kind_of(number: u64) -> &'static str {
    match number {
        kind::POOL => "queues",
        kind::LOG => "log",
        kind::FEED => "feed",
        kind::REPLICA => "replica",
        kind::ATOMICS => "atomics",
        _ => "other",
    }
}

/// What a store is called: the name of its file without the ending.
pub fn name_of(store: &Store) -> String {
    store.path().file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

impl Form {
    /// The one that an `Accept` header asks for.
    pub fn of(accept: Option<&[u8]>) -> Form {
        let asks = |accept| memchr::memmem::find(accept, b"application/openmetrics-text").is_some();
        if accept.is_some_and(asks) {
            Form::OpenMetrics
        } else {
            Form::Prometheus
        }
    }

    /// The type of the content.
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Text that is written family by family.
struct Text {
    form: Form,
    out: String,
}

impl Text {
    fn family(&mut self, name: &str, kind: Kind, help: &str, samples: &[(&str, u64)]) {
        // Prometheus describes a counter under the name of its sample, OpenMetrics under that of its family.
        let (kind, family, suffix) = match (kind, self.form) {
            (Kind::Gauge, _) => ("gauge", "", ""),
            (Kind::Counter, Form::Prometheus) => ("counter", "_total", "_total"),
            (Kind::Counter, Form::OpenMetrics) => ("counter", "", "_total"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.out, "# HELP {name}{family} {help}\n# TYPE {name}{family} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.out, "{name}{suffix}{labels} {value}");
        }
    }

    fn stores(&mut self, stores: &[(String, &Store, &Stats)]) {
        // A place that cannot be looked up is none: the other figures are given all the same.
        let replicas: Vec<(&str, ReplicaStatus)> = stores
            .iter()
            .filter_map(|(labels, store, _)| Some((labels.as_str(), hashmere_replica::status(store).ok()??)))
            .collect();
        for figure in STORE {
            let samples: Vec<(&str, u64)> =
                stores.iter().map(|(labels, _, stats)| (labels.as_str(), (figure.read)(stats))).collect();
            self.family(&format!("hashmere_store_{}", figure.name), figure.kind, figure.help, &samples);
        }
        for (name, kind, help, read) in REPLICA.iter().filter(|_| !replicas.is_empty()) {
            let samples: Vec<(&str, u64)> = replicas.iter().map(|(labels, status)| (*labels, read(status))).collect();
            self.family(&format!("hashmere_replica_{name}"), *kind, help, &samples);
        }
    }

    fn end(mut self) -> String {
        if self.form == Form::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

/// The labels of a store of this name.
fn labels(name: &str) -> String {
    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{{store=\"{escaped}\"}}")
}

/// The metrics of stores, each with a name for its label.
pub fn of_stores(stores: &[(String, &Store)], form: Form) -> String {
    let made: Vec<Stats> = stores.iter().map(|(_, store)| store.stats()).collect();
    let labelled: Vec<(String, &Store, &Stats)> =
        stores.iter().zip(&made).map(|((name, store), stats)| (labels(name), *store, stats)).collect();
    let mut text = Text { form, out: String::new() };
    text.stores(&labelled);
    text.end()
}

/// The metrics of a server and of its store.
pub(crate) fn of_server(server: &Server, form: Form) -> String {
    let mut text = Text { form, out: String::new() };
    let gauges: [(&str, &str, u64); 9] = [
        ("up", "1: the server answers.", 1),
        ("uptime_seconds", "Time since the server was started.", server.started.elapsed().as_secs()),
        ("threads", "Event loops.", server.counters.len() as u64),
        ("open_connections", "Open connections, of all protocols.", server.open.load(Ordering::Relaxed) as u64),
        ("max_connections", "Most connections at a time (-c).", server.config.connections as u64),
        ("input_bytes", "Unfinished requests that connections hold.", server.input.load(Ordering::Relaxed) as u64),
        ("max_item_bytes", "Largest item (-I).", server.config.item_max),
        ("change_streams", "Clients that follow /changes.", server.streams.figures().http_streams),
        ("feed_streams", "Connections that get the changes by `feed`.", server.streams.figures().streams),
    ];
    for (name, help, value) in gauges {
        text.family(&format!("hashmere_{name}"), Kind::Gauge, help, &[("", value)]);
    }
    Totals::of(&server.counters).each(|name, help, value| {
        text.family(&format!("hashmere_{name}"), Kind::Counter, help.trim(), &[("", value)]);
    });
    text.stores(&[(labels(&name_of(&server.store)), &server.store, &server.recent_stats().stats)]);
    text.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_counter_and_a_gauge() {
        let text = |form| {
            let mut text = Text { form, out: String::new() };
            text.family("a", Kind::Counter, "A.", &[("", 1)]);
            text.family("b", Kind::Gauge, "B.", &[("{store=\"x\"}", 2)]);
            text.end()
        };
        let gauge = "# HELP b B.\n# TYPE b gauge\nb{store=\"x\"} 2\n";
        assert_eq!(text(Form::Prometheus), format!("# HELP a_total A.\n# TYPE a_total counter\na_total 1\n{gauge}"));
        assert_eq!(text(Form::OpenMetrics), format!("# HELP a A.\n# TYPE a counter\na_total 1\n{gauge}# EOF\n"));
    }

    #[test]
    fn names_are_escaped_and_forms_asked_for() {
        assert_eq!(labels("a\"b\\c\nd"), "{store=\"a\\\"b\\\\c\\nd\"}");
        assert_eq!(Form::of(Some(b"application/openmetrics-text;version=1.0.0,*/*")), Form::OpenMetrics);
        assert_eq!((Form::of(Some(b"text/plain")), Form::of(None)), (Form::Prometheus, Form::Prometheus));
    }
}
