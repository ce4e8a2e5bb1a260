//! Promise: the answers by which clients distinguish versions of memcached are those of 1.6.45, byte for byte. Each
//! case is written down here, and holds for this server and, where it is there, for memcached 1.6.45 itself.

use crate::binary::Packet;
use crate::support::{start, Client, Server};

/// This server, and 1.6.45 if it is there.
fn servers(arguments: &[&str]) -> Vec<(&'static str, Server)> {
    let theirs = Server::memcached_today(&[&["-o", "no_lru_maintainer"], arguments].concat());
    let ours = start(arguments);
    std::iter::once(("hashmere", ours)).chain(theirs.map(|server| ("memcached 1.6.45", server))).collect()
}

/// What comes for a request on a new connection, up to the answer to `mn`, or to the end.
fn answer(server: &Server, request: &str) -> String {
    let mut client = server.connect();
    client.send(request.as_bytes());
    client.send(b"mn\r\n");
    let (answer, open) = client.until(b"MN\r\n");
    let answer = String::from_utf8_lossy(&answer);
    if open {
        answer[..answer.len() - 4].into()
    } else {
        format!("{answer}<closed>")
    }
}

/// Whether an answer is as expected; of a time that is left (`t100`) some seconds may have passed on a busy machine.
fn agree(got: &str, expected: &str) -> bool {
    let time = |word: &str| word.strip_prefix('t').and_then(|digits| digits.parse::<u64>().ok());
    let later = |(got, expected)| matches!((time(got), time(expected)), (Some(got), Some(left)) if got <= left && left - got < 40);
    let words = |text| str::split(text, [' ', '\r', '\n']);
    words(got).count() == words(expected).count()
        && words(got).zip(words(expected)).all(|(got, expected)| got == expected || later((got, expected)))
}

/// The cases: each on an empty store; several requests that follow each other are one case.
fn check(cases: &[(&str, &str)]) {
    for (name, server) in servers(&[]) {
        for (request, expected) in cases {
            answer(&server, "flush_all\r\n");
            let got = answer(&server, request);
            assert!(agree(&got, expected), "{name}: {request:?}\n  expected {expected:?}\n  got      {got:?}");
        }
    }
}

/// Lines with their answers, checked together: on one pair of servers.
#[derive(Default)]
struct Lines(Vec<(String, String)>);

impl Lines {
    fn add(&mut self, line: &str, expected: &str) {
        self.0.push((format!("{line}\r\n"), expected.into()));
    }

    fn check(self) {
        check(&self.0.iter().map(|(line, expected)| (line.as_str(), expected.as_str())).collect::<Vec<_>>());
    }
}

const BAD: &str = "CLIENT_ERROR bad command line format\r\n";

#[test]
fn a_line_of_http_closes_the_connection() {
    check(&[
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "<closed>"),
        ("POST / HTTP/1.1\r\nHost: x\r\n\r\nset pwn 0 0 1\r\nx\r\n", "<closed>"),
        ("patch /a/b HTTP/1.1\r\n", "<closed>"),
        ("OPTIONS * HTTP/1.1 \r\n", "<closed>"),
        ("mz HTTP/1.1\r\n", "<closed>"),
        ("GET pwn\r\n", "ERROR\r\n"),
        ("get / HTTP/1.1\r\n", "END\r\n"),
        ("GET / HTTP/1.1 x\r\n", "ERROR\r\n"),
        ("get pwn\r\n", "END\r\n"),
    ]);
    // Not only the first line.
    for (name, server) in servers(&[]) {
        let mut client = server.connect();
        assert_eq!(client.ask("mg pwn\r\n"), "EN\r\n");
        client.send(b"PUT /x HTTP/1.1\r\nset pwn 0 0 1\r\nx\r\n");
        assert_eq!(client.until(b"never"), (Vec::new(), false), "{name}");
        assert_eq!(server.connect().ask("mg pwn\r\n"), "EN\r\n", "{name}");
    }
    // Also before authentication.
    let folder = crate::support::Scratch::new("serve");
    let file = folder.path().join("accounts");
    std::fs::write(&file, "u:p\n").unwrap();
    let server = start(&["-Y", file.to_str().unwrap()]);
    assert_eq!(answer(&server, "POST / HTTP/1.1\r\n\r\nset k 0 0 3\r\nu p\r\n"), "<closed>");
    // A method that is called like a command: here the header closes, in memcached the body is performed.
    let server = start(&[]);
    for method in ["set", "get", "mg", "delete"] {
        let said = answer(&server, &format!("{method} /x HTTP/1.1\r\nHost: x\r\n\r\nset pwn 0 0 1\r\nx\r\n"));
        assert!(said.ends_with("<closed>") && !said.contains("STORED"), "{method}: {said}");
    }
    assert_eq!(answer(&server, "mg pwn\r\n"), "EN\r\n");
}

