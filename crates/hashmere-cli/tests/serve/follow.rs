//! Promise: a replica of a store that is served on another machine is equal to it when that rests, whichever of the
//! processes was killed wherever; and who may not follow does not.
//! Catches: a change that is lost or applied out of order with a link, half a transaction, a key that is left over.
//!
//! `HASHMERE_KILLS=200` kills 200 processes (default 12).

use crate::site::{assert_equal, Process, Site};
use crate::support::{Port, Server};
use hashmere_replica::status;
use hashmere_testkit::procs::LIMIT;
use hashmere_testkit::rng::Rng;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Kills replicator, server and writer, again and again; compares now and then.
fn storm(name: &str, feed: u64) {
    let mut rng = Rng::for_test(name);
    let site = Site::new(feed);
    site.to.set("stale", b"goes").unwrap();
    let kills = std::env::var("HASHMERE_KILLS").map_or(12, |text| text.parse().expect("HASHMERE_KILLS is a number"));
    let address = site.address();
    let replicator = || Process(site.follow(&[&address, "to", "-q"]).stderr(Stdio::null()).spawn().unwrap());
    let (mut server, mut writer, mut follower) = (site.serve(&["--feed", "1m"]), site.writer(&mut rng), replicator());
    let mut struck = [0; 3];
    for kill in 0..kills {
        std::thread::sleep(Duration::from_micros(rng.below(60_000)));
        let victim = rng.index(3);
        struck[victim] += 1;
        match victim {
            0 => {
                follower.kill();
                follower = replicator();
            }
            1 => {
                server.child.kill().unwrap();
                server.child.wait().unwrap();
                server = site.serve(&["--feed", "1m"]);
            }
            _ => {
                writer.kill();
                writer = site.writer(&mut rng);
            }
        }
        if kill % 4 == 3 {
            drop(writer.0.stdin.take());
            assert!(writer.ended().success(), "the writer failed");
            follower.kill();
            site.compare(&format!("after {} kills", kill + 1));
            (writer, follower) = (site.writer(&mut rng), replicator());
        }
    }
    println!("{name}: replicators, servers and writers killed: {struck:?}");
}

#[test]
fn equal_after_kills_of_any_side() {
    storm("follow-kills", 64 << 20);
}

/// A feed that is overrun while no process follows: first copies, killed too.
#[test]
fn equal_after_kills_and_first_copies() {
    storm("follow-copies", 1 << 20);
}

/// A line of the command's output with this in it. What it says later is read as well: it does not wait for room.
fn wait_for(child: &mut Process, text: &str) {
    let output = child.0.stdout.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(output));
    while !lines.next().expect("it ended").unwrap().contains(text) {}
    std::thread::spawn(move || lines.for_each(drop));
}

/// The copy follows over a server's death and birth, without being started again.
#[test]
fn follows_again_when_the_server_is_back() {
    let site = Site::new(8 << 20);
    let address = site.address();
    let mut follower =
        Process(site.follow(&[&address, "to", "--every", "1ms"]).stdout(Stdio::piped()).spawn().unwrap());
    site.from.set("k", b"1").unwrap();
    let arrives = |value: &[u8]| {
        let deadline = Instant::now() + LIMIT;
        while site.to.get("k").unwrap().as_deref() != Some(value) {
            assert!(Instant::now() < deadline, "it does not arrive");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    // The server comes after its client.
    let mut server = site.serve(&["--feed", "1m"]);
    wait_for(&mut follower, "live");
    arrives(b"1");
    for round in 2u8..5 {
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        site.from.set("k", &[b'0' + round]).unwrap();
        server = site.serve(&["--feed", "1m"]);
        arrives(&[b'0' + round]);
    }
    assert_eq!(status(&site.to).unwrap().unwrap().copied, 1, "it began again");
}

/// The figure of this name in `stats hashmere`.
fn stat(server: &Server, name: &str) -> Option<String> {
    let text = server.answer("stats hashmere\r\n");
    text.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned))
}

