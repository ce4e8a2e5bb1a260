//! backup, dump --snapshot.

use crate::support::Scratch;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

#[test]
fn backup() {
    let s = Scratch::new();
    for i in 0..20 {
        s.sh(&format!("set a key{i} value{i} --flags {i}")).text();
    }
    assert_eq!(s.sh("backup a copy").text(), "20\n");
    assert_eq!(s.sh("get ./copy key7").text(), "value7");
    assert!(s.sh("check ./copy").text().contains("20"));
    s.sh("backup a copy").fails(3, "E52");
    s.sh("set a key7 newer").text();
    s.sh("backup a copy --force").text();
    assert_eq!(s.sh("get ./copy key7").text(), "newer");
    s.sh("backup b other").fails(3, "E1");
    std::fs::write(s.path().join("text"), "no store").unwrap();
    s.sh("backup a text --force").fails(3, "E3");
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let dumps = ["dump a", "dump --snapshot a", "dump ./copy"].map(|dump| sorted(s.sh(dump).text()));
    assert!(dumps[0].len() >= 20 && dumps[0] == dumps[1] && dumps[0] == dumps[2]);
    assert!(s.sh("backup --help").text().contains("at one moment"));
}

/// The first `count` paths that a series prints.
fn printed(child: &mut Child, count: usize) -> Vec<String> {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    lines.take(count).map(|line| line.unwrap()).collect()
}

#[test]
fn a_series_keeps_the_last_ones() {
    let s = Scratch::new();
    s.sh("set a key value").text();
    let folder = s.path().join("series");
    let mut series = s.command(["backup", "a", "series", "--every", "1s", "--keep", "2"]);
    let mut child = series.stdout(Stdio::piped()).spawn().unwrap();
    let made = printed(&mut child, 4);
    // Killed without notice, in whatever it is doing.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(made.windows(2).all(|pair| pair[0] < pair[1]), "{made:?}");
    let mut left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    assert!((2..=4).contains(&left.len()) && !left.contains(&s.path().join(&made[0])), "{left:?} of {made:?}");
    for path in &left {
        let path = path.to_str().unwrap();
        assert!(s.run(["check", path]).text().contains("clean"), "{path}");
        assert_eq!(s.run(["get", path, "key"]).text(), "value");
    }
    // One that is started again does not make another one before its time, and leaves other files alone.
    std::fs::write(folder.join("a-notes.mere"), "mine").unwrap();
    let mut again = s.command(["backup", "a", "series", "--every", "1h"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    again.kill().unwrap();
    assert!(again.wait_with_output().unwrap().stdout.is_empty());
    assert!(folder.join("a-notes.mere").exists());
}

#[test]
fn a_series_that_cannot_begin() {
    let s = Scratch::new();
    s.sh("set a key value").text();
    s.sh("backup none series --every 1h").fails(3, "E1");
    s.sh("backup a nowhere/series --every 1h").fails(3, "E90: cannot make the folder nowhere/series");
    s.sh("backup a series --every 10ms").fails(2, "at least 1s");
    s.sh("backup a series --keep 3").fails(2, "--every");
    s.sh("backup a series --every 1h --force").fails(2, "--force");
}