#[test]
fn quiet_requests_say_what_went_wrong() {
    let cases = [
        ("md k q\r\nma k q\r\nmd k q k O1\r\nma k k q O2\r\n", "NF\r\nNF\r\nNF kk O1\r\nNF kk O2\r\n"),
        ("mg k q\r\nmg k q k\r\n", ""),
        ("set k 0 0 1\r\n1\r\nmd k C1 q\r\nma k C1 q\r\nms k 1 C1 q\r\nx\r\n", "STORED\r\nEX\r\nEX\r\nEX\r\n"),
        ("set k 0 0 1\r\n1\r\nma k q\r\nmd k q\r\nms k 1 q\r\nx\r\nms k 1 ME q\r\nx\r\n", "STORED\r\nNS\r\n"),
        ("ms k 1 C1 q\r\nx\r\nms k 1 MR q\r\nx\r\n", "NF\r\nNS\r\n"),
    ];
    check(&cases);
    // What is created by counting is quiet too, which 1.6.18 does not do; the rest it does.
    check(&[("ma k N0 q\r\nma k q v\r\n", "")]);
    let Some(older) = Server::memcached(&[]) else { return };
    for (request, expected) in cases {
        answer(&older, "flush_all\r\n");
        assert_eq!(answer(&older, request), expected, "1.6.18: {request:?}");
    }
}

#[test]
fn words_that_are_missing_or_wrong() {
    let mut lines = Lines::default();
    let long = "k".repeat(251);
    for line in [
        "",
        "a",
        " ",
        "get",
        "gets ",
        "gat",
        "gat 1",
        "gat x",
        "set",
        "set k 0 0",
        "set k 0 noreply",
        "cas k",
        "incr",
        "incr k",
        "touch",
        "touch k",
        "delete",
        "mg",
        "ms",
        "md",
        "ma",
        "me",
        "ms k",
        "ms k x",
        "ms k S1",
        "ms k +1",
        "verbosity",
        "mg k !",
        "md k {",
        "me k !",
        "delete LONG",
        "incr LONG 1",
        "touch LONG 1",
        "mg LONG",
        "md LONG",
        "me LONG",
    ] {
        lines.add(&line.replace("LONG", &long), BAD);
    }
    for line in [
        " get k",
        "  ",
        "ab",
        "getx k",
        "mz k",
        "bget k",
        "GET k",
        "stats bogus",
        "cache_memlimit",
        "slabs",
        "lru tune x",
    ] {
        lines.add(line, "ERROR\r\n");
    }
    for line in ["touch k x", "touch k +1", "gat x k", "gat +1 k", "flush_all x", "flush_all +1"] {
        lines.add(line, "CLIENT_ERROR invalid exptime argument\r\n");
    }
    for line in ["incr k x", "decr k -1", "incr k +1", "incr k 18446744073709551616"] {
        lines.add(line, "CLIENT_ERROR invalid numeric delta argument\r\n");
    }
    for line in
        ["foo noreply", "incr k noreply", "touch k x noreply", "delete noreply", "shutdown noreply", "lru x noreply"]
    {
        lines.add(line, "");
    }
    for (line, expected) in [
        ("incr k 1 2 3", "NOT_FOUND\r\n"),
        ("touch k 1 2 3", "NOT_FOUND\r\n"),
        ("delete k 5", "NOT_FOUND\r\n"),
        ("delete k a b", "NOT_FOUND\r\n"),
        ("shutdown", "SERVER_ERROR: shutdown not enabled\r\n"),
        ("stats cachedump 1", "CLIENT_ERROR bad command line\r\n"),
        ("lru_crawler metadump 99", "BADCLASS invalid class id\r\n"),
        ("lru_crawler sleep x", BAD),
        ("slabs reassign 1 1", "SAME src and dst class are identical\r\n"),
        ("lru tune 20 90 0.2 2.0", "ERROR hot and warm pcts must not exceed 80\r\n"),
        ("me k b", "EN\r\n"),
    ] {
        lines.add(line, expected);
    }
    lines.check();
}

