//! Promise: the keys of the store over HTTP, each change atomic, each reply as `docs/guide/http.md` says. Catches: a
//! condition that is looked at before the change instead of with it, a length that is not that of the body.

use super::Http;

/// What every reply has that is no page.
const ALWAYS: &str = "X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'none'; sandbox\r\nCache-Control: no-cache\r\n";

/// Without what differs between two runs.
fn plain(reply: &str) -> String {
    let of = |line: &str| match line.split_once(": ") {
        Some((name @ ("Date" | "ETag"), _)) => format!("{name}: ..\r\n"),
        _ => line.into(),
    };
    reply.split_inclusive("\r\n").map(of).collect()
}

#[test]
fn replies_byte_for_byte_in_order() {
    let http = Http::start(&["--http-write"]);
    let requests = "PUT /store/a%00b HTTP/1.1\r\nHost: localhost\r\nX-Hashmere-Flags: 7\r\nContent-Length: 5\r\n\r\nhello\
        GET /store/a%00b HTTP/1.1\r\nhost: 127.0.0.1:80\r\n\r\n\
        \r\nPUT /store/a%00b HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n\
        HEAD /store/a%00b HTTP/1.1\r\nHost: localhost\r\n\r\n\
        DELETE /store/a%00b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n\
        GET /store/a%00b HTTP/1.1\r\nHost: localhost\r\nConnection: Close\r\n\r\n\
        GET /store/never HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let expected = [
        format!("HTTP/1.1 201 Created\r\nDate: ..\r\n{ALWAYS}ETag: ..\r\nContent-Length: 0\r\n\r\n"),
        format!(
            "HTTP/1.1 200 OK\r\nDate: ..\r\n{ALWAYS}ETag: ..\r\nX-Hashmere-Flags: 7\r\n\
            Content-Type: application/octet-stream\r\nContent-Length: 5\r\n\r\nhello"
        ),
        format!("HTTP/1.1 204 No Content\r\nDate: ..\r\n{ALWAYS}ETag: ..\r\n\r\n"),
        format!(
            "HTTP/1.1 200 OK\r\nDate: ..\r\n{ALWAYS}ETag: ..\r\nAccept-Ranges: bytes\r\n\
            Content-Type: application/octet-stream\r\nContent-Length: 3\r\n\r\n"
        ),
        format!("HTTP/1.1 204 No Content\r\nDate: ..\r\n{ALWAYS}\r\n"),
        format!(
            "HTTP/1.1 404 Not Found\r\nDate: ..\r\nConnection: close\r\n{ALWAYS}\
            Content-Type: text/plain; charset=utf-8\r\nContent-Length: 12\r\n\r\nno such key\n"
        ),
    ];
    assert_eq!(
        plain(&http.raw(requests).replace("helloHTTP", "hello\r\nHTTP")).replace("hello\r\n", "hello"),
        expected.concat()
    );
}

#[test]
fn changes_are_atomic_at_a_version() {
    let http = Http::start(&["--http-write"]);
    assert_eq!(http.status("PUT /store/k", "If-Match: *\r\n", "x"), 412);
    assert_eq!(http.status("DELETE /store/k", "If-Match: *\r\n", ""), 412);
    assert_eq!(http.status("POST /store/k", "", "1"), 201);
    assert_eq!(
        (http.status("POST /store/k", "", "2"), http.status("PUT /store/k", "If-None-Match: *\r\n", "2")),
        (409, 412)
    );
    let tag = http.ask("GET /store/k", "", "").header("ETag").unwrap().to_string();
    assert_eq!(http.status("GET /store/k", &format!("If-None-Match: \"1\", W/{tag}\r\n"), ""), 304);
    assert_eq!(http.status("GET /store/k", &format!("If-Match: {tag}\r\n"), ""), 200);
    assert_eq!(http.status("GET /store/k", "If-Match: \"1\"\r\n", ""), 412);
    for (weak, status) in
        [(format!("W/{tag}"), 412), ("\"0\"".into(), 412), ("\"x\"".into(), 412), (format!("{tag}, \"1\""), 400)]
    {
        assert_eq!(http.status("PUT /store/k", &format!("If-Match: {weak}\r\n"), "3"), status, "{weak}");
        assert_eq!(http.status("DELETE /store/k", &format!("If-Match: {weak}\r\n"), ""), status, "{weak}");
    }
    assert_eq!(http.ask("GET /store/k", "", "").body, "1");
    // Of many clients with the same tag one succeeds.
    let winners = std::thread::scope(|scope| {
        let put = || http.status("PUT /store/k", &format!("If-Match: {tag}\r\n"), "9");
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(put)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|status| *status == 204).count()
    });
    assert_eq!(winners, 1);
    assert_eq!(http.status("DELETE /store/k", &format!("If-Match: {tag}\r\n"), ""), 412);
    let tag = http.ask("HEAD /store/k", "", "").header("ETag").unwrap().to_string();
    assert_eq!(http.status("DELETE /store/k", &format!("If-Match: {tag}\r\n"), ""), 204);
    assert_eq!((http.status("DELETE /store/k", "", ""), http.status("GET /store/k", "", "")), (404, 404));
}

