//! Promise: however a stream is cut into reads, the replies are the same; and no bytes make a session panic, loop or
//! consume more than it was given. Catches: state that is lost between two reads, lengths that are trusted.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod session;

use hashmere_server::protocol::Next;
use hashmere_server::{Protocol, Server, Session};
use hashmere_testkit::rng::Rng;
use session::converse;

fn server(name: &str) -> Server {
    session::server(std::env::temp_dir().join(format!("hashmere-pieces-{}-{name}.mere", std::process::id())))
}

const TEXT: &[&[u8]] = &[
    b"set k 0 0 3\r\nabc\r\n",
    b"set n 1 0 1\r\n5\r\n",
    b"get k n\r\n",
    b"gets k\r\n",
    b"incr n 7\r\n",
    b"append k 0 0 2\r\nde\r\n",
    b"ms k 2 F7\r\nhi\r\n",
    b"mg k v f k O1\r\n",
    b"mg z N0 v\r\n",
    b"md k I\r\n",
    b"ma n N0 J3 v\r\n",
    b"mn\r\n",
    b"delete k\r\n",
    b"cas k 0 0 1 9\r\nx\r\n",
    b"set big 0 0 9000\r\n",
    b"gat 0 k n\r\n",
    b"lru_crawler mgdump all\r\n",
    b"touch n 0\r\n",
    b"hashmere keys\r\n",
    b"version\r\n",
    b"lease-get k\r\n",
    b"lease-get l k l\r\n",
    b"lease-set l 1 0 0 2\r\nle\r\n",
    b"metaget k n l\r\n",
];

/// Replies without the tokens of leases, which are versions: two runs do not share them.
fn without_tokens(replies: &[u8]) -> Vec<u8> {
    let words = replies.split_inclusive(|byte| *byte == b' ');
    let mut before = [&b""[..]; 2];
    let mut out = Vec::new();
    for word in words {
        let is_token = before[0].ends_with(b"LVALUE ") && word.trim_ascii_end().iter().all(u8::is_ascii_digit);
        out.extend_from_slice(if is_token && word != b"1 " { b"TOKEN " } else { word });
        before = [before[1], word];
    }
    out
}

/// The opcodes whose answers do not tell the time.
const OPCODES: &[u8] =
    &[0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15, 17, 20, 25, 26, 28, 29, 30, 32, 33, 35, 36, 99];

/// Removes, inserts or replaces one byte, by `likely` ones that mean something, or cuts the request off.
fn damage(rng: &mut Rng, request: &mut Vec<u8>, likely: &[u8]) {
    let at = rng.index(request.len());
    match rng.index(4) {
        0 => drop(request.remove(at)),
        1 => request.insert(at, rng.index(256) as u8),
        2 => request[at] = likely[rng.index(likely.len())],
        _ => request.truncate(at),
    }
}

fn text(rng: &mut Rng) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..1 + rng.index(12) {
        let mut request = TEXT[rng.index(TEXT.len())].to_vec();
        if rng.index(4) == 0 {
            damage(rng, &mut request, b" \r\n09k\0-");
        }
        input.extend(request);
    }
    input
}

/// Requests of clients of Redis, as words; some are inline.
const REDIS: &[&str] = &[
    "SET k abc",
    "SET k abc NX GET",
    "GET k",
    "MGET k n none k",
    "INCRBY n 7",
    "INCRBYFLOAT n 0.5",
    "APPEND k de",
    "GETRANGE k 1 -1",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH k n",
    "DEL k n",
    "EXPIRE k 100 NX",
    "PERSIST k",
    "RENAME k n",
    "KEYS *",
    "SCAN 0 COUNT 5",
    "DBSIZE",
    "SUBSCRIBE a b",
    "UNSUBSCRIBE",
    "PUBLISH a hello",
    "HELLO 3",
    "HELLO 2",
    "CLIENT REPLY SKIP",
    "CLIENT SETNAME x",
    "CLIENT LIST",
    "RESET",
    "COMMAND GETKEYS MSET a 1",
    "CONFIG GET s*",
    "NOSUCH a b",
    "PING",
    "QUIT",
];