/// Which bad lines are followed by data that are ignored, and which are not.
#[test]
fn data_behind_bad_lines() {
    let mut lines = Lines::default();
    let long = "k".repeat(251);
    for line in [
        "set k x 0 2",
        "set k 0 x 2",
        "set k -1 0 2",
        "set LONG 0 0 2",
        "cas k 0 0 2",
        "cas k 0 0 2 x",
        "cas k 0 0 2 +1",
        "append k 0 1x 2",
        "ms LONG 2",
        "ms LONG 2 q",
    ] {
        lines.add(&format!("{}\r\nxx", line.replace("LONG", &long)), BAD);
    }
    for line in ["set k 0 x 2 noreply", "cas k 0 0 2 noreply", "set LONG 0 0 2 noreply"] {
        lines.add(&format!("{}\r\nxx", line.replace("LONG", &long)), "");
    }
    for line in [
        "set k 0 0 -1",
        "set k 0 0 x",
        "set k 0 0 +2",
        "set k 0 0 noreply",
        "cas k 0 0",
        "ms k -1",
        "ms k S2",
        "ms k 2x",
        "ms k 2 !",
    ] {
        lines.add(&format!("{line}\r\nxx"), &format!("{BAD}ERROR\r\n"));
    }
    for (flags, reply) in [
        ("z", "invalid flag"),
        ("S2", "invalid flag"),
        ("v v", "duplicate flag"),
        ("Tx", "bad token in command line format"),
        ("Fx", "bad command line format"),
        ("Fx Tx", "bad token in command line format"),
        ("Dx", "invalid numeric delta value"),
        ("b", "error decoding key"),
        ("M", "invalid mode for ms M token"),
        ("Mz q", "invalid mode for ms M token"),
        ("c f h k l q s t u v O1 L P C1 D1 F1 I J1", "options flags are too long"),
    ] {
        lines.add(&format!("ms k 2 {flags}\r\nxx"), &format!("CLIENT_ERROR {reply}\r\n"));
    }
    lines.add("set k 0 0 2 x y\r\nxx", "STORED\r\n");
    lines.add("set k 0 0 2 noreply noreply\r\nxx", "");
    lines.add("set k 0 0 1\r\nxxxx", &format!("CLIENT_ERROR bad data chunk\r\n{BAD}"));
    lines.check();
}

