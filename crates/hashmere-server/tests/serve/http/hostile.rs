//! Promise: who may not ask learns nothing and changes nothing; what can be read in two ways is refused, and nothing
//! behind it is performed; a slow or silent client holds nothing for long. Catches: request smuggling, cross-site
//! requests, DNS rebinding, a token that is not asked for somewhere.

use super::Http;
use crate::support::{Scratch, PATIENCE};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let http = Http::start(&["--http-write"]);
    let behind = "PUT /store/smuggled HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
    let chunked = format!("0\r\n\r\n{behind}");
    for (head, body, status) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunked.as_str(), 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", &chunked, 400),
        ("Content-Length: 1\r\nContent-Length: 1\r\n", "x", 400),
        ("Content-Length: 1\r\nContent-length: 99\r\n", "x", 400),
        ("Content-Length: 1, 1\r\n", "x", 400),
        ("Content-Length: +1\r\n", "x", 400),
        ("Content-Length: 1 \r\n x: y\r\n", "x", 400),
        ("Content-Length : 1\r\n", "x", 400),
        ("Content-Length: 1\n", "x", 400),
        ("Transfer-Encoding: xchunked\r\n", &chunked, 501),
        ("Transfer-Encoding: chunked, identity\r\n", &chunked, 501),
        ("Transfer-Encoding:\x0bchunked\r\n", &chunked, 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", &chunked, 400),
        ("Transfer-Encoding: chunked\r\n", "1\r\nxy\r\n0\r\n\r\n", 400),
        ("Transfer-Encoding: chunked\r\n", "-1\r\n", 400),
        ("Transfer-Encoding: chunked\r\n", "1\nx\r\n0\r\n\r\n", 400),
        ("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 9\r\n\r\n", 400),
        ("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\n", 400),
        ("", "", 411),
        ("Content-Length: 99999999\r\n", "", 413),
        ("Expect: 200-ok\r\nContent-Length: 1\r\n", "x", 417),
    ] {
        let answer = http
            .raw(format!("PUT /store/k HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n{body}{behind}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head:?} {body:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{head:?} {body:?}: {answer}");
    }
    assert_eq!((http.status("GET /store/smuggled", "", ""), http.status("GET /store/k", "", "")), (404, 404));
    for (request, status) in [
        ("GET / HTTP/2.0\r\n\r\n", 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
        ("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
        ("OPTIONS / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405),
        ("PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 405),
        ("GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        ("GET /store/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", 400),
        ("GET /store/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET /\r\n\r\n", 400),
        ("get k\r\n\r\n", 400),
        ("\x16\x03\x01\x02\r\n\r\n", 400),
    ] {
        let answer = http.raw(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    }
}

#[test]
fn long_heads_are_refused() {
    let http = Http::start(&[]);
    let long = "x".repeat(40 << 10);
    for (request, status) in [
        (format!("GET /store/{long}"), 414),
        (format!("GET / HTTP/1.1\r\nX: {long}"), 431),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(65)), 431),
    ] {
        let answer = http.raw(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
    }
}

/// What only a page of another site would send, or a name that it made point here.
#[test]
fn other_sites_are_refused() {
    let http = Http::start(&["--http-write", "--http-host", "cache.example", "--feed", "1m"]);
    let with = |line: &str, headers: &str| {
        let length = if line.starts_with("PUT") { "Content-Length: 1\r\n\r\nx" } else { "\r\n" };
        let answer = http.raw(format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}{length}"));
        assert!(!answer.contains("Access-Control-"), "{answer}");
        answer[9..12].parse::<u16>().unwrap()
    };
    for target in [
        "GET /store/k",
        "GET /store/",
        "GET /api/stats",
        "GET /metrics",
        "HEAD /changes",
        "PUT /store/k",
        "DELETE /store/k",
    ] {
        for host in
            ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost:x"]
        {
            assert_eq!(with(target, &format!("Host: {host}\r\n")), 421, "{target} {host}");
        }
        for other in [
            "Origin: http://evil.example",
            "Origin: null",
            "Origin: http://localhost:1",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
        ] {
            assert_eq!(with(target, &format!("Host: localhost\r\n{other}\r\n")), 403, "{target} {other}");
        }
    }
    assert_eq!(with("GET /", "Host: evil.example\r\n"), 421);
    assert_eq!(with("GET /store/k", "Host: localhost\r\n"), 404);
    // Its own pages may ask, and what is no browser.
    assert_eq!(
        with(
            "PUT /store/k",
            "Host: cache.example:80\r\nOrigin: https://cache.example:80\r\nSec-Fetch-Site: same-origin\r\n"
        ),
        201
    );
    // A link from another site shows the page, which has no data.
    assert_eq!(with("GET /", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"), 200);
    let page = http.ask("GET /", "", "");
    for header in [
        "default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "X-Frame-Options: DENY",
        "Referrer-Policy: no-referrer",
        "nosniff",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    for outside in ["http://", "https://", "//cdn", "onclick=", "style=\"", "<script>"] {
        assert!(!page.body.contains(outside), "{outside}");
    }
}

#[test]
fn changes_need_an_option_and_data_need_the_token() {
    let http = Http::start(&["--feed", "1m"]);
    for line in ["PUT /store/k", "POST /store/k", "DELETE /store/k"] {
        assert_eq!(http.status(line, "", if line.starts_with('P') { "x" } else { "" }), 403, "{line}");
    }
    // A refused body is skipped, and the connection goes on.
    let answer = http.raw(
        "PUT /store/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 27\r\n\r\nGET /metrics HTTP/1.1\r\n\r\nxx\
        GET /store/k HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(
        (
            answer.matches("HTTP/1.1 403").count(),
            answer.matches("HTTP/1.1 404").count(),
            answer.matches("HTTP/1.1").count()
        ),
        (1, 1, 2)
    );

    let scratch = Scratch::new("token");
    let file = scratch.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let http = Http::start(&["--http-write", "--http-token", file.to_str().unwrap()]);
    let with = |line: &str, header: &str| http.status(line, header, if line.starts_with('P') { "x" } else { "" });
    for line in [
        "GET /store/k",
        "GET /store/",
        "PUT /store/k",
        "POST /bulk",
        "DELETE /store/k",
        "GET /metrics",
        "GET /api/stats",
        "GET /changes",
        "GET /none",
    ] {
        for scheme in ["", "Bearer 0123456789abcdeg", "Bearer 0123456789abcde", "Bearer", "Basic 0123456789abcdef"] {
            let header = if scheme.is_empty() { String::new() } else { format!("Authorization: {scheme}\r\n") };
            assert_eq!(with(line, &header), 401, "{line} {scheme}");
        }
    }
    assert_eq!(http.ask("GET /metrics", "", "").header("WWW-Authenticate"), Some("Bearer realm=\"hashmere\""));
    assert_eq!((with("GET /", ""), with("PUT /store/k", "Authorization: bearer 0123456789abcdef\r\n")), (200, 201));
    // SIGHUP reads it again.
    std::fs::write(&file, "another-token-of-24-bytes").unwrap();
    http.server.signal("HUP");
    let deadline = Instant::now() + PATIENCE;
    while with("GET /store/k", "Authorization: Bearer another-token-of-24-bytes\r\n") != 200 {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn expectations_are_answered_before_the_body() {
    let http = Http::start(&["--http-write"]);
    let head = |key: &str, length: usize| {
        format!(
            "PUT /store/{key} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let mut client = http.connect();
    client.send(head("k", 3).as_bytes());
    assert_eq!(client.until(b"\r\n\r\n").0, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send(b"abc");
    assert!(client.until(b"\r\n\r\n").0.starts_with(b"HTTP/1.1 201 Created\r\n"));
    // A body that is there already needs no answer; one that is too long is not waited for.
    client.send(format!("{}xyz", head("k", 3)).as_bytes());
    assert!(client.until(b"\r\n\r\n").0.starts_with(b"HTTP/1.1 204 No Content\r\n"));
    assert!(http.raw(head("k", 1 << 21)).starts_with("HTTP/1.1 413 "));
}

#[test]
fn slow_requests_have_a_deadline_and_hold_nothing_up() {
    const CLIENTS: usize = 200;
    let http = Http::start(&["--http-write", "-c", "1000"]);
    let before = http.server.memory("RssAnon:");
    let beginnings: [&[u8]; 3] = [
        b"GET /store/k",
        b"PUT /store/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nX: ",
    ];
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| http.connect()).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        client.send(beginnings[i % 3]);
    }
    let grown = http.server.memory("RssAnon:").saturating_sub(before);
    assert!(grown < CLIENTS as u64 * 8192 + (24 << 20), "memory grew by {grown}");
    // A byte now and then does not move the deadline.
    let deadline = Instant::now() + PATIENCE;
    let mut slow = clients.swap_remove(0);
    while slow.stream.write_all(b"k").is_ok() {
        assert_eq!(http.status("GET /store/none", "", ""), 404);
        assert!(Instant::now() < deadline, "it may send a byte now and then forever");
        std::thread::sleep(Duration::from_millis(50));
    }
    for client in &mut clients {
        let (answer, open) = client.until(b"never");
        assert!(!open && answer.starts_with(b"HTTP/1.1 408 "), "{}", answer.escape_ascii());
    }
}

#[test]
fn a_client_that_never_reads_is_bounded() {
    const CLIENTS: u64 = 20;
    let http = Http::start(&["--http-write"]);
    http.ask("PUT /store/k", "", &"x".repeat(30_000));
    let before = http.server.memory("RssAnon:");
    let request = b"GET /store/k HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(5000);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = http.connect();
            client.stream.set_nonblocking(true).unwrap();
            client.send(&request);
            client
        })
        .collect();
    assert_eq!(http.status("GET /store/k", "", ""), 200);
    let grown = http.server.memory("RssAnon:").saturating_sub(before);
    assert!(grown < CLIENTS * ((256 << 10) + (64 << 10) + 30_000) + (24 << 20), "memory grew by {grown}");
    drop(clients);
}

#[test]
fn what_fits_no_other_option_is_refused_at_the_start() {
    use hashmere_server::{Address, Config, Endpoint, HttpOptions, Protocol};
    let refused = |address: [u8; 4], write, accounts: Option<&str>| {
        let endpoint = Endpoint { address: Address::Tcp((address, 0).into()), protocol: Protocol::Http };
        let http = HttpOptions { write, ..HttpOptions::default() };
        let accounts = accounts.map(Into::into);
        let config = Config { endpoints: vec![endpoint], http, accounts, ..Config::default() };
        hashmere_server::serve(config, || Err("not reached".to_string()), |_, _| {}).unwrap_err()
    };
    assert!(
        refused([0, 0, 0, 0], true, None).contains("--http-write on an address of other machines needs --http-token")
    );
    assert!(refused([127, 0, 0, 1], false, Some("/none")).contains("HTTP needs --http-token"));
    assert_eq!(refused([0, 0, 0, 0], false, None), "not reached");
    let scratch = Scratch::new("token");
    let file = scratch.path().join("token");
    for (text, mode, why) in [
        ("0123456789abcdef", 0o644, "every user may read it"),
        ("short", 0o600, "at least 16"),
        ("0123456789 abcdef", 0o600, "no spaces"),
    ] {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let http = HttpOptions { token: Some(file.clone()), ..HttpOptions::default() };
        let config = Config { http, ..Config::default() };
        let error = hashmere_server::serve(config, || Err("not reached".to_string()), |_, _| {}).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
