//! Real clients: `scripts/clients` runs them, and skips what cannot be installed.

use crate::support::{Scratch, Server};
use std::path::Path;
use std::process::Command;

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
    let scratch = Scratch::new();
    let (port, pidfile) = (crate::support::free_port(), scratch.path().join("pid"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hashmere"));
    command.args(["serve", "-d", "-p", &port.to_string(), "-l", "127.0.0.1", "-P"]).arg(&pidfile);
    assert!(command.env("HASHMERE_DIR", scratch.path().join("ns")).status().unwrap().success());
    let pid = std::fs::read_to_string(&pidfile).unwrap();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
    while pidfile.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