#[test]
fn lengths_that_are_none() {
    let mut lines = Lines::default();
    for len in [
        "2147483646",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967297",
        "18446744073709551615",
        "99999999999999999999",
    ] {
        for line in ["set k 0 0 LEN", "append k 0 0 LEN noreply", "cas k 0 0 LEN 1", "ms k LEN", "ms k LEN q"] {
            lines.add(&line.replace("LEN", len), BAD);
        }
    }
    lines.check();
    let server = start(&[]);
    // One less is the last that memcached waits for: nothing so long can be stored here either.
    assert_eq!(answer(&server, "set k 0 0 2147483645\r\n"), BAD);
    assert_eq!(answer(&server, "ms k 2147483645\r\n"), BAD);
    for opcode in [0x01u8, 0x02, 0x0e, 0x11, 0x00, 0x0a, 0x05, 0x70] {
        let (extras, key) = match opcode {
            0x01 | 0x02 | 0x11 => (8, 1),
            0x05 => (20, 1),
            0x0a => (0, 0),
            _ => (0, 1),
        };
        for body in [0x7fff_ffff_u32, 0x8000_0000, u32::MAX] {
            let mut bytes = vec![0x80, opcode, 0, key, extras, 0, 0, 0];
            bytes.extend(body.to_be_bytes());
            bytes.extend([0; 12 + 9]);
            let mut client = server.connect();
            client.send(&bytes);
            let (answer, open) = client.until(b"never");
            assert!(!open && answer.get(7) == Some(&4), "{opcode:#x} {body:#x}: {answer:?}");
        }
    }
}

#[test]
fn flags_of_the_meta_commands() {
    let opaque = "O".to_string() + &"x".repeat(31);
    let long = "CLIENT_ERROR opaque token too long\r\n";
    check(&[
        (&format!("mg k {opaque}\r\nmd k {opaque}\r\nma k {opaque}\r\n"), &format!("EN {opaque}\r\nNF {opaque}\r\nNF {opaque}\r\n")),
        (&format!("mg k {opaque}x\r\nmd k {opaque}x\r\nma k {opaque}x\r\nms k 1 {opaque}x\r\nx\r\n"), &long.repeat(4)),
        // Every command takes every flag, and leaves out of account what means nothing to it.
        ("set k 0 0 1\r\n1\r\nma k f h l s u x I J1 F1 R1 v k\r\nms k 1 f h l t v D1 J1 R1 k\r\n1\r\n", "STORED\r\nVA 1 kk\r\n2\r\nHD kk\r\n"),
        ("set k 0 0 1\r\n1\r\nmd k c f h l s t u v D1 F1 J1 N1 R1 k\r\nmg k I D1 F1 J1 Mz x k\r\n", "STORED\r\nHD kk\r\nEN kk\r\n"),
        // Modes are upper-case letters.
        ("ms k 1 Ms\r\n1\r\nms k 1 Me\r\n1\r\n", &"CLIENT_ERROR invalid mode for ms M token\r\n".repeat(2)),
        ("ms k 1 MSET\r\n1\r\nma k MINCR v\r\nma k MD v\r\nma k M- v\r\n", "HD\r\nVA 1\r\n2\r\nVA 1\r\n1\r\nVA 1\r\n0\r\n"),
        ("ma k Mi\r\nma k Md\r\nma k M\r\n", &"CLIENT_ERROR invalid mode for ma M token\r\n".repeat(3)),
        // `s` is the length of what is stored then.
        ("set k 0 0 3\r\nabc\r\nms k 2 MA s\r\nde\r\nms k 2 MP s k\r\nzz\r\n", "STORED\r\nHD s5\r\nHD s7 kk\r\n"),
        ("ms k 2 s\r\nab\r\nms k 3 ME s\r\nabc\r\nms k 3 MA C1 s\r\nabc\r\nms z 2 MA N0 s\r\nab\r\n", "HD s2\r\nNS s3\r\nEX s3\r\nHD s2\r\n"),
        // `x` leaves nothing: no value, flags, expiry and marks.
        ("set k 7 100 3\r\nabc\r\nmd k x\r\nmg k v t f s\r\n", "STORED\r\nHD\r\nVA 0 t-1 f0 s0\r\n\r\n"),
        ("set k 7 100 3\r\nabc\r\nmd k I\r\nmg k v t\r\nmd k x\r\nmg k v t f\r\n", "STORED\r\nHD\r\nVA 3 t100 X W\r\nabc\r\nHD\r\nVA 0 t-1 f0\r\n\r\n"),
        ("mg k N30\r\nmd k x\r\nmg k t\r\n", "HD W\r\nHD\r\nHD t-1\r\n"),
        ("set k 7 100 3\r\nabc\r\nmd k x T50\r\nmg k t f s\r\n", "STORED\r\nHD\r\nHD t50 f0 s0\r\n"),
        ("set k 7 100 3\r\nabc\r\nmd k x I\r\nmg k v t\r\nmg k t\r\n", "STORED\r\nHD\r\nVA 0 t-1 X W\r\n\r\nHD t-1 Z X\r\n"),
        // A time shows from the flag on that gives it, and the last of `T` and `N` is what a new item gets.
        ("set k 0 2000 2\r\n12\r\nma k t MD T1000\r\nmg k t\r\n", "STORED\r\nHD t2000\r\nHD t1000\r\n"),
        ("ma k T500 t N1000\r\nmg k t\r\n", "HD t500\r\nHD t1000\r\n"),
        ("ma k N1000 t T500\r\nmg k t\r\n", "HD t1000\r\nHD t500\r\n"),
        ("mg k N60 t T500\r\nmg k t\r\n", "HD t60 W\r\nHD t500 Z\r\n"),
        ("mg k t T500 N60\r\nmg k t\r\n", "HD t-1 W\r\nHD t60 Z\r\n"),
        // A delay that is none removes nothing, whether that is said or not.
        ("set k 0 0 1\r\n1\r\nflush_all noreply noreply\r\nget k\r\n", "STORED\r\nVALUE k 0 1\r\n1\r\nEND\r\n"),
        // The last mistake is reported, unknown and repeated flags before all.
        ("mg k Tx Dx\r\nmg k Dx Tx\r\nmg k Tx z\r\nmg k v v z\r\n", "CLIENT_ERROR invalid numeric delta value\r\nCLIENT_ERROR bad token in command line format\r\nCLIENT_ERROR invalid flag\r\nCLIENT_ERROR duplicate flag\r\n"),
        ("mg !!! b\r\nmg !!! b Tx\r\nmd !!! b\r\nma !!! b\r\nma k z\r\n", "CLIENT_ERROR error decoding key\r\nCLIENT_ERROR bad token in command line format\r\nCLIENT_ERROR error decoding key\r\nCLIENT_ERROR invalid or duplicate flag\r\nCLIENT_ERROR invalid or duplicate flag\r\n"),
    ]);
}

