//! Promise: Prometheus takes what `/metrics` says, in both forms, and the rules and the scrape configuration of
//! `packaging/prometheus`. Catches: a family twice, a counter without its ending, a rule with a name that is not there.

use super::Http;
use crate::support::{Port, Scratch, PATIENCE};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus");

fn has_prometheus() -> bool {
    let found = Command::new("promtool").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: prometheus is not installed (scripts/setup http)");
    }
    found
}

fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    let piped = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
}

#[test]
fn families_are_described_once_and_count() {
    let http = Http::start(&["--http-write"]);
    http.ask("PUT /store/k", "", "x");
    http.ask("GET /store/k", "", "");
    let text = http.ask("GET /metrics", "", "");
    assert_eq!(text.header("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        "hashmere_up 1",
        "hashmere_get_hits_total 1",
        "hashmere_http_requests_total 3",
        "hashmere_store_items{store=\"memcached\"} 1",
        "# HELP hashmere_store_sets_total Values stored, by all processes.",
        "# TYPE hashmere_store_sets_total counter",
        "# TYPE hashmere_store_live_bytes gauge",
    ] {
        assert!(text.body.lines().any(|other| other == line), "no {line} in {}", text.body);
    }
    let mut types: Vec<&str> = text.body.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let all = types.len();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), all);
    let open = http.ask("GET /metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n", "");
    assert_eq!(open.header("Content-Type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(
        open.body.ends_with("# EOF\n")
            && open.body.contains("# TYPE hashmere_store_sets counter\nhashmere_store_sets_total")
    );
    if has_prometheus() {
        promtool(&["check", "metrics"], &text.body);
    }
}

#[test]
fn rules_name_what_is_there() {
    let http = Http::start(&[]);
    let metrics = http.ask("GET /metrics", "", "").body;
    for file in ["alerts.yml", "grafana.json"] {
        let text = std::fs::read_to_string(Path::new(PACKAGING).join(file)).unwrap();
        let names =
            text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| word.starts_with("hashmere_"));
        let mut count = 0;
        for name in names {
            count += 1;
            assert!(metrics.contains(&format!("\n# TYPE {name} ")), "{file}: no metric {name}");
        }
        assert!(count > 5, "{file}");
    }
    if has_prometheus() {
        promtool(&["check", "rules", &format!("{PACKAGING}/alerts.yml")], "");
    }
}

/// A Prometheus of its own scrapes a live store and evaluates the rules.
#[test]
fn prometheus_scrapes_a_live_store() {
    if !has_prometheus() {
        return;
    }
    let http = Http::start(&["--http-write"]);
    http.ask("PUT /store/k", "", "x");
    let (scratch, port) = (Scratch::new("prometheus"), Port::reserve());
    let config = std::fs::read_to_string(format!("{PACKAGING}/prometheus.yml")).unwrap();
    let config = config.replace("localhost:8080", &format!("127.0.0.1:{}", http.port())).replace("15s", "1s");
    let file = scratch.path().join("prometheus.yml");
    std::fs::write(&file, config.replace("alerts.yml", &format!("{PACKAGING}/alerts.yml"))).unwrap();
    promtool(&["check", "config", file.to_str().unwrap()], "");
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", scratch.path().join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let mut prometheus = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let found = loop {
        let said = Command::new("promtool")
            .args(["query", "instant", &format!("http://127.0.0.1:{port}"), "hashmere_store_items"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        if said.contains("store=\"memcached\"") && said.contains("=> 1 @") {
            break true;
        }
        if Instant::now() > deadline {
            eprintln!("{said}");
            break false;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    prometheus.kill().unwrap();
    prometheus.wait().unwrap();
    assert!(found, "prometheus has not scraped the store");
}
