//! top, hot, big, latency: what they say is what was done and what is there.

use crate::support::Scratch;
use hashmere::{Attributes, Options, Store, Ttl};
use hashmere_testkit::limits::SetOnDrop;
use serde_json::Value;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn top_tells_what_a_process_did_within_the_interval() {
    let s = Scratch::new();
    let store = Store::open(s.path().join("q.mere")).unwrap();
    (0..100).for_each(|i| assert!(store.set(format!("key:{i}").as_bytes(), b"value").is_ok()));
    let mut child = s
        .command(["top", "./q.mere", "--json", "--interval", "100ms"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Lines come until it is ended; each says how much was done in all, so that none is missed.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut next = || json(&lines.next().unwrap().unwrap());
    let first = next();
    let base = |what: &str| first["totals"][what].as_u64().unwrap();
    let (hits, sets) = (base("hits"), base("sets"));
    (0..500).for_each(|_| assert!(store.get(b"key:1").unwrap().is_some()));
    (0..200).for_each(|_| assert!(store.set(b"key:2", b"other").is_ok()));
    let mut counted = [0.0, 0.0];
    let last = loop {
        let line = next();
        let process = &line["processes"][0];
        assert_eq!(process["pid"], std::process::id());
        for (sum, what) in counted.iter_mut().zip(["hits", "sets"]) {
            *sum += process["rates"][what].as_f64().unwrap() * line["seconds"].as_f64().unwrap();
        }
        if line["totals"]["sets"] == sets + 200 {
            break line;
        }
    };
    assert_eq!((&last["totals"]["hits"], &last["items"]), (&(hits + 500).into(), &100.into()));
    assert_eq!(counted.map(|sum| sum.round() as u64), [500, 200]);
    let memory = &last["memory"];
    let part = |name: &str| memory[name].as_u64().unwrap();
    let parts: u64 = ["live", "dead", "index", "regions", "other", "free"].into_iter().map(part).sum();
    assert_eq!(parts, part("total"));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    child.wait().unwrap();
}

#[test]
fn top_once_prints_all_stores_of_the_namespace() {
    let s = Scratch::new();
    assert_eq!(s.sh("top --once --interval 100ms").text(), "");
    s.sh("set one key value").text();
    s.sh("set two key value").text();
    let text = s.sh("top --once --interval 100ms").text();
    let stores: Vec<&str> = text.lines().filter(|line| line.starts_with("store ")).collect();
    assert!(stores.len() == 2 && stores[0].contains("one.mere") && stores[1].contains("two.mere"), "{text}");
    for head in ["keys       1 (0/s)", "reads      0/s", "memory     ", "segments   ", "processes  0"] {
        assert_eq!(text.lines().filter(|line| line.starts_with(head)).count(), 2, "{head}: {text}");
    }
    s.sh("top --once --interval 100ms three").fails(3, "E1");
    s.sh("top --once --interval 1ms").fails(2, "100ms");
    s.sh("top one").fails(2, "--once");
}

#[test]
fn big_counts_every_key_once_and_resumes() {
    let s = Scratch::new();
    let store = Options::new().open(s.path().join("q.mere")).unwrap();
    for i in 0..300u64 {
        store.set(format!("user:{i}:name").as_bytes(), &vec![b'x'; i as usize]).unwrap();
    }
    let soon = Attributes::NONE.ttl(Ttl::After(Duration::from_secs(1800)));
    (0..40).for_each(|i| assert!(store.set_with(format!("page/{i}").as_bytes(), &[0; 1000], soon).is_ok()));
    store.set(b"alone", &[0; 70_000]).unwrap();
    let bytes: u64 = store.iter().map(|pair| pair.map(|p| (p.key.len() + p.value.len()) as u64).unwrap()).sum();

    let all = json(&s.sh("big ./q.mere --json --top 3").text());
    assert_eq!((&all["keys"], &all["bytes"], &all["cursor"]), (&341.into(), &bytes.into(), &Value::Null));
    let largest: Vec<_> = (0..3).map(|i| all["largest"][i]["value_len"].as_u64().unwrap()).collect();
    assert_eq!((largest, &all["largest"][0]["key"]), (vec![70_000, 1000, 1000], &"alone".into()));
    let ttls: Vec<_> =
        all["ttls"].as_array().unwrap().iter().map(|t| (t["remaining"].clone(), t["keys"].clone())).collect();
    assert_eq!(ttls, [("1h".into(), 40.into()), ("never".into(), 301.into())]);
    let sum =
        |of: &str, what: &str| all[of].as_array().unwrap().iter().map(|one| one[what].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("sizes", "keys"), sum("sizes", "bytes")), (341, bytes));
    let prefixes = all["prefixes"].as_array().unwrap();
    let of = |prefix: &str| prefixes.iter().find(|line| line["prefix"] == prefix).unwrap()["keys"].clone();
    assert_eq!((of("user:"), of("page/")), (300.into(), 40.into()));
    // The three largest parts and the others.
    assert_eq!(prefixes.iter().filter(|line| line["level"] == 1).count(), 4);

    // In parts: together they are all keys.
    let (mut from, mut keys, mut sum) = (None, 0, 0);
    let parts = (1..).find(|_| {
        let cursor: Vec<String> = from.iter().flat_map(|from: &u64| ["--from".into(), from.to_string()]).collect();
        let line = ["big", "./q.mere", "--json", "--limit", "100"].map(String::from).into_iter().chain(cursor);
        let ran = s.run(line);
        assert_eq!(ran.err().contains("--from"), ran.err().contains("not all keys"));
        let part = json(&ran.text());
        keys += part["keys"].as_u64().unwrap();
        sum += part["bytes"].as_u64().unwrap();
        from = part["cursor"].as_u64();
        from.is_none()
    });
    assert_eq!((parts, keys, sum), (Some(4), 341, bytes));
    let one = json(&s.sh("big ./q.mere --json --prefix page/").text());
    assert_eq!((&one["keys"], &one["largest"][0]["bytes"]), (&40.into(), &1007.into()));
    let text = s.sh("big ./q.mere").text();
    for part in [
        "341 keys, ",
        "LENGTH OF VALUE",
        "EXPIRES WITHIN",
        "LARGEST KEYS",
        "  alone",
        "user:",
        "  user:299:",
        "  (other)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(s.sh("big ./q.mere --from 18446744073709551615").code(), 3);
}

#[test]
fn latency_measures_reads_and_leaves_nothing_behind() {
    let s = Scratch::new();
    let store = Store::open(s.path().join("q.mere")).unwrap();
    s.sh("latency ./q.mere --for 50ms").fails(2, "--write");
    store.set(b"key", b"value").unwrap();
    let reads = json(&s.sh("latency ./q.mere --for 50ms --json").text());
    let get = &reads["operations"][0];
    assert_eq!(
        (&get["name"], &get["misses"], reads["operations"].as_array().unwrap().len()),
        (&"get".into(), &0.into(), 1)
    );
    let ns = |name: &str| get[name].as_u64().unwrap();
    assert!(ns("min_ns") <= ns("p50_ns") && ns("p50_ns") <= ns("p99_ns") && ns("p99_ns") <= ns("max_ns"), "{get}");
    let histogram = get["histogram"].as_array().unwrap();
    assert_eq!(histogram.iter().map(|one| one["count"].as_u64().unwrap()).sum::<u64>(), ns("count"));
    let before = store.stats().sets;
    let both = json(&s.sh("latency ./q.mere --for 50ms --json --write --keys 10").text());
    assert_eq!(both["operations"][1]["name"], "set");
    assert_eq!(store.stats().sets - before, both["operations"][1]["count"].as_u64().unwrap());
    assert_eq!(store.keys().map(|key| key.unwrap()).collect::<Vec<_>>(), [b"key"]);
    let text = s.sh("latency ./q.mere --for 50ms --write").text();
    assert!(
        text.contains("\nget  ") && text.contains("\nset  ") && text.contains("p99.99") && text.contains("***"),
        "{text}"
    );
    assert_eq!(store.len(), 1);
}

#[test]
fn hot_names_the_keys_that_are_used_most() {
    let s = Scratch::new();
    let store = Store::open(s.path().join("q.mere")).unwrap();
    // Nothing is done: nothing is seen.
    let idle = json(&s.sh("hot ./q.mere --for 50ms --json").text());
    assert_eq!(
        (&idle["samples"], &idle["reads"]["keys"], &idle["writes"]["keys"]),
        (&0.into(), &json("[]"), &json("[]"))
    );
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = SetOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for key in [&b"hot"[..], b"hot", b"hot", b"warm"] {
                    store.get(key).unwrap();
                }
                store.set(b"written\t", b"value").unwrap();
            }
        });
        // Longer and longer: a busy machine gives that thread little time within one run, or none.
        let until = |options: &str, is_so: &dyn Fn(&str) -> bool| {
            let run = |n: u32| s.sh(&format!("hot ./q.mere --for {}ms {options}", 50 << n)).text();
            (0..=11).map(run).find(|text| is_so(text)).unwrap_or_else(|| panic!("{options}: never so"))
        };
        let has_both = |text: &str| {
            let all = json(text);
            ["reads", "writes"].iter().all(|kind| all[kind]["total"]["samples"].as_u64().unwrap() >= 100)
        };
        let all = json(&until("--json", &has_both));
        let keys = |kind: &str| {
            let keys = all[kind]["keys"].as_array().unwrap();
            keys.iter().map(|key| key["key"].as_str().unwrap().to_string()).collect::<Vec<_>>()
        };
        assert_eq!((keys("reads"), keys("writes")), (vec!["hot".into(), "warm".into()], vec!["written\\t".into()]));
        let rate = &all["reads"]["keys"][0]["rate"];
        let of = |name: &str| rate[name].as_f64().unwrap();
        assert!(of("low") <= of("per_second") && of("per_second") <= of("high") && of("low") > 0.0, "{rate}");
        // Neither key is there.
        assert_eq!(all["reads"]["keys"][0]["misses"], rate["per_second"]);
        // Of a few samples the other key may have most.
        let is_hot = |text: &str| text.contains("READS/S") && text.contains("  hot\n");
        let reads = until("--reads --limit 1", &is_hot);
        assert!(!reads.contains("  warm\n") && !reads.contains("writes:"), "{reads}");
        let writes = until("--writes", &|text: &str| text.contains("WRITES/S"));
        assert!(writes.contains("  written\\t\n") && !writes.contains("reads:"), "{writes}");
    });
    s.sh("hot ./q.mere --for 0s").fails(2, "--for");
    s.sh("hot ./q.mere --for 25h").fails(2, "24h");
    s.sh("hot ./q.mere --reads --writes").fails(2, "--writes");
    s.sh("hot ./none.mere --for 50ms").fails(3, "E1");
}