fn cas(client: &mut Client) -> u64 {
    client.ask("gets k\r\n").split_whitespace().nth(4).unwrap().parse().unwrap()
}

/// A client that has this version is not sent the value.
#[test]
fn a_version_saves_sending_the_value() {
    for (name, server) in servers(&[]) {
        let mut client = server.connect();
        client.ask("set k 7 100 3\r\nabc\r\n");
        let has = cas(&mut client);
        for (flags, expected) in
            [("v t", "HD t100\r\n"), ("v s f q", "HD s3 f7\r\n"), ("k O1", "HD kk O1\r\n"), ("v T50 t", "HD t50\r\n")]
        {
            let got = client.ask(&format!("mg k C{has} {flags}\r\n"));
            assert!(agree(&got, expected), "{name}: {got:?}, not {expected:?}");
        }
        let other = has + 1;
        let got = client.ask(&format!("mg k C{other} v t\r\n"));
        assert!(agree(&got, "VA 3 t50\r\nabc\r\n"), "{name}: {got:?}");
        client.ask("md k I\r\n");
        let has = cas(&mut client);
        assert_eq!(client.ask(&format!("mg k C{has} v\r\nmg k C{has} v\r\n")), "HD X W\r\nHD Z X\r\n", "{name}");
    }
}

/// A value that is too large: what it was to replace goes with `set` and `ms`, in text and in binary, and stays with
/// the rest.
#[test]
fn what_a_value_that_is_too_large_leaves() {
    let big = "x".repeat(1_100_000);
    for (name, server) in servers(&[]) {
        let mut client = server.connect();
        for (verb, stays) in
            [("set", false), ("add", true), ("replace", true), ("append", true), ("prepend", true), ("cas", true)]
        {
            client.ask("set k 0 0 3\r\nabc\r\n");
            let version = if verb == "cas" { format!(" {}", cas(&mut client)) } else { String::new() };
            let answer = client.ask(&format!("{verb} k 0 0 1100000{version}\r\n{big}\r\nmg k\r\n"));
            let left = if stays { "HD" } else { "EN" };
            assert_eq!(answer, format!("SERVER_ERROR object too large for cache\r\n{left}\r\n"), "{name} {verb}");
        }
        for flags in ["", "ME", "MR", "MA", "MP", "C1"] {
            client.ask("set k 0 0 3\r\nabc\r\n");
            let answer = client.ask(&format!("ms k 1100000 {flags}\r\n{big}\r\nmg k\r\n"));
            assert_eq!(answer, "SERVER_ERROR object too large for cache\r\nEN\r\n", "{name} ms {flags}");
        }
        let mut binary = server.connect();
        for (opcode, stays) in [(0x01, false), (0x11, false), (0x02, true), (0x03, true), (0x0e, true), (0x0f, true)] {
            for version in [0, 1] {
                client.ask("set k 0 0 3\r\nabc\r\n");
                let extras = vec![0; if opcode >= 0x0e && opcode != 0x11 { 0 } else { 8 }];
                let packet = Packet { opcode, extras, key: "k".into(), value: big.clone().into(), cas: version };
                binary.send(&packet.bytes(1));
                assert_eq!(binary.exactly(24 + 10)[7], 3, "{name} {opcode:#x}");
                let left = if stays { "HD\r\n" } else { "EN\r\n" };
                assert_eq!(client.ask("mg k\r\n"), left, "{name} {opcode:#x} with version {version}");
            }
        }
    }
}

