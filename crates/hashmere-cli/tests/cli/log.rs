//! `log`: lines of several commands in one stream, filters, forms, files; a drainer that is killed or interrupted.

use crate::support::Scratch;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

/// The time of every line replaced, and its process id.
fn fixed(text: &str) -> String {
    let mut fixed = String::new();
    for line in text.lines() {
        // Digits of the time and of the process id; that there is a time is looked at.
        let (time, rest) = line.split_at(27);
        let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000000Z", "{line}");
        let (before, after) = rest.split_once('[').unwrap();
        let (_, text) = after.split_once(']').unwrap();
        fixed += &format!("TIME{before}[PID]{text}\n");
    }
    fixed
}

/// A `hashmere log` that runs until it is ended.
struct Follower(Child, Lines<BufReader<ChildStdout>>);

impl Follower {
    fn start(scratch: &Scratch, line: &str) -> Follower {
        let mut command = scratch.command(line.split_whitespace());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Follower(child, lines)
    }

    fn next(&mut self) -> String {
        self.1.next().unwrap().unwrap()
    }

    /// Interrupts it, once it takes that for more than its end.
    fn interrupt(&self) {
        let pid = self.0.id();
        let catches = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0
        };
        while !catches() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::process::Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn with_store() -> Scratch {
    let scratch = Scratch::new();
    scratch.sh("create jobs").bytes();
    scratch
}

#[test]
fn lines_without_a_drainer_go_to_standard_output_or_wait() {
    let scratch = with_store();
    let text = scratch.sh("log write jobs hello fixture").text();
    assert_eq!(fixed(&text), "TIME INFO  hashmere[PID] 1: hello fixture\n");
    let text = scratch.run_with(["log", "write", "jobs", "-l", "warn", "--tag", "cron"], b"one\ntwo").text();
    assert_eq!(fixed(&text), "TIME WARN  cron[PID] 2: one\nTIME WARN  cron[PID] 2: two\n");
    assert_eq!(scratch.sh("log write jobs --keep kept").text(), "");
    assert_eq!(scratch.sh("log write jobs --keep -l error -f user=7 failed").text(), "");
    let text = scratch.sh("log jobs --once").text();
    assert_eq!(fixed(&text), "TIME INFO  hashmere[PID] 3: kept\nTIME ERROR hashmere[PID] 4: failed user=7\n");
    assert_eq!(scratch.sh("log jobs --once").text(), "", "they were delivered");
    assert_eq!(scratch.sh("log jobs --once -n 2").text(), text, "but are there still");
}

#[test]
fn filters_and_forms() {
    let scratch = with_store();
    for line in ["-l error bad", "-l debug good", "--tag web -f n=1 request"] {
        scratch.sh(&format!("log write jobs --keep {line}")).bytes();
    }
    scratch.sh("log jobs --once").bytes();
    let texts = |options: &str| {
        let text = scratch.sh(&format!("log jobs --once -n 9 {options}")).text();
        text.lines().map(|line| line.split_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(""), ["bad", "good", "request n=1"]);
    assert_eq!(texts("-l info"), ["bad", "request n=1"]);
    assert_eq!(texts("-p web"), ["request n=1"]);
    assert_eq!(texts("-g ^(bad|good)$"), ["bad", "good"]);
    let json = scratch.sh("log jobs --once -n 1 --json").text();
    assert!(
        json.contains(r#""level":"info","process":"web""#)
            && json.ends_with("\"text\":\"request\",\"fields\":{\"n\":\"1\"}}\n"),
        "{json}"
    );
    assert!(scratch.sh("log jobs --once -n 1 --colour always").text().contains("\x1b[32mINFO "));
    assert!(!scratch.sh("log jobs --once -n 1").text().contains('\x1b'));
    scratch.sh("log level jobs warn").bytes();
    assert_eq!(scratch.sh("log level jobs").text(), "warn\n");
    scratch.sh("log write jobs --keep unwanted").bytes();
    assert_eq!(scratch.sh("log jobs --once").text(), "");
}

#[test]
fn a_killed_drainer_is_replaced_without_loss_or_repetition() {
    let scratch = with_store();
    scratch.sh("log write jobs --keep first").bytes();
    let mut drainer = Follower::start(&scratch, "log jobs");
    assert!(drainer.next().ends_with(": first"));
    // A second one follows beside it, with what was before.
    let mut beside = Follower::start(&scratch, "log jobs -n 1");
    assert!(beside.next().ends_with(": first"));
    scratch.sh("log write jobs second").bytes();
    assert!(drainer.next().ends_with(": second"));
    assert!(beside.next().ends_with(": second"));
    drainer.kill();
    scratch.sh("log write jobs --keep third").bytes();
    // It takes the place of the killed one.
    assert!(beside.next().ends_with(": third"));
    beside.kill();
    scratch.sh("log write jobs --keep fourth").bytes();
    assert!(scratch.sh("log jobs --once").text().ends_with(": fourth\n"));
    let stat = scratch.sh("log stats jobs --json").text();
    assert!(stat.contains("\"lines\":4") && stat.contains("\"lost\":0") && stat.contains("\"halves\":0"), "{stat}");
}

#[test]
fn to_a_file_with_rotation() {
    let scratch = with_store();
    scratch.sh("log write jobs --keep started").bytes();
    let mut drainer = Follower::start(&scratch, "log jobs -o out --rotate 400000 --keep 2");
    let input: Vec<u8> = (0..20_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    scratch.run_with(["log", "write", "jobs", "--keep"], &input).bytes();
    // An interrupt drains the rest; before it has begun it would only end it.
    while !scratch.path().join("out").exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drainer.interrupt();
    assert!(drainer.0.wait().unwrap().success());
    let read = |name: &str| std::fs::read_to_string(scratch.path().join(name)).unwrap();
    let text = read("out.2") + &read("out.1") + &read("out");
    let numbers: Vec<u32> = text.lines().filter_map(|line| line.split_once(": line ")?.1.parse().ok()).collect();
    assert!(numbers.len() > 5000 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert_eq!(numbers.last(), Some(&19_999));
    assert!(read("out.1").len() <= 400_000 && !scratch.path().join("out.3").exists());
}

#[test]
fn errors() {
    let scratch = with_store();
    let ran = scratch.sh("log jobs --once");
    assert_eq!(ran.code(), 3);
    assert!(ran.err().contains("error E70: there is no log \"log\""), "{}", ran.err());
    scratch.sh("log write jobs --keep x").bytes();
    let mut drainer = Follower::start(&scratch, "log jobs");
    assert!(drainer.next().ends_with(": x"));
    let ran = scratch.sh("log jobs -o out");
    assert!(ran.code() == 3 && ran.err().contains("error E73: process"), "{}", ran.err());
    assert_eq!(scratch.sh("log list jobs").text(), "log\n");
    scratch.sh("log remove jobs").bytes();
    assert_eq!(scratch.sh("log remove jobs").code(), 1);
    // Who had it open sees that, says so, and ends.
    assert_eq!(drainer.0.wait().unwrap().code(), Some(3));
}

#[test]
fn a_drainer_may_be_there_before_the_store_and_the_log() {
    let scratch = Scratch::new();
    let mut drainer = Follower::start(&scratch, "log jobs");
    std::thread::sleep(std::time::Duration::from_millis(150));
    scratch.sh("create jobs").bytes();
    std::thread::sleep(std::time::Duration::from_millis(150));
    scratch.sh("log write jobs --keep first").bytes();
    assert!(drainer.next().ends_with(": first"));
    // It is dropped: what is left comes out, and then that is said.
    scratch.sh("log remove jobs").bytes();
    assert_eq!(drainer.0.wait().unwrap().code(), Some(3));
    let mut waiting = Follower::start(&scratch, "log jobs");
    waiting.interrupt();
    assert!(waiting.0.wait().unwrap().success(), "an interrupt ends the waiting");
    let ran = scratch.sh("log nothing --once");
    assert!(ran.code() == 3 && ran.err().contains("error E1:"), "{}", ran.err());
}

#[test]
fn once_to_a_file_with_rotation() {
    let scratch = with_store();
    scratch.run_with(["log", "write", "jobs", "--keep"], b"one\ntwo\nthree").bytes();
    scratch.sh("log jobs --once -o out --rotate 60 --keep 2").bytes();
    let read = |name: &str| std::fs::read_to_string(scratch.path().join(name)).unwrap();
    assert!(
        read("out.2").ends_with(": one\n") && read("out.1").ends_with(": two\n") && read("out").ends_with(": three\n")
    );
}

#[test]
fn a_store_that_is_too_small_says_what_the_log_needs() {
    let scratch = Scratch::new();
    scratch.sh("create small --max-bytes 3M").bytes();
    let ran = scratch.sh("log write small x");
    assert!(ran.code() == 3 && ran.err().contains("error E31:"), "{}", ran.err());
    assert!(ran.err().contains("the log needs 5") && ran.err().contains("bytes in one piece"), "{}", ran.err());
}

#[test]
fn rings_are_listed() {
    let scratch = with_store();
    scratch.sh("log write jobs --keep --tag web x").bytes();
    let text = scratch.sh("log stats jobs --rings").text();
    assert!(
        text.contains("ring 0: web[") && text.contains("] thread 1 had it; ") && text.contains(" bytes wait"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&scratch.sh("log stats jobs --rings --json").text()).unwrap();
    assert_eq!((&json["ring"][0]["process"], &json["ring"][0]["thread"]), (&"web".into(), &1.into()));
}
