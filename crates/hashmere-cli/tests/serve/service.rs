//! Promise: the server gives up its rights when it is told to, and works as the unit files start it: with sockets that the service
//! manager opened, in a process of few rights.

use crate::support::{Client, Port, Scratch, Server, PATIENCE};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
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

fn ids_of_nobody() -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let fields: Vec<&str> = users.lines().find(|line| line.starts_with("nobody:"))?.split(':').collect();
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

#[test]
fn rights_are_given_up() {
    let scratch = Scratch::new("serve");
    if std::fs::metadata(scratch.path()).unwrap().uid() != 0 {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let Some((user, group)) = ids_of_nobody() else { return };
    // The folder of the stores is nobody's; the accounts are root's, and are read before.
    let accounts = scratch.path().join("accounts");
    std::fs::write(&accounts, "ada:secret\n").unwrap();
    std::fs::set_permissions(&accounts, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let folder = scratch.path().join("ns");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(user), Some(group)).unwrap();
    let server = Server::on(&scratch, &["-u", "nobody", "-Y", accounts.to_str().unwrap()]);
    let mut client = server.connect();
    client.send(b"set auth 0 0 10\r\nada secret\r\n");
    assert_eq!(client.until(b"\r\n").0, b"STORED\r\n");
    assert_eq!(client.ask("set k 0 0 1\r\nx\r\nget k\r\n"), "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let ids = |field: &str| status.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim().to_string();
    assert_eq!(ids("Uid:"), vec![user.to_string(); 4].join("\t"));
    assert_eq!(ids("Gid:"), vec![group.to_string(); 4].join("\t"));
    assert_eq!(ids("CapEff:").trim_start_matches('0'), "", "capabilities are left");
    let file = std::fs::metadata(folder.join("memcached.mere")).unwrap();
    assert_eq!((file.uid(), file.mode() & 0o777), (user, 0o600), "the store is another's");
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
            Err(_) => assert!(Instant::now() < deadline, "nobody listens"),
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
    // It has become the server: told to stop, it drains.
    assert!(Command::new("kill").arg(activator.0.id().to_string()).status().unwrap().success());
    assert!(activator.0.wait().unwrap().success());
}