/// Where the source is served and where the copy is, statistics and metrics say how far it is.
#[test]
fn lag_and_feed_are_in_the_statistics() {
    let site = Site::new(8 << 20);
    for n in 0..10 {
        site.from.set(&format!("k{n}"), b"v").unwrap();
    }
    let server = site.serve(&["--feed", "1m"]);
    let http = Port::reserve();
    let address = format!("127.0.0.1:{http}");
    let mut command = site.command(&["serve", "to", "-p", "-1", "-l", "127.0.0.1", "--http", &address]);
    let copy = Server::spawn(&mut command);
    assert_eq!((stat(&copy, "replica_lag"), stat(&copy, "feed_enabled")), (None, Some("no".into())));
    let figure = |server: &Server, name: &str| stat(server, name).unwrap_or_else(|| panic!("no {name}"));
    let number = |server: &Server, name: &str| figure(server, name).parse::<u64>().unwrap();
    let mut follower = Process(site.follow(&[&site.address(), "to", "-q"]).spawn().unwrap());
    let wait = |what: &str, done: &dyn Fn() -> bool| {
        let deadline = Instant::now() + LIMIT;
        while !done() {
            assert!(Instant::now() < deadline, "{what}: {}", copy.answer("stats hashmere\r\n"));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait("live", &|| stat(&copy, "replica_live").as_deref() == Some("yes"));
    assert_eq!(figure(&copy, "replica_running"), "yes");
    assert_eq!((number(&copy, "replica_copied"), number(&server, "feed_streams")), (10, 1));
    assert_eq!((figure(&server, "feed_enabled"), figure(&server, "feed_values")), ("yes".into(), "yes".into()));
    for n in 0..5 {
        site.from.set(&format!("k{n}"), b"w").unwrap();
    }
    wait("five more", &|| number(&copy, "replica_changes") == 5 && number(&copy, "replica_lag") == 0);
    assert_eq!(number(&server, "feed_position"), number(&copy, "replica_position"));
    assert!(number(&server, "feed_events") >= 16 && number(&server, "feed_bytes") >= 4 << 20);
    // Stopped in the middle of what it does not see: its lag grows.
    follower.kill();
    site.from.set("k0", b"x").unwrap();
    wait("a lag", &|| number(&copy, "replica_lag_ms") > 1000);
    assert_eq!(figure(&copy, "replica_running"), "no");
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    std::io::Write::write_all(&mut stream, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let text = std::io::read_to_string(stream).unwrap();
    for line in [
        "# TYPE hashmere_replica_lag_milliseconds gauge",
        "hashmere_replica_running{store=\"to\"} 0",
        "hashmere_store_feed_bytes{store=\"to\"} 0",
    ] {
        assert!(text.lines().any(|other| other == line), "no {line}: {text}");
    }
}

fn fails(site: &Site, arguments: &[&str], text: &str) {
    let output = site.follow(arguments).arg("--once").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(text), "{arguments:?}: {:?} {said}", output.status);
    assert!(site.to.is_empty(), "{arguments:?} brought something");
}

#[test]
fn who_may_not_follow_is_told_why() {
    let site = Site::new(8 << 20);
    site.from.set("k", b"v").unwrap();
    let address = site.address();
    fails(&site, &[&address, "to"], "No such file");
    let closed = site.serve(&[]);
    fails(&site, &[&address, "to"], "E88");
    fails(&site, &[&address, "to"], "--feed");
    drop(closed);
    let (accounts, mine) = (site.path("accounts"), site.path("mine"));
    std::fs::write(&accounts, "ada:se cret\n").unwrap();
    let server = site.serve(&["--feed", "1m", "-Y", accounts.to_str().unwrap()]);
    let tcp = format!("tcp://127.0.0.1:{}", server.port);
    for address in [&address, &tcp] {
        fails(&site, &[address, "to"], "--account");
        for (line, text) in [("", "no line"), ("ada\n", "no line"), ("ada:secret\n", "refuses"), ("bob:x\n", "refuses")]
        {
            std::fs::write(&mine, line).unwrap();
            fails(&site, &[address, "to", "--account", mine.to_str().unwrap()], text);
        }
    }
    fails(&site, &["tcp://127.0.0.1:0", "to"], "E88");
    fails(&site, &[&tcp.replace("tcp", "tls"), "to"], "--ca");
    std::fs::write(&mine, "# who\nada:se cret:more\n").unwrap();
    let output = site.follow(&[&tcp, "to", "--once", "--account", mine.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_equal(&site.from, &site.to, "with the account");
}

/// A certificate of this name that has signed itself, and its key.
fn certificate(folder: &Path, file: &str, name: &str) -> Option<(String, String)> {
    let (key, chain) = (folder.join(format!("{file}.key")), folder.join(format!("{file}.pem")));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    command.args(["-subj", &format!("/CN={name}"), "-addext", &format!("subjectAltName=DNS:{name}")]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]).arg(&key).arg("-out").arg(&chain);
    match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Some((key.display().to_string(), chain.display().to_string())),
        _ => {
            eprintln!("skipped: the openssl command is not installed (scripts/setup packages openssl)");
            None
        }
    }
}

#[test]
fn through_tls_with_certificates_on_both_sides() {
    let site = Site::new(8 << 20);
    site.from.set("k", &vec![7; 3 << 20]).unwrap();
    let folder = site.scratch.path();
    let Some((key, chain)) = certificate(folder, "server", "localhost") else { return };
    let Some((my_key, mine)) = certificate(folder, "client", "client") else { return };
    let Some((other_key, other)) = certificate(folder, "other", "localhost") else { return };
    let options = format!("ssl_chain_cert={chain},ssl_key={key},ssl_ca_cert={mine},ssl_verify_mode=2");
    let server = site.serve(&["--feed", "16m", "-I", "8m", "-Z", "-o", &options]);
    let (address, here) = (format!("tls://localhost:{}", server.port), format!("tls://127.0.0.1:{}", server.port));
    fn words<'a>(address: &'a str, [ca, cert, key]: [&'a str; 3]) -> [&'a str; 8] {
        [address, "to", "--ca", ca, "--cert", cert, "--key", key]
    }
    fails(&site, &words(&address, [&other, &mine, &my_key]), "E88");
    fails(&site, &words(&address, [&chain, &other, &other_key]), "TLS");
    fails(&site, &words(&here, [&chain, &mine, &my_key]), "E88");
    fails(&site, &words(&address, [&my_key, &mine, &my_key]), "E88");
    fails(&site, &[&address, "to", "--ca", &chain], "TLS");
    let output = site.follow(&words(&address, [&chain, &mine, &my_key])).arg("--once").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_equal(&site.from, &site.to, "through TLS");
}
