//! dump and load.

use crate::support::Scratch;
use std::collections::BTreeSet;

/// A store with all the bytes there are, in keys and in values, with and without attributes.
fn fill_with_everything(s: &Scratch) {
    let all: Vec<u8> = (0..=255).collect();
    s.run_with(["set", "a", "all"], &all).text();
    s.run_with(["set", "a", "twice", "--flags", "4294967295"], &[all.as_slice(), all.as_slice()].concat()).text();
    s.run(["set", "a", "", "of the empty key", "--ttl", "1h"]).text();
    s.run(["set", "a", "empty value", ""]).text();
    s.run(["set", "a", "é€\u{10ffff}", "\u{85}\u{7f}\u{2028}", "--expires-at", "4000000000000", "--flags", "1"]).text();
    let mut lines = Vec::new();
    for byte in 0..=255_u8 {
        lines.extend_from_slice(format!("\\x{byte:02x}key\\x{byte:02x}\t\\x{byte:02X}\n").as_bytes());
    }
    s.run_with(["load", "a"], &lines).text();
}

fn sorted(dump: Vec<u8>) -> BTreeSet<Vec<u8>> {
    dump.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

#[test]
fn a_dump_loads_into_the_same_store() {
    let s = Scratch::new();
    fill_with_everything(&s);
    assert_eq!(s.sh("len a").text(), "261\n");
    for format in ["tsv", "jsonl"] {
        let dump = s.run(["dump", "a", "--format", format]).bytes();
        assert!(std::str::from_utf8(&dump).is_ok_and(|t| t.lines().count() == 261));
        let target = format!("copy-{format}");
        let loaded = s.run_with(["load", &target, "--format", format], &dump);
        assert!(loaded.err().contains("261 records loaded"), "{}", loaded.err());
        assert_eq!(loaded.text(), "");
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(s.run(["get", &target, "all"]).bytes(), all);
        assert_eq!(s.run(["get", &target, ""]).text(), "of the empty key");
        for other in ["tsv", "jsonl"] {
            let one = s.run(["dump", "a", "--format", other]).bytes();
            let two = s.run(["dump", &target, "--format", other]).bytes();
            assert_eq!(sorted(one), sorted(two), "flags and expiry times too");
        }
    }
}

#[test]
fn files_and_their_names() {
    let s = Scratch::new();
    fill_with_everything(&s);
    s.sh("dump a out.jsonl").text();
    s.sh("dump a out.tsv").text();
    assert!(std::fs::read(s.path().join("out.jsonl")).unwrap().starts_with(b"{\"key"));
    assert_eq!(sorted(std::fs::read(s.path().join("out.tsv")).unwrap()), sorted(s.sh("dump a -").bytes()));
    s.sh("load b out.jsonl").text();
    s.sh("load b out.tsv -q").text();
    assert_eq!(s.sh("len b").text(), "261\n");
    assert_eq!(s.run(["dump", "a", "--prefix", "twi"]).text().lines().count(), 1);
    s.sh("dump a /nowhere/at/all").fails(3, "E90: cannot write /nowhere/at/all");
    s.sh("load b nowhere").fails(3, "E90: cannot open nowhere");
    s.sh("dump a /dev/null").text();
    s.sh("dump nostore").fails(3, "E1");
    s.sh("load --no-create nostore out.tsv").fails(3, "E1");
    let left = std::fs::read_dir(s.path())
        .unwrap()
        .filter(|e| e.as_ref().is_ok_and(|e| e.file_name().to_string_lossy().contains("partial")));
    assert_eq!(left.count(), 0);
}

#[test]
fn malformed_lines_are_named() {
    let s = Scratch::new();
    let cases: [(&str, &str, &str); 7] = [
        ("tsv", "a\t1\nb\t2\nno tab here\nc\t3\n", "standard input, line 3: no tab"),
        ("tsv", "a\t1\nb\t2\nb\\z\t2\n", "line 3: in the key: unknown escape `\\z`"),
        ("tsv", "a\t1\nb\t2\nb\t2\tx\n", "line 3: the flags `x`"),
        ("tsv", "a\t1\t5\nb\t2\nb\t2\t1\t2\t3\n", "line 3: more than four fields"),
        (
            "jsonl",
            "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\n",
            "line 3: not a JSON record",
        ),
        ("jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}\n{}\n", "line 3: neither \"key\""),
        ("jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}\n\n", "line 3: not a JSON record"),
    ];
    for (i, (format, input, why)) in cases.into_iter().enumerate() {
        let store = format!("s{i}");
        let ran = s.run_with(["load", &store, "--format", format], input.as_bytes());
        assert!(ran.err().contains("the first 2 lines are loaded"), "{}", ran.err());
        ran.fails(3, &format!("E91: {}", if i == 0 { why } else { "standard input, line 3: " }));
        assert_eq!(s.run(["len", &store]).text(), "2\n");
        assert!(s.run_with(["load", &store, "--format", format], input.as_bytes()).err().contains(why));
    }
    s.run_with(["load", "first"], b"bad\n").fails(3, "no line before it was loaded");
}

#[test]
fn the_last_line_of_a_key_wins_and_line_ends_vary() {
    let s = Scratch::new();
    let input = b"k\t1\r\nk\t2\t7\r\nk\t3\nl\t\nm\tx";
    assert!(s.run_with(["load", "a"], input).err().contains("5 records loaded"));
    assert_eq!(s.sh("get a k").text(), "3");
    assert_eq!(s.sh("get a l").text(), "");
    assert_eq!(s.sh("get a m").text(), "x");
    assert!(!s.sh("get a k -j").text().contains("flags"));
}

#[test]
fn a_full_store_says_how_far_the_load_came() {
    let s = Scratch::new();
    s.sh("create a --max-bytes 4M").text();
    let lines: String = (0..20_000).map(|i| format!("key {i}\t{}\n", "x".repeat(1000))).collect();
    let ran = s.run_with(["load", "a"], lines.as_bytes());
    assert!(ran.err().contains("lines are loaded"), "{}", ran.err());
    ran.fails(3, "E31");
    let count: u32 = s.sh("len a").text().trim().parse().unwrap();
    assert!((1000..20_000).contains(&count), "{count}");
    assert!(s.sh("check a").text().starts_with("clean"));
}
