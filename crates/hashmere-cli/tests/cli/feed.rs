//! feed, restore.

use crate::support::Scratch;
use serde_json::Value as Json;

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn feed_prints_envelopes() {
    let s = Scratch::new();
    s.sh("set a key1 value1").text();
    s.sh("feed a --once").fails(3, "E80");
    s.sh("feed a --disable").fails(1, "no changes");
    s.sh("feed a --enable 4M --values").text();
    assert!(s.sh("feed a --once").text().is_empty(), "from now");
    let first = lines(&s.sh("feed a --once --from start --values").text());
    assert_eq!(first[0]["control"], "reset");
    assert_eq!((&first[1]["op"], &first[1]["after"]["value"]), (&"r".into(), &"value1".into()));
    assert_eq!(first[2]["control"], "synced");
    let token = first[2]["token"].as_str().unwrap().to_owned();

    s.sh("set a key1 value2 --flags 7").text();
    s.run_with(["set", "-e", "a", "other\\xff", "-"], b"\\x00\\xff").text();
    s.sh("delete a key1").text();
    s.sh("clear a").text();
    let from = |more: &str| lines(&s.sh(&format!("feed a --once --from {token} {more}")).text());
    let all = from("--values");
    let ops: Vec<_> = all.iter().map(|event| event["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["u", "u", "d", "t"]);
    assert_eq!((&all[0]["after"]["value"], &all[0]["after"]["flags"]), (&"value2".into(), &7.into()));
    assert_eq!(all[1]["after"]["key_base64"], "b3RoZXL/");
    assert_eq!(all[1]["after"]["value_base64"], "AP8=");
    assert_eq!((&all[2]["before"]["key"], &all[2]["source"]["operation"]), (&"key1".into(), &"delete".into()));
    assert_eq!(from("")[0]["after"]["value_omitted"], "not_kept");
    assert_eq!(from("--prefix key").len(), 3);
    let next = all[2]["source"]["token"].as_str().unwrap();
    assert_eq!(lines(&s.sh(&format!("feed a --once --from {next}")).text()).len(), 1);

    s.sh("feed a --from then").fails(2, "token");
    s.sh("feed a --to ftp://x/y").fails(2, "dir:PATH");
    s.sh("feed a --sync never").fails(2, "--to");
    s.sh("feed a --to redis://127.0.0.1/s --sync never").fails(2, "dir:PATH");
    s.sh("feed a --disable").text();
    s.sh("feed a").fails(3, "E80");
}

/// Waits until the clock that feeds and files have their times from is behind this moment. It is the coarse one, which
/// is behind the other by 4 ms, and by more where a virtual machine was not run.
fn pass(ms: u64) {
    while hashmere_os::clock::coarse_ms() <= ms {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_folder_restores_a_moment() {
    let s = Scratch::new();
    s.sh("create a --max-bytes 64M").text();
    s.sh("feed a --enable 4M --values").text();
    s.sh("set a key1 old").text();
    s.sh("feed a --to dir:changes --once").text();
    pass(hashmere_os::clock::now_ms());
    s.sh("backup a copy").text();
    s.sh("set a key1 new").text();
    s.sh("set a key2 here").text();
    s.sh("feed a --to dir:changes --once").text();
    let read = std::fs::read_to_string(s.path().join("changes/00000000000000000001.feed")).unwrap();
    let moment = lines(&read.lines().map(|line| format!("{}\n", &line[9..])).collect::<String>());
    let last = moment.last().unwrap()["ts_ms"].as_u64().unwrap();
    assert_eq!(s.sh("restore copy ./restored --feed changes").text(), "2\n");
    assert_eq!(s.sh("get ./restored key1").text(), "new");
    s.sh("restore copy ./restored --feed changes").fails(3, "E52");
    s.sh("restore copy ./restored --feed nowhere").fails(3, "E97");
    s.sh("restore copy ./restored --feed changes --until soon").fails(2, "2026");

    pass(last);
    s.sh("delete a key1").text();
    s.sh("feed a --to dir:changes --once --sync never").text();
    s.sh(&format!("restore ./copy ./restored --force --feed changes --until {last}")).text();
    assert_eq!(s.sh("get ./restored key1").text(), "new");
    s.sh("restore ./copy ./restored --force --feed changes --until 2100-01-01T00:00:00Z").text();
    s.sh("get ./restored key1").fails(1, "no key");
    assert_eq!(std::fs::read_dir(s.path()).unwrap().count(), 4, "the store's folder, copy, changes, restored");
}
