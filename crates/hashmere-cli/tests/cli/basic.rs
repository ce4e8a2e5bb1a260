//! get, set and the others that read and write one value.

use crate::support::Scratch;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn set_and_get() {
    let s = Scratch::new();
    assert_eq!(s.sh("set a k value").text(), "");
    assert_eq!(s.sh("get a k").text(), "value", "no newline in a pipe");
    assert_eq!(s.sh("get a k --newline").text(), "value\n");
    s.sh("get a nothing").fails(1, "no key `nothing`");
    s.sh("get --quiet a nothing").fails(1, "");
    assert_eq!(s.sh("-q get a nothing").err(), "");
    s.sh("get nostore k").fails(3, "hashmere: error E1: ");
    s.sh("set --no-create nostore k v").fails(3, "error E1: ");
    assert!(!s.path().join("ns/nostore.mere").exists());
}

#[test]
fn the_store_may_be_a_path() {
    let s = Scratch::new();
    let path = s.path().join("store.mere");
    s.sh("set store.mere k v").text();
    assert!(path.exists());
    assert_eq!(s.run(["get", path.to_str().unwrap(), "k"]).text(), "v");
    s.sh("set ./plain k w").text();
    assert_eq!(s.sh("get ./plain k").text(), "w");
}

#[test]
fn values_come_from_standard_input() {
    let s = Scratch::new();
    let value: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    s.run_with(["set", "a", "k"], &value).text();
    assert_eq!(s.sh("get a k").bytes(), value);
    s.run_with(["set", "a", "k", "-"], b"x\n").text();
    assert_eq!(s.sh("get a k").bytes(), b"x\n");
    s.run(["set", "a", "k", ""]).text();
    assert_eq!(s.sh("get a k").bytes(), b"");
    s.run(["set", "a", "", "empty key"]).text();
    assert_eq!(s.run(["get", "a", ""]).text(), "empty key");
    assert_eq!(s.sh("value-len a k").text(), "0\n");
    s.sh("value-len a nothing").fails(1, "no key");
}

#[test]
fn keys_and_values_are_bytes() {
    let s = Scratch::new();
    let odd = OsStr::from_bytes(b"\xff\xfe\t\n\\");
    s.run([OsStr::new("set"), OsStr::new("a"), odd, odd]).text();
    assert_eq!(s.run([OsStr::new("get"), OsStr::new("a"), odd]).bytes(), odd.as_bytes());
    assert_eq!(s.run(["get", "-e", "a", r"\xff\xFE\t\n\\"]).text(), r"\xff\xfe\t\n\\");
    s.run(["set", "-e", "a", r"nul\0", r"\x2d"]).text();
    assert_eq!(s.run(["get", "-e", "a", r"nul\x00"]).text(), "-");
    s.run(["set", "-e", "a", r"\q", "v"]).fails(2, r"in KEY: unknown escape `\q`");
    s.run(["set", "-e", "a", "k", r"\x0"]).fails(2, "in VALUE: ");
    s.run(["set", "a", "n", "-5"]).text();
    assert_eq!(s.sh("get a n").text(), "-5");
    s.run(["set", "a", "--", "-key", "--value"]).text();
    assert_eq!(s.run(["get", "a", "--", "-key"]).text(), "--value");
}

#[test]
fn several_keys() {
    let s = Scratch::new();
    s.sh("set a k1 v1").text();
    s.run(["set", "a", "k2", "v\t2"]).text();
    assert_eq!(s.sh("get a k1 k2").text(), "k1\tv1\nk2\tv\\t2\n");
    let partly = s.sh("get a k1 nothing k2");
    assert_eq!((partly.code(), partly.0.stdout.as_slice()), (1, &b"k1\tv1\nk2\tv\\t2\n"[..]));
    s.sh("exists a k1 k2").text();
    s.sh("exists a k1 nothing").fails(1, "");
    s.sh("delete a k1 nothing").fails(1, "deleted 1 of 2 keys");
    s.sh("del a k1").fails(1, "no key `k1`");
    s.sh("delete a k2").text();
    assert_eq!(s.sh("len a").text(), "0\n");
}

#[test]
fn get_as_json() {
    let s = Scratch::new();
    let stored: serde_json::Value = serde_json::from_str(&s.sh("set a k v --flags 7 --ttl 1h --json").text()).unwrap();
    assert_eq!(stored["created"], true);
    let item: serde_json::Value = serde_json::from_str(&s.sh("get a k --json").text()).unwrap();
    assert_eq!((&item["key"], &item["value"], &item["flags"]), (&"k".into(), &"v".into(), &7.into()));
    assert_eq!((&item["version"], &item["uid"]), (&stored["version"], &stored["uid"]));
    assert!(item["expires_at_ms"].as_u64().unwrap() > 1_700_000_000_000);
    let again: serde_json::Value = serde_json::from_str(&s.sh("set a k v --json").text()).unwrap();
    assert_eq!(again["created"], false);
    assert!(again["version"].as_u64() > stored["version"].as_u64());
}

#[test]
fn append_prepend_take() {
    let s = Scratch::new();
    s.sh("set a k b --flags 3").text();
    s.sh("append a k c").text();
    s.sh("prepend a k a").text();
    assert_eq!(s.sh("get a k").text(), "abc");
    assert!(s.sh("get a k -j").text().contains("\"flags\":3"));
    s.sh("append a nothing x").fails(1, "no key");
    s.sh("prepend a nothing x").fails(1, "no key");
    assert_eq!(s.sh("take a k").text(), "abc");
    s.sh("take a k").fails(1, "no key");
}

#[test]
fn usage_errors_exit_with_2() {
    let s = Scratch::new();
    for line in [
        "",
        "nonsense",
        "get",
        "get a",
        "set a",
        "set a k v --ttl 5",
        "set a k v --ttl 5s --expires-at 5",
        "cas a k v",
        "cas a k v --absent --version 3",
        "touch a k",
        "touch a k --never --ttl 5s",
        "scan a --limit x",
        "set a k v --mode sometimes",
        "set a k v --max-bytes 5Q",
        "dump a --format xml",
        "incr a k x",
        "uid a",
        "len a --threads 0",
        "set a k v --permissions 999",
        "incr a k 99999999999999999999999",
    ] {
        let ran = s.sh(line);
        assert_eq!(ran.code(), 2, "{line}: {}", ran.err());
        assert!(!ran.err().is_empty() && ran.0.stdout.is_empty(), "{line}");
    }
    assert_eq!(s.sh("--version").text(), format!("hashmere {}\n", env!("CARGO_PKG_VERSION")));
    assert!(s.sh("--help").text().contains("Exit status"));
}

#[test]
fn large_values() {
    let s = Scratch::new();
    let value: Vec<u8> = (0..20_000_000_u32).map(|i| (i * 7 + i / 251) as u8).collect();
    s.run_with(["set", "a", "k"], &value).text();
    assert!(s.sh("get a k").bytes() == value);
    assert_eq!(s.sh("value-len a k").text(), "20000000\n");
}