#[test]
fn time_to_live_and_flags_are_those_of_memcached() {
    let http = Http::start(&["--http-write"]);
    let mut memcached = http.server.connect();
    assert_eq!(http.status("PUT /store/k", "X-Hashmere-TTL: 1000.5\r\nX-Hashmere-Flags: 4294967295\r\n", "v"), 201);
    assert_eq!(memcached.ask("get k\r\n"), "VALUE k 4294967295 1\r\nv\r\nEND\r\n");
    let ttl: f64 = http.ask("GET /store/k", "", "").header("X-Hashmere-TTL").unwrap().parse().unwrap();
    assert!((900.0..=1000.5).contains(&ttl), "{ttl}");
    memcached.ask("set m 3 0 2\r\nhi\r\n");
    let reply = http.ask("GET /store/m", "", "");
    assert_eq!(
        (reply.body.as_str(), reply.header("X-Hashmere-Flags"), reply.header("X-Hashmere-TTL")),
        ("hi", Some("3"), None)
    );
    for bad in ["X-Hashmere-TTL: -1", "X-Hashmere-TTL: soon", "X-Hashmere-Flags: 4294967296", "X-Hashmere-Flags: -1"] {
        assert_eq!(http.status("PUT /store/k", &format!("{bad}\r\n"), "w"), 400, "{bad}");
    }
    // The placeholder of a lease is an absent key.
    assert!(memcached.ask("lease-get l\r\n").starts_with("LVALUE l "));
    assert_eq!((http.status("GET /store/l", "", ""), http.status("HEAD /store/l", "", "")), (404, 404));
    assert_eq!(
        (http.status("DELETE /store/l", "If-Match: \"5\"\r\n", ""), http.status("POST /store/l", "", "x")),
        (412, 201)
    );
}

