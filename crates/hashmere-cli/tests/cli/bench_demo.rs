//! bench and demo.

use crate::support::Scratch;
use std::time::{SystemTime, UNIX_EPOCH};

#[test]
fn bench() {
    let s = Scratch::new();
    let table = s.sh("bench --keys 500 --ops 5000 --items 3000").text();
    for name in ["hot: set+get", "hot: bulk get", "hot: scan", "hot: incr", "large: get", "large: space"] {
        assert!(table.contains(name), "{table}");
    }
    let json = s.sh("bench --keys 10 --ops 100 --items 0 --json").text();
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(first["ns_per_op"].as_f64().unwrap() > 0.0);
    s.run(["bench", "--keys", "10", "--ops", "10", "--items", "0", "--dir", "."]).text();
    assert_eq!(s.sh("ls").text(), "", "the stores are removed");
    assert_eq!(std::fs::read_dir(s.path()).unwrap().count(), 1);
}

/// Text with many words, in several files, of which one is large.
fn texts(s: &Scratch) {
    let folder = s.path().join("texts/below");
    std::fs::create_dir_all(&folder).unwrap();
    let mut state = 1_u64;
    for file in 0..12 {
        let mut text = String::new();
        for i in 0..(if file == 5 { 60_000 } else { 6_000 }) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 40) % 3000;
            let letters: String = format!("{number}").bytes().map(|b| char::from(b - b'0' + b'a')).collect();
            text.push_str(&letters);
            text.push(if i % 11 == 10 { '\n' } else { ' ' });
        }
        std::fs::write(folder.join(format!("{file}.txt")), text).unwrap();
    }
}

#[test]
fn demo_agrees_whatever_is_killed_when() {
    let s = Scratch::new();
    texts(&s);
    let base = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let (mut interrupted, mut round) = (0, 0);
    while round < 20 || interrupted == 0 {
        assert!(round < 400, "no kill fell within a chunk");
        let seed = (base + round).to_string();
        println!("demo with --seed {seed}");
        let ran = s.run([
            "demo",
            "--input",
            "texts",
            "--chunk",
            "4K",
            "--workers",
            "3",
            "--kills",
            "2",
            "--no-watch",
            "--seed",
            &seed,
        ]);
        assert_eq!(ran.code(), 0, "--seed {seed}: {}{}", ran.err(), String::from_utf8_lossy(&ran.0.stdout));
        let text = ran.text();
        assert!(text.contains("totals agree exactly") && text.contains(&format!("seed {seed}")), "{text}");
        interrupted += text.matches(" words applied").count();
        round += 1;
    }
    assert_eq!(s.sh("ls").text(), "");
}

#[test]
fn demo_on_the_real_files_with_its_reader() {
    let s = Scratch::new();
    let run = |megabytes: u32| {
        let ran = s.run(["demo", "--max-input", &format!("{megabytes}M"), "--keep", "--store", "mine"]);
        let text = String::from_utf8_lossy(&ran.0.stdout).into_owned();
        assert_eq!(ran.code(), 0, "{}{text}", ran.err());
        text
    };
    // A killer that does not run while the others finish kills no worker: then there is more to do.
    let text = [2, 4, 8, 16].into_iter().map(run).find(|text| text.contains("SIGKILL for worker")).unwrap_or_default();
    assert!(text.contains("SIGKILL for worker") && text.contains(" is back as pid "), "{text}");
    assert!(text.contains("100 %") && text.contains("totals agree exactly"), "{text}");
    assert_eq!(s.sh("scan mine --prefix word: --limit 5").text().lines().count(), 5);
    assert!(s.sh("check mine").text().starts_with("clean"));
    // An earlier demo's store is replaced, any other is not.
    let again = s.run(["demo", "--max-input", "300K", "--store", "mine", "--no-watch"]);
    assert_eq!(again.code(), 0, "{}", again.err());
    s.sh("set mine precious data").text();
    s.run(["demo", "--store", "mine"]).fails(3, "is not the demo's");
    assert_eq!(s.sh("get mine precious").text(), "data");
    s.run(["demo", "--input", "nowhere"]).fails(3, "no text files");
}
