//! TLS, with the `openssl` command as the client.

use crate::support::{start, Scratch, Server, PATIENCE};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

fn certificate(folder: &Path) -> Option<(String, String)> {
    named(folder, "localhost")
}

fn named(folder: &Path, name: &str) -> Option<(String, String)> {
    let (key, chain) = (folder.join("key.pem"), folder.join("chain.pem"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    command.args(["-subj", &format!("/CN={name}"), "-keyout"]).arg(&key).arg("-out").arg(&chain);
    match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Some((key.display().to_string(), chain.display().to_string())),
        _ => {
            eprintln!("skipped: the openssl command is not installed (scripts/setup packages openssl)");
            None
        }
    }
}

#[test]
fn the_same_protocol_through_tls() {
    let folder = Scratch::new("serve");
    let Some((key, chain)) = certificate(folder.path()) else { return };
    let server = start(&["-Z", "-o", &format!("ssl_chain_cert={chain},ssl_key={key}"), "-I", "4m"]);
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-CAfile", &chain, "-verify_return_error"])
        .args(["-connect", &format!("127.0.0.1:{}", server.port)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let value = "v".repeat(2_000_000);
    let mut stdin = client.stdin.take().unwrap();
    let request = format!("set k 3 0 2000000\r\n{value}\r\nget k\r\nget k\r\nversion\r\nquit\r\n");
    let sending = std::thread::spawn(move || stdin.write_all(request.as_bytes()).map(|()| stdin));
    let mut answer = String::new();
    client.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    let _ = sending.join();
    client.wait().unwrap();
    let one = format!("VALUE k 3 2000000\r\n{value}\r\nEND\r\n");
    let expected = format!("STORED\r\n{one}{one}VERSION ");
    assert!(answer.starts_with(&expected), "{} bytes: {}", answer.len(), &answer[..answer.len().min(200)]);
    // A client without TLS gets no reply, and does not disturb others.
    let mut plain = server.connect();
    plain.send(b"version\r\nversion\r\nversion\r\n");
    assert!(!plain.until(b"VERSION").1);
}

/// Whom the certificate names that a new connection gets.
fn subject(server: &Server) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &format!("127.0.0.1:{}", server.port)]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("subject=")).unwrap_or("none").replace(' ', "")
}

#[test]
fn certificates_are_read_again() {
    let folder = Scratch::new("serve");
    let Some((key, chain)) = named(folder.path(), "first") else { return };
    let unix = folder.path().join("plain.sock");
    let options = format!("ssl_chain_cert={chain},ssl_key={key}");
    let server = start(&["-Z", "-o", &options, "-s", unix.to_str().unwrap()]);
    assert_eq!(subject(&server), "CN=first");
    let mut plain = std::os::unix::net::UnixStream::connect(&unix).unwrap();
    let mut refresh = || {
        plain.write_all(b"refresh_certs\r\n").unwrap();
        let mut answer = [0; 1000];
        let bytes = plain.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..bytes]).into_owned()
    };
    named(folder.path(), "second");
    assert_eq!(refresh(), "OK\r\n");
    assert_eq!(subject(&server), "CN=second");
    // What cannot be used leaves the old one in use.
    std::fs::write(&chain, "no certificate").unwrap();
    assert!(refresh().starts_with("Error cannot read certificates from "));
    assert_eq!(subject(&server), "CN=second");
    named(folder.path(), "third");
    server.signal("HUP");
    let deadline = std::time::Instant::now() + PATIENCE;
    while subject(&server) != "CN=third" {
        assert!(std::time::Instant::now() < deadline, "SIGHUP did not read the certificate");
    }
    let without = start(&[]);
    assert_eq!(without.connect().ask("refresh_certs\r\n"), "Error TLS not enabled\r\n");
}