#[test]
fn parts_and_long_values() {
    let http = Http::start(&["--http-write"]);
    let long: String = (0..500_000).map(|i| char::from(b'a' + (i % 23) as u8)).collect();
    assert_eq!(http.status("PUT /store/long", "", &long), 201);
    assert!(http.ask("GET /store/long", "", "").body == long);
    for (range, status, part) in [
        ("0-9", 206, &long[..10]),
        ("100000-450000", 206, &long[100_000..=450_000]),
        ("499999-", 206, &long[499_999..]),
        ("-70000", 206, &long[430_000..]),
        ("0-1,5-6", 200, &long[..]),
    ] {
        let reply = http.ask("GET /store/long", &format!("Range: bytes={range}\r\n"), "");
        assert!(reply.status == status && reply.body == part, "{range}: {}", reply.head);
        assert_eq!(reply.header("Content-Length").unwrap(), part.len().to_string());
    }
    let reply = http.ask("GET /store/long", "Range: bytes=500000-\r\n", "");
    assert_eq!((reply.status, reply.header("Content-Range")), (416, Some("bytes */500000")));
    // What is being sent stays what it was.
    let mut client = http.connect();
    client.send(b"GET /store/long HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.until(b"\r\n\r\n");
    assert_eq!(http.status("PUT /store/long", "", "short"), 204);
    assert!(client.exactly(long.len()) == long.as_bytes());
}

#[test]
fn listings_go_on_from_their_cursor() {
    let http = Http::start(&[]);
    let mut memcached = http.server.connect();
    for i in 0..50 {
        memcached.ask(&format!("set p/{i} 0 0 1\r\nx\r\nset q{i} 0 0 1\r\nx\r\n"));
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    for _ in 0..100 {
        let reply = http.ask(&format!("GET /store/?prefix=p%2F&limit=7{cursor}"), "", "");
        let keys: Vec<&str> =
            reply.body.split("\"key\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(keys.len() <= 7);
        found.extend(keys.iter().map(ToString::to_string));
        match reply.body.split_once("\"cursor\":\"") {
            Some((_, rest)) => cursor = format!("&cursor={}", rest.split('"').next().unwrap()),
            None => break,
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 50);
    assert_eq!((http.status("GET /store/?cursor=x", "", ""), http.status("GET /store/?prefix=%z", "", "")), (400, 400));
    assert_eq!(Http::start(&["-X"]).status("GET /store/", "", ""), 403);
}

#[test]
fn a_bulk_request_is_done_whole_or_not_at_all() {
    let http = Http::start(&["--http-write"]);
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    let reply = http.ask(
        "POST /bulk",
        json,
        r#"[{"op":"set","key":"a","value_base64":"/wA="},{"op":"get","key":"a"},{"op":"incr","key":"n","initial":3}]"#,
    );
    assert!(
        reply.status == 200
            && reply.body.contains(r#""value_base64":"/wA=""#)
            && reply.body.contains(r#"{"number":3}"#),
        "{reply:?}"
    );
    let counted = r#"[{"op":"incr_signed","key":"s","initial":-2},{"op":"incr_signed","key":"s","by":-5},
        {"op":"incr_float","key":"f","by":1,"initial":0.1},{"op":"incr_float","key":"f","by":0.2},{"op":"incr_signed","key":"no"}]"#;
    let reply = http.ask("POST /bulk", json, counted);
    let numbers = r#"{"results":[{"number":-2},{"number":-7},{"number":0.1},{"number":0.3},{"number":null}]}"#;
    assert!(reply.status == 200 && reply.body == numbers, "{reply:?}");
    for (body, status) in [
        (r#"[{"op":"set","key":"x","value":"1"},{"op":"incr_float","key":"f"}]"#, 400),
        (r#"[{"op":"set","key":"x","value":"1"},{"op":"incr_float","key":"f","by":"1"}]"#, 400),
        (r#"[{"op":"set","key":"x","value":"1"},{"op":"incr_signed","key":"s","by":0.5}]"#, 400),
        (r#"[{"op":"set","key":"x","value":"1"},{"op":"incr_signed","key":"s","by":-9223372036854775808}]"#, 409),
        (r#"[{"op":"set","key":"x","value":"1"},{"op":"frob","key":"y"}]"#, 400),
        (r#"[{"op":"set","key":"x","value":"1"},{"op":"incr","key":"a"}]"#, 409),
        (r#"[{"op":"set","key":"x"}]"#, 400),
        (r#"[{"op":"set","key":"x","value":"1","value_base64":"MQ=="}]"#, 400),
        (r#"[{"op":"set","key":"x","value_base64":"?"}]"#, 400),
        (r#"[{"op":"set","key":"x","value":"1","ttl":-1}]"#, 400),
        (r#"{"if":[{"key":"x","present":true}],"operations":[{"op":"set","key":"x","value":"1"}]}"#, 412),
        (r#"{"if":[{"key":"x"}],"operations":[]}"#, 400),
        (r#"{"operations":[{"op":"set","key":"x","value":"1"}]"#, 400),
        ("[1]", 400),
        ("7", 400),
        ("", 400),
    ] {
        assert_eq!(http.status("POST /bulk", json, body), status, "{body}");
        assert_eq!(http.status("GET /store/x", "", ""), 404, "{body}");
    }
    assert_eq!(http.status("POST /bulk", "Content-Type: text/plain\r\n", "[]"), 415);
    let many = format!("[{}]", vec![r#"{"op":"get","key":"a"}"#; 1001].join(","));
    assert_eq!(http.status("POST /bulk", json, &many), 413);
    // Reading changes nothing, so it needs no --http-write.
    let reader = Http::start(&[]);
    assert_eq!(reader.status("POST /bulk", json, r#"[{"op":"get","key":"a"}]"#), 200);
    assert_eq!(reader.status("POST /bulk", json, r#"[{"op":"delete","key":"a"}]"#), 403);
}

#[test]
fn a_full_store_says_so() {
    let http = Http::start(&["--http-write", "-M", "-m", "8"]);
    let value = "v".repeat(900_000);
    let refused = (0..40).map(|i| http.status(&format!("PUT /store/k{i}"), "", &value)).find(|status| *status != 201);
    assert_eq!(refused, Some(507));
    assert_eq!(http.ask("GET /store/k0", "", "").body, value);
}
