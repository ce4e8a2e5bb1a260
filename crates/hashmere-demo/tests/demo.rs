//! Promise: whatever worker is killed at whatever moment, all totals agree with a plain count.

// The lint spares functions marked as tests, but not what they call.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use hashmere::{Cursor, Filter, Options};
use hashmere_testkit::limits::times;
use hashmere_testkit::scratch::Scratch;
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

fn demo(s: &Scratch, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hashmere-demo"));
    command.args(arguments).env("HASHMERE_DIR", s.path().join("ns")).env("NO_COLOR", "1").current_dir(s.path());
    command.output().unwrap()
}

/// What it printed, once it has ended well.
#[track_caller]
fn done(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stderr));
    text
}

#[track_caller]
fn fails(output: &Output, with: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains(with), "{:?}: {text}", output.status);
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
    let s = Scratch::new("demo");
    texts(&s);
    let base = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let (mut interrupted, mut round) = (0, 0);
    let rounds = times(20);
    while round < rounds || interrupted == 0 {
        assert!(round < 400, "no kill fell within a chunk");
        let seed = (base + round).to_string();
        println!("demo with --seed {seed}");
        let ran = demo(
            &s,
            &["--input", "texts", "--chunk", "4KiB", "--workers", "3", "--kills", "2", "--no-watch", "--seed", &seed],
        );
        let text = done(&ran);
        assert!(text.contains("totals agree exactly") && text.contains(&format!("seed {seed}")), "{text}");
        interrupted += text.matches(" words applied").count();
        round += 1;
    }
    assert_eq!(std::fs::read_dir(s.path().join("ns")).unwrap().count(), 0, "the stores are removed");
}

#[test]
fn demo_on_the_real_files_with_its_reader() {
    let s = Scratch::new("demo");
    let run =
        |megabytes: u32| done(&demo(&s, &["--max-input", &format!("{megabytes}MiB"), "--keep", "--store", "mine"]));
    // A worker may not run while the others finish, and then is not killed: so there is more to do the next time.
    let text = [2, 4, 8, 16].into_iter().map(run).find(|text| text.contains("SIGKILL for worker")).unwrap_or_default();
    assert!(text.contains("SIGKILL for worker") && text.contains(" is back as pid "), "{text}");
    assert!(text.contains("100 %") && text.contains("totals agree exactly"), "{text}");
    let path = s.path().join("ns/mine.mere");
    let open = || Options::new().create(false).open(&path).unwrap();
    assert!(open().scan(Cursor::START, Filter::all().prefix(b"word:")).count() > 5);
    assert!(open().check().is_clean());
    // An earlier demo's store is replaced, another program's is not.
    done(&demo(&s, &["--max-input", "300KiB", "--store", "mine", "--no-watch"]));
    Options::new().open(&path).unwrap().set(b"precious", b"data").unwrap();
    fails(&demo(&s, &["--store", "mine"]), "is not the demo's");
    assert_eq!(open().get(b"precious").unwrap().unwrap(), b"data");
    fails(&demo(&s, &["--input", "nowhere"]), "no text files");
}
