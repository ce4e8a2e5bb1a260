//! The page: tables and plots, with the machine, the command and the date beside them.

use super::plot::Plot;
use crate::report::figures;
use crate::report::systems::{self, label, System};
use crate::results::{median, Results};
use std::fmt::Write;

const OURS: &str = systems::HASHMERE.id;
/// Records of the second workload, whose figures go on the plots of all sizes.
const MANY: &str = "10000000";

/// The plots for which there are figures.
pub fn plots(results: &Results) -> Vec<(&'static str, Plot<'static>)> {
    let sized = |metric: &str| {
        let mut lines = Vec::new();
        for system in systems::ALL {
            let mut points: Vec<(f64, f64)> = sizes(results)
                .into_iter()
                .filter_map(|size| Some((size.parse().ok()?, of_size(results, system.id, metric, &size)?)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if points.len() > 1 {
                lines.push((name(system.id), points));
            }
        }
        lines
    };
    let mut scale = Vec::new();
    for (system, of) in [(systems::HASHMERE, ""), (systems::HASH_MAP, "private HashMaps, ")] {
        for (test, words) in [("rate-get", "gets"), ("rate-mixed", "2 % sets")] {
            let points: Vec<(f64, f64)> = [1u32, 2, 4, 8, 16]
                .into_iter()
                .filter_map(|n| Some((n.into(), results.median("scale", system.id, &format!("{test}-{n}"))? / 1e6)))
                .collect();
            if points.len() > 1 {
                scale.push((format!("{}{words}", if of.is_empty() { "Hashmere, " } else { of }), points));
            }
        }
    }
    let plot = |title, x, y, lines| Plot { title, x, y, lines };
    let all = [
        ("get", plot("A random get", "records", "ns", sized("get_ns"))),
        ("load", plot("A set while loading", "records", "ns", sized("load_ns"))),
        (
            "bytes",
            plot("What a record of 8 + 8 bytes takes", "records", "bytes", large_only(sized("bytes_per_record"))),
        ),
        ("processes", plot("Random keys of a million records", "processes", "million operations a second", scale)),
        ("hits-99", plot("Hits of a cache, Zipf 0.99", "MiB", "percent", hits(results, "0.99"))),
        ("hits-80", plot("Hits of a cache, Zipf 0.8", "MiB", "percent", hits(results, "0.8"))),
    ];
    all.into_iter().filter(|(_, plot)| !plot.lines.is_empty()).collect()
}

/// Of a small table the program around it takes more than the table.
fn large_only(lines: Vec<(String, Vec<(f64, f64)>)>) -> Vec<(String, Vec<(f64, f64)>)> {
    let large = |points: Vec<(f64, f64)>| points.into_iter().filter(|(records, _)| *records >= 1e5).collect();
    let lines = lines.into_iter().map(|(name, points)| (name, large(points)));
    lines.filter(|(_, points): &(String, Vec<_>)| points.len() > 1).collect()
}

fn hits(results: &Results, law: &str) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines = Vec::new();
    for system in [systems::HASHMERE, systems::MEMCACHED, systems::PERFECT] {
        let points: Vec<(f64, f64)> = memories(results)
            .into_iter()
            .filter_map(|mib| Some((f64::from(mib), results.median("cache", system.id, &format!("hits@{law}@{mib}"))?)))
            .collect();
        if points.len() > 1 {
            lines.push((name(system.id), points));
        }
    }
    lines
}

/// A label without what comes after a comma.
fn name(id: &str) -> String {
    label(id).split(',').next().unwrap_or_default().to_string()
}

/// The sizes that were measured, those of the second workload among them.
fn sizes(results: &Results) -> Vec<String> {
    let mut sizes: Vec<String> = results
        .groups
        .get("sizes")
        .and_then(|systems| systems.get(OURS))
        .into_iter()
        .flat_map(|metrics| metrics.keys().filter_map(|metric| metric.strip_prefix("get_ns@")))
        .map(str::to_string)
        .collect();
    if results.median("w2", OURS, "get_ns").is_some() {
        sizes.push(MANY.to_string());
    }
    sizes.sort_by_key(|size| size.parse::<u64>().unwrap_or(0));
    sizes
}

fn of_size(results: &Results, system: &str, metric: &str, size: &str) -> Option<f64> {
    // A line of the plot is of one system: what only the second workload has is not on it.
    if system == systems::HASHMERE_EXPECTED.id || system == systems::TKRZW_HASH.id {
        return None;
    }
    match size {
        MANY => results.median("w2", system, metric),
        _ => results.median("sizes", system, &format!("{metric}@{size}")),
    }
}

fn memories(results: &Results) -> Vec<u32> {
    let metrics = results.groups.get("cache").and_then(|systems| systems.get(OURS));
    let names = metrics.into_iter().flat_map(|metrics| metrics.keys());
    let mut all: Vec<u32> = names.filter_map(|name| name.rsplit('@').next()?.parse().ok()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The page.
pub fn markdown(results: &Results, plots: &[(&str, Plot)]) -> String {
    let mut page = Page { text: String::new(), results };
    page.head();
    page.hot();
    page.many(plots);
    page.shared(plots);
    page.cache(plots);
    page.queues();
    page.log();
    page.transactions();
    page.space();
    page.bars();
    page.text + ELSEWHERE
}

const ELSEWHERE: &str = "
## Elsewhere

- What each operation costs in instructions, cache lines, atomics and system calls, by
  `bench/budget`: [concurrency](internals/concurrency.md#the-budget-of-each-hot-path)
- [Queues](internals/queues.md#what-it-costs), [log](internals/log.md#what-it-costs),
  [backup](internals/backup.md#what-it-costs), [the server](internals/protocol.md#measured),
  [rebuilding after a power cut](internals/durability.md#costs)
- [A call from C](internals/abi.md), [Python](../bindings/python/README.md#how-fast),
  [Ruby](../bindings/ruby/README.md#how-fast)
- How to run each benchmark, and what its figures mean: [bench](../bench/README.md)
";

struct Page<'a> {
    text: String,
    results: &'a Results,
}

impl Page<'_> {
    fn line(&mut self, text: std::fmt::Arguments) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{text}");
    }

    /// A paragraph, in lines of at most a hundred columns.
    fn paragraph(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.len() + 1 + word.len() > 100 {
                self.line(format_args!("{line}"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(format_args!("{line}\n"));
    }

    fn row(&mut self, cells: &[String]) {
        self.line(format_args!("| {} |", cells.join(" | ")));
    }

    fn head_row(&mut self, cells: &[&str]) {
        self.row(&cells.iter().map(|cell| (*cell).to_string()).collect::<Vec<_>>());
        self.line(format_args!("|{}", "---|".repeat(cells.len())));
    }

    fn plot(&mut self, plots: &[(&str, Plot)], name: &str) {
        if let Some((name, plot)) = plots.iter().find(|(other, _)| *other == name) {
            self.line(format_args!("![{}](performance/{name}.svg)\n", plot.title));
        }
    }

    fn median(&self, group: &str, system: &str, metric: &str) -> Option<f64> {
        self.results.median(group, system, metric)
    }

    /// The median, and the range if there are several figures.
    fn figure(&self, group: &str, system: &str, metric: &str, by: f64) -> String {
        let all = self.results.sorted(group, system, metric);
        let Some(middle) = median(&all) else { return "-".to_string() };
        match all.as_slice() {
            [first, .., last] => format!(
                "{} ({} to {})",
                figures::number(Some(middle / by)),
                figures::number(Some(first / by)),
                figures::number(Some(last / by))
            ),
            _ => figures::number(Some(middle / by)),
        }
    }

    /// The time of a system as a multiple of ours.
    fn multiple(&self, group: &str, system: &str, metric: &str) -> String {
        match (self.median(group, system, metric), self.median(group, OURS, metric)) {
            (Some(other), Some(ours)) if ours > 0.0 => format!("{:.2}", other / ours),
            _ => "-".to_string(),
        }
    }

    /// The systems of a group for which there are figures, in the order of the reports.
    fn systems(&self, group: &str, metric: &str) -> Vec<System> {
        systems::ALL.into_iter().filter(|system| self.median(group, system.id, metric).is_some()).collect()
    }

    fn head(&mut self) {
        let results = self.results;
        self.text += "# Performance\n\n";
        self.text += "<!-- Written by bench/document from bench/results/latest.json. -->\n\n";
        self.paragraph(
            "Every system runs in a process of its own, in one run, in interleaved order; every value that is read is \
             compared. Figures of different machines or hours do not compare; ratios within one run do. Where two \
             numbers follow in brackets they are the least and the largest of the runs, before them the median.",
        );
        let versions = results.versions.iter().map(|(name, version)| format!("{name} {version}"));
        let versions: Vec<String> = versions.collect();
        self.paragraph(&format!(
            "`{}` (what takes seconds at least three times), {}, commit {}, on {}, tmpfs; load {} before and {} after. Simple things cost on it: \
             {}. Debian packages: {}. All figures: [bench/results/latest.json](../bench/results/latest.json).",
            results.command,
            results.date,
            results.commit,
            results.machine,
            results.load.0,
            results.load.1,
            results.costs,
            versions.join(", ")
        ));
    }

    fn hot(&mut self) {
        let systems = self.systems("w1", "pair_ns");
        if systems.is_empty() {
            return;
        }
        self.text += "## 10,000 hot keys\n\n";
        self.paragraph("One process sets a key to its own text, gets it and compares, two million times; nanoseconds.");
        self.head_row(&["system", "set and get", "set alone", "get alone", "set and get, times Hashmere's"]);
        for system in systems {
            let cells = ["pair_ns", "set_ns", "get_ns"].map(|metric| self.figure("w1", system.id, metric, 1.0));
            let [pair, set, get] = cells;
            let multiple = self.multiple("w1", system.id, "pair_ns");
            self.row(&[system.label.to_string(), pair, set, get, multiple]);
        }
        self.text.push('\n');
    }

    fn many(&mut self, plots: &[(&str, Plot)]) {
        let systems = self.systems("w2", "get_ns");
        if !systems.is_empty() {
            self.text += "## Ten million records\n\n";
            self.paragraph(
                "Keys and values of 8 bytes, loaded in shuffled order, then as many random gets; nanoseconds. Bytes are \
                 what the files or the process really take, all included, by records.",
            );
            self.head_row(&["system", "set", "random get", "get in bulks of 32", "bytes", "get, times Hashmere's"]);
            for system in systems {
                let cells = ["load_ns", "get_ns", "bulk_ns", "bytes_per_record"];
                let [load, get, bulk, bytes] = cells.map(|metric| self.figure("w2", system.id, metric, 1.0));
                let multiple = self.multiple("w2", system.id, "get_ns");
                self.row(&[system.label.to_string(), load, get, bulk, bytes, multiple]);
            }
            self.text.push('\n');
        }
        if plots.iter().any(|(name, _)| *name == "get") {
            self.text += "## From small to large\n\n";
            self.plot(plots, "get");
            self.plot(plots, "load");
            self.plot(plots, "bytes");
        }
        let systems = self.systems("growth", "p50_us");
        if !systems.is_empty() {
            self.text += "## Each single set while growing to ten million\n\n";
            self.paragraph(
                "Microseconds. *On a core* is the longest in time for which the thread had a core; *idle* the longest \
                 step of a loop that only reads the clocks for as long in the same process, which is the machine's own.",
            );
            self.head_row(&["system", "p50", "p99", "p99.9", "longest", "on a core", "idle"]);
            for system in systems {
                let metrics = ["p50_us", "p99_us", "p999_us", "max_us", "core_max_us", "idle_max_us"];
                let mut cells = vec![system.label.to_string()];
                cells.extend(metrics.map(|metric| self.figure("growth", system.id, metric, 1.0)));
                self.row(&cells);
            }
            self.text.push('\n');
        }
    }

    fn shared(&mut self, plots: &[(&str, Plot)]) {
        if self.systems("scale", "rate-get-1").is_empty() {
            return;
        }
        self.text += "## Processes at once\n\n";
        self.paragraph(
            "Random keys of a million records in one store; maps that share nothing show what the machine gives at best. \
             Million operations a second, all processes together.",
        );
        self.head_row(&["", "one", "two", "two, times one"]);
        for (test, words) in [("rate-get", "gets"), ("rate-mixed", "2 % sets")] {
            for system in self.systems("scale", &format!("{test}-1")) {
                let of = if system.id == OURS { "Hashmere" } else { "private `HashMap`s" };
                let rate = |n| self.figure("scale", system.id, &format!("{test}-{n}"), 1e6);
                let gain = self.figure("scale", system.id, &format!("{test}-gain"), 1.0);
                let cells = [format!("{of}, {words}"), rate(1), rate(2), gain];
                self.row(&cells);
            }
        }
        self.text.push('\n');
        self.plot(plots, "processes");
    }

    fn cache(&mut self, plots: &[(&str, Plot)]) {
        let memories = memories(self.results);
        if memories.is_empty() {
            return;
        }
        self.text += "## What a cache answers\n\n";
        self.paragraph(
            "Two million keys of 8 bytes with values of 100, asked for by Zipf's law; a miss is filled. Percent of hits \
             after as many requests to fill it.",
        );
        self.head_row(&["law", "MiB", "Hashmere", "memcached", "the most frequent, nothing but keys and values"]);
        for law in ["0.99", "0.8"] {
            for mib in &memories {
                let of = |system: &System| self.figure("cache", system.id, &format!("hits@{law}@{mib}"), 1.0);
                let cells = [of(&systems::HASHMERE), of(&systems::MEMCACHED), of(&systems::PERFECT)];
                let [ours, memcached, perfect] = cells;
                self.row(&[format!("Zipf {law}"), mib.to_string(), ours, memcached, perfect]);
            }
        }
        self.text.push('\n');
        self.plot(plots, "hits-99");
        self.plot(plots, "hits-80");
    }

    fn queues(&mut self) {
        if self.median("queue", OURS, "spsc_mps").is_none() {
            return;
        }
        self.text += "## Queues\n\n";
        self.paragraph("Between two processes, each on a core of its own; the others between two threads.");
        self.head_row(&["", "Hashmere", "rtrb", "crossbeam `ArrayQueue`"]);
        let rows = [
            ("million moves a second, batches of 1,000, both moving", "batch_beside_mps", None, None),
            ("million moves a second, one by one, one producer and one consumer", "spsc_mps", Some("single_mps"), None),
            ("million moves a second, one by one, several of each", "mpmc_mps", None, Some("single_mps")),
            ("ns one way, one by one, to a receiver that spins", "apart_spsc_ns", None, None),
            ("ns there and back at once, half", "spin_spsc_ns", Some("spin_ns"), None),
        ];
        for (words, metric, rtrb, crossbeam) in rows {
            let of = |system: &System, metric: Option<&str>| {
                metric.map_or("".to_string(), |metric| self.figure("queue", system.id, metric, 1.0))
            };
            let cells = [
                words.to_string(),
                of(&systems::HASHMERE, Some(metric)),
                of(&systems::RTRB, rtrb),
                of(&systems::CROSSBEAM, crossbeam),
            ];
            self.row(&cells);
        }
        self.text.push('\n');
    }

    fn log(&mut self) {
        if self.median("log", OURS, "line_ns").is_none() {
            return;
        }
        self.text += "## Log\n\n";
        self.head_row(&["ns a line", "Hashmere", "spdlog, asynchronous"]);
        for (words, metric) in [
            ("a call, a line of 36 bytes as it is", "line_ns"),
            ("a call, the same formatted", "format_ns"),
            ("many lines in one go, up to the file", "sustained_ns"),
            ("four processes at once, up to the file", "four_ns"),
        ] {
            let of = |system: &System| self.figure("log", system.id, metric, 1.0);
            let cells = [words.to_string(), of(&systems::HASHMERE), of(&systems::SPDLOG)];
            self.row(&cells);
        }
        self.text.push('\n');
    }

    fn transactions(&mut self) {
        if self.median("transactions", OURS, "txn-2-1").is_none() {
            return;
        }
        self.text += "## Transactions\n\n";
        self.paragraph(
            "Transactions of sets of random keys among 300,000 records of 8 + 20 bytes, each process with keys of its own; \
             transfers between two of 10,000 accounts. Thousand transactions a second, all processes together.",
        );
        self.head_row(&["", "one process", "two", "two, times one"]);
        for (test, words) in [("txn-2", "2 sets"), ("txn-10", "10 sets"), ("txn-bank", "a transfer")] {
            for system in self.systems("transactions", &format!("{test}-1")) {
                let rate = |n| self.figure("transactions", system.id, &format!("{test}-{n}"), 1e3);
                let gain = self.figure("transactions", system.id, &format!("{test}-gain"), 1.0);
                let cells = [format!("{words}: {}", system.label), rate(1), rate(2), gain];
                self.row(&cells);
            }
        }
        self.text.push('\n');
    }

    fn space(&mut self) {
        if self.median("space", OURS, "empty_allocated").is_none() {
            return;
        }
        let of = |metric, by| self.figure("space", OURS, metric, by);
        let share = match (self.median("space", OURS, "deleted_bytes"), self.median("space", OURS, "full_bytes")) {
            (Some(left), Some(full)) if full > 0.0 => figures::number(Some(100.0 * left / full)),
            _ => "-".to_string(),
        };
        let text = format!(
            "An empty store takes {} KiB. Opening ten million records takes {} µs; of a file whose records are nine \
             tenths deleted {share} % stay.",
            of("empty_allocated", 1024.0),
            of("open_us", 1.0)
        );
        self.text += "## Empty, opened, emptied\n\n";
        self.paragraph(&text);
    }

    fn bars(&mut self) {
        let results = self.results;
        let (met, missed): (Vec<_>, Vec<_>) = results.bars.iter().partition(|bar| bar.met);
        self.text += "## What was aimed at\n\n";
        self.paragraph(&format!("{} of {} aims were met in this run; not met:", met.len(), results.bars.len()));
        for bar in &missed {
            self.line(format_args!("- {}: {}, aimed at {}", bar.what, bar.measured, bar.bar));
        }
        if missed.is_empty() {
            self.line(format_args!("- none"));
        }
        let better: Vec<String> =
            [("w1", "pair_ns", "hot keys"), ("w2", "load_ns", "loading"), ("w2", "get_ns", "get")]
                .into_iter()
                .flat_map(|(group, metric, words)| {
                    let ours = self.median(group, OURS, metric);
                    let systems = self.systems(group, metric).into_iter().filter(|system| system.id != OURS);
                    let faster = systems.filter(move |system| results.median(group, system.id, metric) < ours);
                    let faster = faster.filter(|system| system.id != systems::HASHMERE_EXPECTED.id);
                    faster.map(move |system| format!("{} ({words})", system.label)).collect::<Vec<_>>()
                })
                .collect();
        self.text.push('\n');
        if !better.is_empty() {
            self.paragraph(&format!("Faster than Hashmere in this run: {}.", better.join("; ")));
        }
        while self.text.ends_with("\n\n") {
            self.text.pop();
        }
    }
}