/// A dump: memcached wants nothing to be sent before it is over.
fn dump(client: &mut Client, request: &str, end: &str) -> String {
    client.send(format!("{request}\r\n").as_bytes());
    let (answer, open) = client.until(end.as_bytes());
    assert!(open);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn dumps_begin_with_ok_and_can_be_sent_back() {
    use base64::Engine as _;
    let base64 = |key: &[u8]| base64::engine::general_purpose::STANDARD.encode(key);
    let binary = [&b"a b"[..], b"\x00\x01\xff\n", &[b' '; 186]].map(base64);
    let plain = ["plain", "p%20c:=", "tab\tz", &"k".repeat(250)];
    for (name, server) in servers(&[]) {
        let mut client = server.connect();
        assert_eq!(dump(&mut client, "lru_crawler mgdump all", "EN\r\n"), "OK\r\nEN\r\n", "{name}");
        for key in plain {
            client.ask(&format!("set {key} 7 0 1\r\nx\r\n"));
        }
        for key in &binary {
            client.ask(&format!("ms {key} 1 b\r\nx\r\n"));
        }
        let all = dump(&mut client, "lru_crawler mgdump hash", "EN\r\n");
        let mut lines: Vec<&str> = all.split("\r\n").collect();
        assert_eq!((lines.remove(0), lines.pop(), lines.pop()), ("OK", Some(""), Some("EN")), "{name}");
        let mut expected: Vec<String> = plain.iter().map(|key| format!("mg {key}")).collect();
        expected.extend(binary.iter().map(|key| format!("mg {key} b")));
        expected.sort();
        lines.sort_unstable();
        assert_eq!(lines, expected, "{name}");
        for line in lines {
            assert_eq!(client.ask(&format!("{line} s\r\n")), "HD s1\r\n", "{name} {line}");
        }
        let all = dump(&mut client, "lru_crawler metadump all", "END\r\n");
        assert!(all.starts_with("OK\r\nkey=") && all.ends_with(" \nEND\r\n"), "{name}: {all}");
        let line = all.lines().find(|line| line.starts_with("key=plain ")).unwrap();
        assert!(line.starts_with("key=plain exp=-1 la=") && line.ends_with(" flags=7 "), "{name}: {line}");
        assert_eq!(
            client.ask("stats cachedump 1 0\r\n").matches("ITEM ").count(),
            if name == "hashmere" { 4 } else { 3 }
        );
        let metadata = client.ask("me tab\tz\r\n");
        assert!(metadata.starts_with("ME tab\tz exp=-1 la="), "{name}: {metadata}");
    }
}

/// Local processes store keys that no request can name.
#[test]
fn dumps_leave_out_what_memcached_could_not_hold() {
    let server = start(&[]);
    let store = hashmere::Options::new().create(false).open(server.folder().join("memcached.mere")).unwrap();
    for key in [&b""[..], &[b'k'; 251], &[0; 187], &[b'k'; 5000], &[b' '; 186], b"a\nb"] {
        store.set(key, b"x").unwrap();
    }
    let mut client = server.connect();
    let dump = client.ask("lru_crawler mgdump all\r\n");
    let mut lines: Vec<&str> = dump.split("\r\n").collect();
    lines.sort_unstable();
    assert_eq!(lines, ["", "EN", "OK", &format!("mg {} b", "ICAg".repeat(62)), "mg YQpi b"]);
    assert_eq!(client.ask("stats cachedump 1 0\r\n"), "END\r\n");
}

#[test]
fn names_and_passwords_in_text() {
    let folder = crate::support::Scratch::new("serve");
    let file = folder.path().join("accounts");
    std::fs::write(&file, "u:p\n").unwrap();
    let long = "x".repeat(2000);
    for (name, server) in servers(&["-Y", file.to_str().unwrap()]) {
        for (requests, expected) in [
            (&["get k\r\n"][..], "CLIENT_ERROR unauthenticated\r\n"),
            (&["set k 0 0\r\n"], "CLIENT_ERROR unauthenticated\r\n"),
            (&["set k 0 0 x\r\n"], "CLIENT_ERROR unauthenticated\r\n"),
            (&["set k 0 0 -1\r\n"], "CLIENT_ERROR unauthenticated\r\n"),
            (&["set k 0 0 4294967297\r\n"], "CLIENT_ERROR unauthenticated\r\n"),
            (&["set k 0 0 16385\r\n"], "CLIENT_ERROR auth token too long\r\n"),
            (&["set k 0 0 2000000\r\n"], "CLIENT_ERROR auth token too long\r\n"),
            (&["set k 0 0 2000\r\n", &long, "\r\n"], "CLIENT_ERROR bad authentication token format\r\n"),
            (&["set k 0 0 3\r\nuxp\r\n"], "CLIENT_ERROR bad authentication token format\r\n"),
            (&["set k 0 0 3\r\nu pXX\r\n"], "CLIENT_ERROR bad command line termination\r\n"),
            (&["set k 0 0 3\r\nu x\r\n"], "CLIENT_ERROR authentication failure\r\n"),
            (&["set k 0 0 5\r\nu p x\r\n"], "CLIENT_ERROR authentication failure\r\n"),
            (&["set k 0 0 3\r\nu p\r\n"], "STORED\r\n"),
        ] {
            let mut client = server.connect();
            requests.iter().for_each(|part| client.send(part.as_bytes()));
            let (answer, _) = client.until(b"\r\n");
            assert_eq!(String::from_utf8_lossy(&answer), expected, "{name} {requests:?}");
        }
        // Something that short from a stranger closes the connection.
        for request in ["mn\r\n", "quit\r\n", "abcd\r\n"] {
            let mut client = server.connect();
            client.send(request.as_bytes());
            assert_eq!(client.until(b"never"), (Vec::new(), false), "{name} {request:?}");
        }
    }
}
