//! Real clients: `scripts/clients` runs them, and skips what cannot be installed.

use crate::support::{Client, Port, Scratch, Server, PATIENCE};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn script(name: &str, server: &Server) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output =
        Command::new("scripts/clients").arg(name).arg(server.port.to_string()).current_dir(root).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{name}: {said}");
}

#[test]
fn python_clients() {
    script("python", &Server::start(&[]));
}

#[test]
fn libmemcached_is_satisfied() {
    script("memccapable", &Server::start(&[]));
}

#[test]
fn ruby_dalli() {
    script("dalli", &Server::start(&[]));
}

#[test]
#[ignore = "installs a compiler: make clients"]
fn go_gomemcache() {
    script("go", &Server::start(&[]));
}

#[test]
#[ignore = "installs a compiler: make clients"]
fn java_spymemcached() {
    script("java", &Server::start(&[]));
}

#[test]
#[ignore = "installs an interpreter: make clients"]
fn node_memjs() {
    script("node", &Server::start(&[]));
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
