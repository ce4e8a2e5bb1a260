//! Promise: the server starts with the options that memcached starts with, and refuses what it refuses.

use crate::support::{start, start_on, Port, Scratch};
use std::process::{Command, Stdio};

/// What `hashmere serve` says and ends with, with these options.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let scratch = Scratch::new("serve");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hashmere"));
    command.arg("serve").args(arguments).env("HASHMERE_DIR", scratch.path().join("ns")).stdin(Stdio::null());
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_last_of_a_repeated_option_counts() {
    let reserved = Port::reserve();
    let port = reserved.to_string();
    let scratch = Scratch::new("serve");
    let twice =
        ["-p", &port, "-c", "1", "-c", "7", "-m", "1000000", "-m", "8", "-t", "1", "-t", "3", "-I", "1k", "-I", "2m"];
    // `on` gives -p -1 and -t 2 before these.
    let more = ["-b", "5", "-b", "6", "-C", "-C", "-o", "idle_timeout=1", "-o", "idle_timeout=77", "-v", "-v"];
    let server = start_on(&scratch, &[&twice[..], &more].concat());
    assert_eq!(server.port.to_string(), port);
    let settings = server.connect().ask("stats settings\r\n");
    for (name, value) in [
        ("maxconns", "7"),
        ("maxbytes", "8388608"),
        ("num_threads", "3"),
        ("item_size_max", "2097152"),
        ("tcp_backlog", "6"),
        ("idle_timeout", "77"),
        ("cas_enabled", "no"),
        ("verbosity", "2"),
    ] {
        assert!(settings.contains(&format!("STAT {name} {value}\r\n")), "{name} {value}: {settings}");
    }
}

#[test]
fn options_of_memcached() {
    let options = [
        "-U",
        "0",
        "-k",
        "-r",
        "-L",
        "-f",
        "1.25",
        "-n",
        "48",
        "-R",
        "20",
        "-B",
        "auto",
        "-D",
        ":",
        "-o",
        "modern,no_lru_crawler,slab_reassign,no_slab_automove,hash_algorithm=xxh3,track_sizes,worker_logbuf_size=64",
    ];
    let server = start(&options);
    assert_eq!(server.connect().ask("set k 0 0 1\r\nx\r\nget k\r\n"), "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n");
    let licence = Command::new(env!("CARGO_BIN_EXE_hashmere")).args(["serve", "-i"]).output().unwrap();
    assert!(licence.status.success() && String::from_utf8_lossy(&licence.stdout).contains("Apache License"));
    for (arguments, said) in [
        (&["-c", "0"][..], "(-c) must be at least 1"),
        (&["-m", "0"], "(-m) must be at least 1"),
        (&["-U", "11211"], "there is no UDP"),
        (&["-t", "0"], "(-t) must be"),
        (&["-I", "10"], "(-I) must be"),
        (&["-D", "ab"], "(-D) must be one character"),
        (&["-o", "nonsense"], "unknown option -o nonsense"),
        (&["--http", "127.0.0.1"], "(--http) needs a port"),
        (&["--http-write"], "need --http ADDRESS"),
    ] {
        let (code, text) = refused(&[&["-p", "-1", "-l", "127.0.0.1"], arguments].concat());
        assert!(code == Some(2) && text.contains(said), "{arguments:?}: {code:?} {text}");
    }
}

#[test]
fn a_cache_of_a_megabyte_or_two() {
    for megabytes in ["1", "2", "3"] {
        let server = start(&["-m", megabytes]);
        let mut client = server.connect();
        let value = "v".repeat(1000);
        // Five times what fits, of which the last is there.
        for i in 0..15_000 {
            assert_eq!(client.ask(&format!("set k{i} 0 0 1000\r\n{value}\r\n")), "STORED\r\n", "-m {megabytes}: {i}");
        }
        assert_eq!(client.ask("get k14999\r\n"), format!("VALUE k14999 0 1000\r\n{value}\r\nEND\r\n"));
        assert!(client.ask("get k0\r\n").starts_with("END"));
        let large = "l".repeat(200_000);
        assert_eq!(
            client.ask(&format!("set large 0 0 200000\r\n{large}\r\nmg large s\r\n")),
            "STORED\r\nHD s200000\r\n"
        );
        let stats = client.ask("stats\r\n");
        // And one for the store itself.
        let limit = (megabytes.parse::<u64>().unwrap() + 1) << 20;
        assert!(stats.contains(&format!("STAT limit_maxbytes {limit}\r\n")), "{stats}");
    }
}