fn redis(rng: &mut Rng) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..1 + rng.index(12) {
        let words = REDIS[rng.index(REDIS.len())];
        let mut request = match rng.index(5) {
            0 => format!("{words}\r\n").into_bytes(),
            _ => {
                let words: Vec<&str> = words.split(' ').collect();
                let each = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
                format!("*{}\r\n{}", words.len(), each.collect::<String>()).into_bytes()
            }
        };
        if rng.index(12) == 0 {
            request = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n"[..], &[b'x'; 5000], b"\r\n"].concat();
        }
        if rng.index(5) == 0 {
            damage(rng, &mut request, b" \r\n09$*-\"\0");
        }
        input.extend(request);
    }
    input
}

/// The opcode of the binary protocol that asks for statistics.
const STAT: u8 = 0x10;

fn binary(rng: &mut Rng) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..1 + rng.index(8) {
        let opcode = OPCODES[rng.index(OPCODES.len())];
        let extras = match opcode {
            1..=3 | 17 => 8,
            5 | 6 => 20,
            28..=30 | 35 | 36 => 4,
            _ => 0,
        };
        let (key, value) = (rng.index(3), if rng.index(2) == 0 { 0 } else { rng.index(20) });
        let mut packet =
            vec![0x80, opcode, 0, key as u8, extras, 0, 0, 0, 0, 0, 0, (usize::from(extras) + key + value) as u8];
        packet.resize(24 + usize::from(extras) + key + value, 0);
        if rng.index(4) == 0 {
            let at = rng.index(24);
            packet[at] = rng.index(256) as u8;
            // What the statistics say changes from one conversation to the next.
            if packet[1] == STAT {
                packet[1] = opcode;
            }
        }
        input.extend(packet);
    }
    input
}

fn same_however_it_is_cut(protocol: Protocol, name: &str, make: impl Fn(&mut Rng) -> Vec<u8>) {
    let server = server(name);
    let mut rng = Rng::for_test(name);
    for round in 0..3000 {
        let input = make(&mut rng);
        let whole = without_tokens(&converse(&server, protocol, &input, || usize::MAX / 2));
        let mut cuts = Rng::from_seed(round);
        let pieces = without_tokens(&converse(&server, protocol, &input, || 1 + cuts.index(9)));
        assert!(
            whole == pieces,
            "round {round}: {}\n  whole  {}\n  pieces {}",
            input.escape_ascii(),
            whole.escape_ascii(),
            pieces.escape_ascii()
        );
    }
    drop(server);
}

#[test]
fn text_however_it_is_cut() {
    same_however_it_is_cut(Protocol::Text, "text", text);
}

#[test]
fn binary_however_it_is_cut() {
    same_however_it_is_cut(Protocol::Binary, "binary", binary);
}

const HTTP: &[&[u8]] = &[
    b"PUT /store/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
    b"PUT /store/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\n\r\n",
    b"POST /store/%6b HTTP/1.1\r\nHost: [::1]:80\r\nX-Hashmere-Flags: 3\r\nContent-Length: 0\r\n\r\n",
    b"GET /store/k HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /store/k HTTP/1.1\r\nHost: localhost\r\nRange: bytes=1-2\r\n\r\n",
    b"HEAD /store/k HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\n\r\n",
    b"DELETE /store/k HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /store/?prefix=k&limit=9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 33\r\n\r\n[{\"op\":\"incr\",\"key\":\"n\",\"by\":1}]",
    b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nGET ",
    b"PUT /store/k HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde",
    b"GET / HTTP/1.0\r\n\r\n",
    b"\r\n",
];

