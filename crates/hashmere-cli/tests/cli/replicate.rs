//! replicate.

use crate::support::Scratch;
use std::process::Stdio;

#[test]
fn a_copy_that_is_kept() {
    let s = Scratch::new();
    for i in 0..300 {
        s.sh(&format!("set a key{i} value{i}")).text();
        if i >= 20 {
            break;
        }
    }
    s.sh("set b stale x").text();
    let first = s.sh("replicate a b --once --json").text();
    assert!(first.contains("\"phase\":\"live\"") && first.contains("\"lag\":0"), "{first}");
    assert_eq!(s.sh("len b").text(), "21\n");
    s.sh("get b stale").fails(1, "no key");
    s.sh("set a key3 newer --flags 7 --ttl 1h").text();
    s.sh("delete a key4").text();
    let line = s.sh("replicate a b --once").text();
    assert!(line.contains("live") && line.contains(" 0 changes (0 ms) behind"), "{line}");
    assert_eq!(s.sh("get b key3").text(), "newer");
    s.sh("get b key4").fails(1, "no key");
    let status = s.sh("replicate --status b").text();
    assert!(status.contains("live (stopped)"), "{status}");
    s.sh("replicate --status a").fails(1, "no copy");
    s.sh("clear a").text();
    s.sh("set a again 1").text();
    s.sh("replicate a b --once -q").text();
    assert_eq!(s.sh("dump b").text(), s.sh("dump a").text().replace("\r", ""));
    assert!(s.sh("check b").text().contains("1"));
}

#[test]
fn what_cannot_be_replicated() {
    let s = Scratch::new();
    s.sh("set a k v").text();
    s.sh("replicate a a --once").fails(3, "E86");
    s.sh("replicate missing b --once").fails(3, "E1");
    s.sh("replicate a").fails(2, "TO");
}

#[test]
fn one_at_a_time_and_it_resumes_after_a_kill() {
    let s = Scratch::new();
    s.sh("set a k v1").text();
    let mut child =
        s.command(["replicate", "a", "b", "--every", "1ms", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    while !lines.next().unwrap().unwrap().contains("live") {}
    s.sh("replicate a b --once").fails(3, "E85");
    assert!(s.sh("replicate --status b").text().contains(&format!("process {}", child.id())));
    child.kill().unwrap();
    child.wait().unwrap();
    s.sh("set a k v2").text();
    s.sh("replicate a b --once -q").text();
    assert_eq!(s.sh("get b k").text(), "v2");
}

#[test]
fn two_stores_that_both_write() {
    let s = Scratch::new();
    s.sh("set a x 1").text();
    s.sh("set b y 2").text();
    let text = s.sh("replicate a b --two-way --once").text();
    assert!(text.lines().count() == 2 && text.lines().all(|line| line.contains("live")), "{text}");
    s.sh("set b x 3").text();
    s.sh("delete a y").text();
    s.sh("replicate a b --two-way --once -q").text();
    for store in ["a", "b"] {
        assert_eq!(s.sh(&format!("get {store} x")).text(), "3");
        s.sh(&format!("get {store} y")).fails(1, "no key");
    }
}
