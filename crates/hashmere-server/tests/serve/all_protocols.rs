//! Promise: with `--all-protocols` one socket serves every protocol, each under its own rules; a web page that makes a
//! browser connect to it reaches nothing but what HTTP permits.

use crate::binary::Packet;
use crate::child;
use crate::resp::Redis;
use crate::support::{start, Client, Scratch, Server};

fn serve(options: &[&str]) -> Server {
    start(&[&["--all-protocols"], options].concat())
}

/// Everything that comes before the server closes.
fn raw(server: &Server, request: impl AsRef<[u8]>) -> String {
    let mut client = server.connect();
    client.send(request.as_ref());
    let (answer, open) = client.until(b"\x01no byte of any reply\x01");
    assert!(!open);
    String::from_utf8_lossy(&answer).into_owned()
}

fn http(server: &Server, line: &str, headers: &str) -> String {
    raw(server, format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"))
}

fn binary_get(client: &mut Client, key: &str) -> (u8, Vec<u8>) {
    let packet = Packet { opcode: 0, extras: Vec::new(), key: key.into(), value: Vec::new(), cas: 0 };
    client.send(&packet.bytes(1));
    let head = client.exactly(24);
    let length = u32::from_be_bytes(head[8..12].try_into().unwrap());
    (head[7], client.exactly(length as usize))
}

#[test]
fn the_first_byte_tells() {
    let server = serve(&["--http-write"]);
    let mut text = server.connect();
    assert_eq!(text.ask("set k 5 0 5\r\nvalue\r\n"), "STORED\r\n");
    assert_eq!(server.connect().ask("mg k v f\r\n"), "VA 5 f5\r\nvalue\r\n");
    assert_eq!(binary_get(&mut server.connect(), "k"), (0, [&[0, 0, 0, 5][..], b"value"].concat()));
    let mut redis = Redis::new(&server);
    assert_eq!(redis.ask("GET k"), "\"value\"");
    let page = http(&server, "GET /store/k", "");
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("\r\n\r\nvalue"), "{page}");
    // What was decided stays so.
    assert_eq!(redis.ask("SET k other"), "+OK");
    assert_eq!(text.ask("get k\r\n"), "VALUE k 0 5\r\nother\r\nEND\r\n");
    assert_eq!(text.ask("GET / x\r\n"), "ERROR\r\n");
    // Byte by byte as well.
    for (request, end) in [("get k\r\n", "END\r\n"), ("*1\r\n$4\r\nPING\r\n", "+PONG\r\n")] {
        let mut client = server.connect();
        request.bytes().for_each(|byte| client.send(&[byte]));
        assert!(client.until(end.as_bytes()).1, "{request}");
    }
    for none in ["\r\n", " get k\r\n", "0\r\n", "$3\r\nGET\r\n", "+OK\r\n", "\u{0}\r\n"] {
        let answer = raw(&server, none);
        assert!(answer.starts_with("ERROR no protocol begins like this"), "{none:?}: {answer}");
    }
    let stats = text.ask("stats settings\r\n");
    assert!(stats.contains("STAT binding_protocol auto-negotiate\r\n"), "{stats}");
}

#[test]
fn a_web_page_reaches_only_what_http_permits() {
    let server = serve(&[]);
    let mut text = server.connect();
    assert_eq!(text.ask("set secret 0 0 1\r\ns\r\n"), "STORED\r\n");
    let attack = "set pwn 0 0 1\r\nx\r\n";
    let redis = "*3\r\n$3\r\nSET\r\n$3\r\npwn\r\n$1\r\nx\r\n";
    for (what, request, expected) in [
        ("a form of another site", format!("POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{attack}", attack.len()), "HTTP/1.1 4"),
        ("a request behind it", format!("GET /store/secret HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n{attack}\r\n"), "HTTP/1.1 403"),
        ("one of Redis behind it", format!("GET /store/secret HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n{redis}\r\n"), "HTTP/1.1 403"),
        ("a name that points here", "GET /store/secret HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".into(), "HTTP/1.1 421"),
        ("no header at all", format!("POST / HTTP/1.1\r\n{attack}\r\n"), "HTTP/1.1 400"),
        ("a change", "DELETE /store/secret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".into(), "HTTP/1.1 403"),
        ("a method of its own", format!("set /x HTTP/1.1\r\nHost: evil.example\r\n\r\n{attack}"), "ERROR no protocol begins like this"),
        ("another one", format!("get /{} HTTP/1.1\r\nHost: evil.example\r\n\r\n{attack}", "x".repeat(5000)), "ERROR no protocol"),
        ("TLS", format!("\x16\x03\x01 {attack}"), "ERROR no protocol begins like this"),
        ("HTTP/2", format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{attack}"), "HTTP/1.1 505"),
    ] {
        let answer = raw(&server, &request);
        assert!(answer.starts_with(expected), "{what}: {answer}");
        assert!(!answer.contains("\r\n\r\ns") && !answer.contains("STORED"), "{what}: {answer}");
        assert_eq!(text.ask("get pwn\r\n"), "END\r\n", "{what}");
        assert_eq!(text.ask("get secret\r\n"), "VALUE secret 0 1\r\ns\r\nEND\r\n", "{what}");
    }
}

#[test]
fn every_protocol_keeps_its_password() {
    let folder = Scratch::new("serve");
    let file = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_string()
    };
    let (accounts, token) = (file("accounts", "ada:secret\n"), file("token", "0123456789abcdef0123456789abcdef\n"));
    let refused = child::command(&folder, &["-p", "0", "--all-protocols", "-Y", &accounts]).output().unwrap();
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.contains("--http-token FILE"), "{errors}");

    let server = serve(&["-Y", &accounts, "--http-token", &token]);
    let mut text = server.connect();
    text.send(b"get k\r\n");
    assert_eq!(text.until(b"\r\n").0, b"CLIENT_ERROR unauthenticated\r\n");
    assert_eq!(binary_get(&mut server.connect(), "k").0, 0x20);
    let mut redis = Redis::new(&server);
    assert!(redis.ask("GET k").contains("NOAUTH"));
    assert!(http(&server, "GET /store/k", "").starts_with("HTTP/1.1 401"));
    // With them each is let in.
    text.send(b"set auth 0 0 10\r\nada secret\r\nset k 0 0 1\r\nx\r\n");
    assert!(text.until(b"STORED\r\nSTORED\r\n").1);
    assert_eq!(redis.ask("AUTH ada secret"), "+OK");
    assert_eq!(redis.ask("GET k"), "\"x\"");
    let page = http(&server, "GET /store/k", "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n");
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("\r\n\r\nx"), "{page}");
}