fn http(rng: &mut Rng) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..1 + rng.index(6) {
        let mut request = HTTP[rng.index(HTTP.len())].to_vec();
        if rng.index(3) == 0 {
            damage(rng, &mut request, b" \r\n09k\0:");
        }
        input.extend(request);
    }
    input
}

#[test]
fn http_however_it_is_cut() {
    same_however_it_is_cut(Protocol::Http, "http", http);
}

#[test]
fn redis_however_it_is_cut() {
    same_however_it_is_cut(Protocol::Resp, "redis", redis);
}

/// Promise: the frequent commands of clients of Redis, which are single calls of the store, reply and do what they do
/// within a transaction. Catches: two ways of one command that differ.
#[test]
fn direct_commands_do_what_they_do_in_a_transaction() {
    const DIRECT: &[&str] = &[
        "GET k",
        "GET n",
        "GET none",
        "MGET k none n",
        "SET k v",
        "SET k v EX 100",
        "SET k v NX",
        "SET new v NX PX 5000000",
        "SET k v XX GET",
        "SET k v KEEPTTL",
        "SET k v EX 0",
        "SET k v EX x",
        "SET k v bad",
        "SETNX k v",
        "SETNX new v",
        "INCR n",
        "INCR k",
        "INCR new",
        "DECR n",
        "INCRBY n 9223372036854775807",
        "INCRBY n x",
        "DECRBY n -9223372036854775808",
        "DECRBY n 2",
        "INCRBYFLOAT n 0.25",
        "INCRBYFLOAT k 1",
        "INCRBYFLOAT new 1",
        "DEL k n none k",
        "UNLINK k",
        "EXISTS k k none",
        "TOUCH k n",
    ];
    let server = server("direct");
    let ask = |lines: &str| {
        let input = format!("SET k abc\r\nSET n 5\r\n{lines}\r\nMGET k n new\r\n");
        converse(&server, Protocol::Resp, input.as_bytes(), || usize::MAX / 2).escape_ascii().to_string()
    };
    for command in DIRECT {
        let within = ask(&format!("MULTI\r\n{command}\r\nEXEC"));
        let without = within.replacen("+OK\\r\\n+QUEUED\\r\\n*1\\r\\n", "", 1);
        assert!(within.len() > without.len(), "{command}: {within}");
        assert_eq!(ask(command), without, "{command}");
    }
    drop(server);
}

/// Promise: a walk over the keys lets others go first after a stretch, also where no key passes. Catches: a listing
/// that holds the event loop until it has found something.
#[test]
fn walks_come_in_stretches() {
    const KEYS: usize = 20_000;
    let server = server("walk");
    for i in 0..KEYS {
        server.store.set(format!("key{i}").as_bytes(), b"x").unwrap();
    }
    for (request, expected) in [
        (&b"lru_crawler metadump all\r\n"[..], KEYS),
        (b"lru_crawler mgdump all\r\n", KEYS),
        (b"stats cachedump 1 0\r\n", KEYS),
        (b"hashmere keys key1\r\n", KEYS / 2 + 1111),
        (b"hashmere keys none\r\n", 0),
        (b"hashmere delete none\r\n", 0),
    ] {
        let (mut session, mut replies, mut longest) = (Session::new(&server, Protocol::Text), Vec::new(), 0);
        let (mut turns, mut input) = (0, request);
        loop {
            let start = replies.len();
            let (consumed, next) = session::step(&server, &mut session, input, &mut replies);
            input = &input[consumed..];
            longest = longest.max(replies[start..].iter().filter(|byte| **byte == b'\n').count());
            match next {
                Next::Output => turns += 1,
                _ => break,
            }
        }
        let name = request.escape_ascii();
        // `OK` precedes the dumps of the crawler.
        let expected = expected + usize::from(request.starts_with(b"lru_crawler"));
        let lines = replies.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, expected + 1, "{name}");
        assert!(longest <= 2048 + 1, "{name}: {longest} keys in one turn");
        assert!(turns >= KEYS / 2048, "{name}: {turns} turns");
    }
    drop(server);
}
