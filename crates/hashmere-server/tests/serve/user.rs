//! Promise: with a user to become the server gives up its privileges, and reads secrets before.

use crate::support::{start_on, Scratch};
use std::os::unix::fs::MetadataExt;

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
    // The folder of the stores belongs to that user; the accounts are root's, and are read before.
    let accounts = scratch.path().join("accounts");
    std::fs::write(&accounts, "ada:secret\n").unwrap();
    std::fs::set_permissions(&accounts, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let folder = scratch.path().join("ns");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(user), Some(group)).unwrap();
    let server = start_on(&scratch, &["-u", "nobody", "-Y", accounts.to_str().unwrap()]);
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
