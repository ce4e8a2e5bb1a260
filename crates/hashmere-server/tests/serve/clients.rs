//! Real clients: `scripts/clients` runs them, and skips what cannot be installed.

use crate::support::{start, Server};
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
    script("python", &start(&[]));
}

#[test]
fn libmemcached_is_satisfied() {
    script("memccapable", &start(&[]));
}

#[test]
fn ruby_dalli() {
    script("dalli", &start(&[]));
}

#[test]
fn redis_clients_of_python() {
    script("redis_python", &start(&["--resp"]));
}

#[test]
#[ignore = "installs packages: make clients"]
fn redis_clients_of_ruby() {
    script("redis_ruby", &start(&["--resp"]));
}

#[test]
#[ignore = "installs an interpreter: make clients"]
fn redis_clients_of_node() {
    script("redis_node", &start(&["--resp"]));
}

#[test]
#[ignore = "installs a compiler: make clients"]
fn redis_clients_of_go() {
    script("redis_go", &start(&["--resp"]));
}

#[test]
#[ignore = "installs a compiler: make clients"]
fn go_gomemcache() {
    script("go", &start(&[]));
}

#[test]
#[ignore = "installs a compiler: make clients"]
fn java_spymemcached() {
    script("java", &start(&[]));
}

#[test]
#[ignore = "installs an interpreter: make clients"]
fn node_memjs() {
    script("node", &start(&[]));
}
