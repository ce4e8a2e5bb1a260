//! Promise: metrics are served over HTTP to every proper request, independent of other clients. Catches: a client that
//! sends its request slowly, or not at all, and delays others.

use crate::support::{start, Port, Server, PATIENCE};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Clients that the endpoint serves at a time.
const CLIENTS_MAX: usize = 16;

fn server() -> (Server, Port) {
    let port = Port::reserve();
    (start(&["--metrics", &format!("127.0.0.1:{port}")]), port)
}

fn connect(port: &Port) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port.number())).unwrap()
}

/// The answer to a request for this path.
pub fn http(port: &Port, path: &str) -> String {
    let mut stream = connect(port);
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Whether the server has closed this connection, on which it sends nothing.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    !matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn metrics_are_served_over_http() {
    let (server, port) = server();
    server.connect().ask("set k 0 0 1\r\nx\r\nget k\r\n");
    let answer = http(&port, "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for line in
        ["hashmere_get_hits 1", "hashmere_cmd_set 1", "hashmere_curr_items 1", "# TYPE hashmere_curr_items gauge"]
    {
        assert!(answer.lines().any(|other| other == line), "no {line}");
    }
    assert!(http(&port, "/other").starts_with("HTTP/1.1 404 "));
}

#[test]
fn a_silent_client_delays_no_other() {
    let (_server, port) = server();
    let deadline = Instant::now() + PATIENCE;
    // Again if the machine was so busy that the silent client had been given up when the other one was answered.
    loop {
        let mut silent = connect(&port);
        silent.write_all(b"G").unwrap();
        assert!(http(&port, "/metrics").starts_with("HTTP/1.1 200 OK\r\n"));
        if !is_closed(&mut silent) {
            break;
        }
        assert!(Instant::now() < deadline, "each answer came only after the silent client was given up");
    }
}

#[test]
fn a_request_has_one_deadline_however_slowly_it_comes() {
    let (_server, port) = server();
    let mut slow = connect(&port);
    let deadline = Instant::now() + PATIENCE;
    // Far less than the longest request, until it is closed.
    while slow.write_all(b"G").is_ok() && !is_closed(&mut slow) {
        assert!(Instant::now() < deadline, "it may send a byte now and then forever");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn silent_clients_are_bounded_and_give_their_places_back() {
    let (_server, port) = server();
    let _silent: Vec<TcpStream> = (0..CLIENTS_MAX).map(|_| connect(&port)).collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut client = connect(&port);
        // A refused client may find its connection reset.
        let _ = client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        if answer.starts_with(b"HTTP/1.1 200 OK\r\n") {
            break;
        }
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 503 "), "{}", answer.escape_ascii());
        assert!(Instant::now() < deadline, "no place became free");
        std::thread::sleep(Duration::from_millis(50));
    }
}
