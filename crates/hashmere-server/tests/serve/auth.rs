//! Promise: with an account file nothing is served before authentication; the file is read again on SIGHUP.

use crate::support::{start, Scratch, PATIENCE};
use std::time::{Duration, Instant};

#[test]
fn text_clients_authenticate_with_a_set() {
    let folder = Scratch::new("serve");
    let file = folder.path().join("accounts");
    std::fs::write(&file, "ada:secret\n").unwrap();
    let server = start(&["-Y", file.to_str().unwrap()]);
    let mut client = server.connect();
    client.send(b"get k\r\nset auth 0 0 9\r\nada wrong\r\nversion\r\nset auth 0 0 10\r\nada secret\r\n");
    let expected = "CLIENT_ERROR unauthenticated\r\nCLIENT_ERROR authentication failure\r\nCLIENT_ERROR unauthenticated\r\nSTORED\r\n";
    assert_eq!(String::from_utf8(client.exactly(expected.len())).unwrap(), expected);
    assert_eq!(client.ask("set k 0 0 1\r\nx\r\nget auth\r\n"), "STORED\r\nEND\r\n");
    let stats = client.ask("stats\r\n");
    assert!(stats.contains("STAT auth_cmds 2\r\n") && stats.contains("STAT auth_errors 1\r\n"), "{stats}");

    std::fs::write(&file, "bob:other\n").unwrap();
    server.signal("HUP");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut client = server.connect();
        client.send(b"set auth 0 0 9\r\nbob other\r\n");
        if client.until(b"\r\n").0 == b"STORED\r\n" {
            break;
        }
        assert!(Instant::now() < deadline, "the file was not read again");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn binary_clients_authenticate_by_sasl() {
    let folder = Scratch::new("serve");
    let file = folder.path().join("accounts");
    std::fs::write(&file, "ada:secret\n").unwrap();
    let server = start(&["-S", "-Y", file.to_str().unwrap()]);
    let mut client = server.connect();
    let packet = |opcode: u8, key: &str, value: &str| {
        let mut bytes = vec![0x80, opcode, 0, key.len() as u8, 0, 0, 0, 0, 0, 0, 0, (key.len() + value.len()) as u8];
        bytes.extend([0; 12]);
        bytes.extend(key.bytes().chain(value.bytes()));
        bytes
    };
    let mut ask = |bytes: &[u8]| {
        client.send(bytes);
        let head = client.exactly(24);
        let body = client.exactly(usize::from(head[11]));
        (head[7], String::from_utf8(body).unwrap())
    };
    assert_eq!(ask(&packet(0x00, "k", "")), (0x20, "Auth failure.".into()));
    assert_eq!(ask(&packet(0x20, "", "")), (0, "PLAIN".into()));
    assert_eq!(ask(&packet(0x21, "PLAIN", "\0ada\0wrong")), (0x20, "Auth failure.".into()));
    assert_eq!(ask(&packet(0x21, "PLAIN", "\0ada\0secret")), (0, "Authenticated".into()));
    assert_eq!(ask(&packet(0x00, "k", "")), (1, "Not found".into()));
}
