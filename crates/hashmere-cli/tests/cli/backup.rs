//! backup, dump --snapshot.

use crate::support::Scratch;

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
