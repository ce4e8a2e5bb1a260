//! scan, random, len.

use crate::support::Scratch;
use std::collections::BTreeSet;
use std::io::Read;
use std::process::Stdio;

fn filled(s: &Scratch, keys: u32) {
    let lines: String = (0..keys).map(|i| format!("key:{i:05}\tvalue {i}\n")).collect();
    s.run_with(["load", "a"], lines.as_bytes()).text();
}

#[test]
fn scan_lists_everything_once() {
    let s = Scratch::new();
    filled(&s, 3000);
    let all = s.sh("scan a").text();
    let lines: BTreeSet<&str> = all.lines().collect();
    assert_eq!((lines.len(), all.lines().count()), (3000, 3000));
    assert!(lines.contains("key:00007\tvalue 7"));
    assert_eq!(s.sh("scan a --prefix key:000 --keys-only").text().lines().count(), 100);
    assert_eq!(s.run(["scan", "a", "--glob", "key:?12[0-4]*"]).text().lines().count(), 5 * 10);
    assert_eq!(s.run(["scan", "-e", "a", "--prefix", r"\x6bey:00001"]).text(), "key:00001\tvalue 1\n");
    for glob in ["[a", "[z-a]", r"a\"] {
        for command in ["scan", "len"] {
            let ran = s.run([command, "a", "--glob", glob]);
            assert!(ran.code() == 2 && ran.err().contains("--glob: the pattern"), "{command} {glob}: {}", ran.err());
        }
    }
    let json = s.sh("scan a --prefix key:00001 --json").text();
    let item: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&item["key"], &item["value"]), (&"key:00001".into(), &"value 1".into()));
    let json = s.sh("scan a --prefix key:00001 --json --keys-only").text();
    assert!(!json.contains("value"));
}

#[test]
fn scan_resumes_at_its_cursor() {
    let s = Scratch::new();
    filled(&s, 1000);
    let mut keys = BTreeSet::new();
    let mut cursor = "0".to_string();
    let mut rounds = 0;
    loop {
        let ran = s.run(["scan", "a", "-k", "--limit", "150", "--cursor", &cursor]);
        let message = ran.err();
        for key in ran.text().lines() {
            assert!(keys.insert(key.to_string()), "{key} twice");
        }
        rounds += 1;
        match message.strip_prefix("next: --cursor ") {
            Some(next) => cursor = next.trim().to_string(),
            None => break,
        }
    }
    assert_eq!((keys.len(), rounds), (1000, 7));
}

#[test]
fn count_and_random() {
    let s = Scratch::new();
    filled(&s, 500);
    assert_eq!(s.sh("len a").text(), "500\n");
    assert_eq!(s.sh("len a --prefix key:001").text(), "100\n");
    s.sh("set a soon x --ttl 1ms").text();
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!((s.sh("len a").text(), s.sh("len a --exact").text()), ("501\n".into(), "500\n".into()));
    s.sh("compact a").text();
    assert_eq!(s.sh("len a").text(), "500\n");
    assert_eq!(s.run(["len", "a", "--glob", "*7", "--threads", "3"]).text(), "50\n");
    let pairs: BTreeSet<String> = (0..8).map(|_| s.sh("random a").text()).collect();
    assert!(pairs.len() > 1 && pairs.iter().all(|pair| pair.contains("\tvalue ")));
    assert!(s.sh("random a -k").text().starts_with("key:"));
    assert!(s.sh("random a -j").text().starts_with("{\"key\":"));
    s.sh("clear a").text();
    s.sh("random a").fails(1, "the store is empty");
    assert_eq!(s.sh("len a").text(), "0\n");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let s = Scratch::new();
    filled(&s, 20_000);
    for arguments in [vec!["scan", "a"], vec!["dump", "a"], vec!["dump", "a", "--format", "jsonl"]] {
        let mut child = s.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        let mut messages = String::new();
        child.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        assert_eq!((child.wait().unwrap().code(), messages.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_full_output_is_an_error() {
    let s = Scratch::new();
    filled(&s, 20_000);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = s.command(["scan", "a"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("E90: cannot write to standard output"));
}

#[test]
fn scan_by_expression_part_and_similarity() {
    let s = Scratch::new();
    filled(&s, 1000);
    assert_eq!(s.run(["scan", "a", "-k", "--regex", "^key:0000[12]$"]).text().lines().count(), 2);
    assert_eq!(s.run(["len", "a", "--regex", "7$"]).text(), "100\n");
    s.run(["scan", "a", "--regex", "a("]).fails(2, "--regex: the pattern \"a(\" has an error: unclosed group");
    let mut keys = BTreeSet::new();
    for part in ["0/3", "1/3", "2/3"] {
        let listed = s.run(["scan", "a", "-k", "--part", part]).text();
        assert!(listed.lines().count() > 100);
        assert!(listed.lines().all(|key| keys.insert(key.to_string())), "a key twice");
    }
    assert_eq!(keys.len(), 1000);
    s.run(["scan", "a", "--part", "3/3"]).fails(2, "--part: there is no part 3 of 3");
    s.run(["scan", "a", "--part", "3"]).fails(2, "0/4");

    for (key, value) in [("grün", "1"), ("gruen", "2"), ("grau", "3")] {
        s.run(["set", "b", key, value]).text();
    }
    s.run(["set", "b", "-e", r"\xff\xfe", "4"]).text();
    let similar = |text: &str, distance: &str| -> Vec<String> {
        let listed = s.run(["scan", "b", "-k", "-e", "--similar", text, "--distance", distance]).text();
        let mut keys: Vec<String> = listed.lines().map(String::from).collect();
        keys.sort();
        keys
    };
    assert_eq!(similar("grün", "0"), ["grün"]);
    assert_eq!(similar("grun", "1"), ["gruen", "grün"]);
    assert_eq!(similar("grün", "2"), ["grau", "gruen", "grün"]);
    assert_eq!(similar(r"\xff", "1"), [r"\xff\xfe"]);
    s.run(["scan", "b", "--distance", "1"]).fails(2, "--similar");
}

#[test]
fn scan_begins_at_a_key() {
    let s = Scratch::new();
    filled(&s, 300);
    let all = s.sh("scan a -k").text();
    let from = all.lines().nth(200).unwrap();
    let rest: Vec<&str> = all.lines().skip(200).collect();
    assert_eq!(s.run(["scan", "a", "-k", "--from-key", from]).text().lines().collect::<Vec<_>>(), rest);
    s.run(["scan", "a", "-k", "--from-key", "absent"]).fails(1, "no key `absent`");
    s.run(["scan", "a", "--from-key", from, "--cursor", "7"]).fails(2, "--cursor");
}
