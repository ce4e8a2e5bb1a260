//! Promise: the command serves as the unit files start it, with sockets that the service manager opened, and in the
//! background.

use crate::support::{Client, Port, Scratch, Server, PATIENCE};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn has(command: &str) -> bool {
    let found = Command::new(command).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: there is no {command} here");
    }
    found
}

#[test]
fn the_unit_files_are_right() {
    if !has("systemd-analyze") {
        return;
    }
    // With the command where it is, and a user that exists.
    let scratch = Scratch::new("serve");
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    for unit in ["hashmere.service", "hashmere.socket"] {
        let text = std::fs::read_to_string(units.join(unit)).unwrap();
        let text = text.replace("/usr/bin/hashmere", env!("CARGO_BIN_EXE_hashmere")).replace("=hashmere\n", "=root\n");
        std::fs::write(scratch.path().join(unit), text.replace("man:hashmere-serve(1)", "https://localhost")).unwrap();
    }
    let paths = ["hashmere.service", "hashmere.socket"].map(|unit| scratch.path().join(unit));
    let output = Command::new("systemd-analyze").arg("verify").args(&paths).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // What it says about other units of the machine is theirs.
    let about: Vec<&str> = said.lines().filter(|line| line.contains("hashmere")).collect();
    assert!(about.is_empty(), "{said}");
}

struct Activator(Child);

impl Drop for Activator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn started_by_the_first_connection() {
    if !has("systemd-socket-activate") {
        return;
    }
    let scratch = Scratch::new("serve");
    let (port, unix) = (Port::reserve(), scratch.path().join("activated.sock"));
    let mut command = Command::new("systemd-socket-activate");
    command.args(["-l", &format!("127.0.0.1:{port}"), "-l"]).arg(&unix);
    command.arg(format!("--setenv=HASHMERE_DIR={}", scratch.path().join("ns").display()));
    command.args([env!("CARGO_BIN_EXE_hashmere"), "serve"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut activator = Activator(command.spawn().unwrap());
    let deadline = Instant::now() + PATIENCE;
    let stream = loop {
        match TcpStream::connect(("127.0.0.1", port.number())) {
            Ok(stream) => break stream,
            Err(_) => assert!(Instant::now() < deadline, "the socket does not listen"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut client = Client::new(stream);
    assert_eq!(client.ask("set k 0 0 1\r\nx\r\nget k\r\n"), "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n");
    let mut other = std::os::unix::net::UnixStream::connect(&unix).unwrap();
    std::io::Write::write_all(&mut other, b"get k\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut other, &mut answer).unwrap();
    assert_eq!(answer, "VALUE k 0 1\r\nx\r\nEND\r\n");
    // It has become the server: on SIGTERM it drains.
    assert!(Command::new("kill").arg(activator.0.id().to_string()).status().unwrap().success());
    assert!(activator.0.wait().unwrap().success());
}

#[test]
fn sockets_that_are_handed_over() {
    const STARTER: &str = "
import os, socket, sys
listener = socket.create_server(('127.0.0.1', 0))
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], [sys.argv[1], 'serve'])
";
    if Command::new("python3").arg("-V").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no python3 to hand a socket over");
        return;
    }
    let folder = Scratch::new("serve");
    let mut command = Command::new("python3");
    command.args(["-c", STARTER, env!("CARGO_BIN_EXE_hashmere")]).env("HASHMERE_DIR", folder.path().join("ns"));
    let server = Server::spawn(&mut command);
    assert_eq!(server.connect().ask("set k 0 0 1\r\nx\r\nget k\r\n"), "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn a_server_in_the_background_says_when_it_listens() {
    let scratch = Scratch::new("serve");
    let (port, pidfile) = (Port::reserve(), scratch.path().join("pid"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hashmere"));
    command.args(["serve", "-d", "-p", &port.to_string(), "-l", "127.0.0.1", "-P"]).arg(&pidfile);
    assert!(command.env("HASHMERE_DIR", scratch.path().join("ns")).status().unwrap().success());
    let pid = std::fs::read_to_string(&pidfile).unwrap();
    let mut client = Client::new(TcpStream::connect(("127.0.0.1", port.number())).unwrap());
    assert!(client.ask("stats\r\n").contains(&format!("STAT pid {}\r\n", pid.trim())));
    assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
    let deadline = Instant::now() + PATIENCE;
    while pidfile.exists() {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}
