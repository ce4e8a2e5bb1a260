//! create, ls, info, stats, check, compact, clear, remove, completions, man.

use crate::support::Scratch;
use std::os::unix::fs::MetadataExt;

#[test]
fn create() {
    let s = Scratch::new();
    let path = s.sh("create a --max-bytes 64M --mode cache --permissions 640").text();
    assert_eq!(path.trim_end(), s.path().join("ns/a.mere").to_str().unwrap());
    assert_eq!(std::fs::metadata(path.trim_end()).unwrap().mode() & 0o777, 0o640);
    s.sh("create a").fails(3, "E2");
    s.sh("create a --or-open --max-bytes 128M").text();
    for (size, bytes) in [("16M", 16 << 20), ("64M", 64 << 20)] {
        s.run(["create", "a", "--or-open", "--max-bytes", size]).text();
        let stats: serde_json::Value = serde_json::from_str(&s.sh("stats a --json").text()).unwrap();
        assert_eq!(stats["bytes_max"], bytes);
    }
    s.sh("create a --or-open --mode strict").fails(3, "E4");
    assert!(s.sh("info a").text().contains("cache"));
    s.sh("create strict").text();
    s.run_with(["set", "strict", "k"], &[b'v'; 8 << 20]).text();
    s.sh("create strict --or-open --max-bytes 4M").fails(3, "E4");
    assert_eq!(s.sh("value-len strict k").text(), "8388608\n");
    s.sh("create b --fixed-key-len 4 --fixed-value-len 2").text();
    s.sh("set b key1 vv").text();
    s.sh("set b key12 vv").fails(3, "E34");
    s.sh("set b key1 v").fails(3, "E34");
    s.sh("create bad/../../x/y").fails(3, "E1");
    s.sh("create c --mode cache").fails(3, "E5");
}

#[test]
fn durable() {
    let s = Scratch::new();
    s.sh("create d --durable").text();
    s.sh("set d k v").text();
    s.sh("sync d").text();
    let stats = s.sh("stats d").text();
    assert!(stats.contains("syncs ") && stats.contains("segments wait for the next"), "{stats}");
    let json: serde_json::Value = serde_json::from_str(&s.sh("stats d --json").text()).unwrap();
    assert!(json["durable"] == true && json["syncs"].as_u64().unwrap() >= 3, "{json}");
    s.sh("create e").text();
    s.sh("sync e").fails(3, "E37");
    s.sh("create e --or-open --durable").fails(3, "E4");
    s.sh("create f --durable --mode cache --max-bytes 64M").fails(3, "E5");
}

#[test]
fn info_and_stats() {
    let s = Scratch::new();
    assert_eq!(s.sh("ls").text(), "");
    s.sh("set first k v").text();
    s.sh("set second k v").text();
    let list = s.sh("ls").text();
    assert!(list.lines().count() == 2 && list.starts_with("first ") && list.contains("1 item"), "{list}");
    let info = s.sh("info first").text();
    assert!(info.contains("/ns/first.mere\n") && info.contains("mode       strict\n"), "{info}");
    s.sh("info third").fails(3, "E1");
    let stats = s.sh("stats first").text();
    assert!(stats.contains("items      1\n") && stats.contains("segments"), "{stats}");
    let json: serde_json::Value = serde_json::from_str(&s.sh("stats first --json").text()).unwrap();
    assert_eq!((&json["items"], &json["mode"]), (&1.into(), &"strict".into()));
    assert!(json["bytes_allocated"].as_u64().unwrap() > 0 && json["clients"].is_array());
}

#[test]
fn check_compact_clear() {
    let s = Scratch::new();
    s.sh("set a k v").text();
    assert!(s.sh("check a").text().starts_with("clean: 1 item in "));
    let json: serde_json::Value = serde_json::from_str(&s.sh("check a --json").text()).unwrap();
    assert_eq!(json["clean"], true);
    s.sh("compact a").text().trim().parse::<u64>().unwrap();
    s.sh("clear a").text();
    assert_eq!(s.sh("len a").text(), "0\n");
    s.sh("set a k v").text();
    s.sh("clear nostore").fails(3, "E1");
    std::fs::write(s.path().join("ns/text.mere"), "this is no store").unwrap();
    s.sh("check text").fails(3, "E3");
    s.sh("set text k v").fails(3, "E3");
}

#[test]
fn check_names_damage() {
    let s = Scratch::new();
    let lines: String = (0..2000).map(|i| format!("key {i}\tvalue {i}\n")).collect();
    s.run_with(["load", "a"], lines.as_bytes()).text();
    let path = s.path().join("ns/a.mere");
    let mut bytes = std::fs::read(&path).unwrap();
    let needle = b"value 1234";
    let at = bytes.windows(needle.len()).position(|w| w == needle).unwrap();
    // The records around it are overwritten, their headers too.
    for byte in &mut bytes[at - 400..at + 400] {
        *byte ^= 0xa5;
    }
    std::fs::write(&path, &bytes).unwrap();
    let ran = s.sh("check a");
    assert_eq!(ran.code(), 3, "{}", ran.err());
    assert!(ran.err().contains("error E92: ") && ran.err().contains("found"), "{}", ran.err());
    assert!(String::from_utf8_lossy(&ran.0.stdout).contains(" at byte "));
    let json = s.sh("check a --json");
    let value: serde_json::Value = serde_json::from_slice(&json.0.stdout).unwrap();
    assert!(value["clean"] == false && !value["problems"].as_array().unwrap().is_empty());
}

#[test]
fn drop_needs_consent() {
    let s = Scratch::new();
    s.sh("set a k v").text();
    s.sh("remove a").fails(2, "--yes");
    assert_eq!(s.sh("get a k").text(), "v");
    s.sh("remove a --yes").text();
    s.sh("remove a --yes").fails(1, "no store at ");
    s.sh("get a k").fails(3, "E1");
    let file = s.path().join("ns/text.mere");
    std::fs::write(&file, "this is no store").unwrap();
    s.sh("remove text --yes").fails(3, "--force");
    assert!(file.exists());
    s.sh("remove text --yes --force").text();
    assert!(!file.exists());
}

#[test]
fn completions_and_man_pages() {
    let s = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = s.run(["completions", shell]).text();
        assert!(script.contains("hashmere") && script.contains("prepend"), "{shell}");
        assert!(!script.contains("pub fn"), "{shell}");
    }
    s.run(["completions", "dash"]).fails(2, "invalid value");
    let page = s.sh("man").text();
    assert!(page.contains(".TH hashmere 1") && page.contains("Exit status"));
    s.sh("man pages").text();
    let mut names: Vec<String> = std::fs::read_dir(s.path().join("pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() > 30 && names.contains(&"hashmere-set.1".to_string()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("worker")), "{names:?}");
}
