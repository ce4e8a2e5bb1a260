//! A client of Redis for the tests, and what it says to a server alone.

use crate::resp_grammar::{encode, Request};
use crate::support::{start, start_on, Client, Scratch, Server};
use hashmere::{Options, Store};

/// A server for clients of Redis.
pub fn serve(options: &[&str]) -> Server {
    start(&[&["--resp"], options].concat())
}

/// A connection that reads replies.
pub struct Redis {
    client: Client,
}

impl Redis {
    /// To a server.
    pub fn new(server: &Server) -> Redis {
        Redis { client: server.connect() }
    }

    /// Sends a request without waiting.
    pub fn send(&mut self, request: &Request) {
        self.client.send(&encode(request));
    }

    /// A request as words, and its reply as text: one line for each element.
    pub fn ask(&mut self, words: &str) -> String {
        self.send(&words.split(' ').map(|word| word.as_bytes().to_vec()).collect());
        self.reply()
    }

    /// The next reply. `<closed>` if there is none.
    pub fn reply(&mut self) -> String {
        let mut lines = Vec::new();
        self.element(&mut lines, 0);
        lines.join("\n")
    }

    fn element(&mut self, lines: &mut Vec<String>, depth: usize) {
        let (line, open) = self.client.until(b"\r\n");
        let text = shown(line.strip_suffix(b"\r\n").unwrap_or(&line));
        if !open {
            lines.push("<closed>".into());
            return;
        }
        let indent = " ".repeat(depth);
        let count = || text[1..].parse::<i64>().unwrap_or_else(|_| panic!("{text}"));
        match line[0] {
            b'$' | b'=' if count() >= 0 => {
                let bytes = self.client.exactly(count() as usize + 2);
                let bytes = bytes.strip_suffix(b"\r\n").expect("a bulk string ends");
                lines.push(format!("{indent}\"{}\"", shown(bytes)));
            }
            kind @ (b'*' | b'~' | b'>' | b'%') if count() >= 0 => {
                lines.push(format!("{indent}{text}"));
                let elements = count() * if kind == b'%' { 2 } else { 1 };
                (0..elements).for_each(|_| self.element(lines, depth + 1));
            }
            _ => lines.push(format!("{indent}{text}")),
        }
    }
}

/// Bytes as text, quotes as they are.
fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\'", "'").replace("\\\"", "\"")
}

/// The store of a server.
pub fn store_of(server: &Server) -> Store {
    Options::new().create(false).open(server.folder().join("memcached.mere")).unwrap()
}

#[test]
fn a_connection_and_its_state() {
    let server = serve(&[]);
    let mut client = Redis::new(&server);
    for (request, reply) in [
        ("PING", "+PONG"),
        ("CLIENT GETNAME", "$-1"),
        ("CLIENT SETNAME ada", "+OK"),
        ("CLIENT GETNAME", "\"ada\""),
        ("CLIENT SETINFO LIB-NAME test", "+OK"),
        ("SELECT 0", "+OK"),
        ("SELECT 1", "-ERR DB index is out of range"),
        ("COMMAND GETKEYS MSET a 1 b 2", "*2\n \"a\"\n \"b\""),
        ("COMMAND GETKEYS PING", "-ERR The command has no key arguments"),
        ("CONFIG GET appendonly save", "*4\n \"appendonly\"\n \"no\"\n \"save\"\n \"\""),
        (
            "CONFIG SET maxmemory 1",
            "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - can't set \
                                    immutable config; it is an option of the server",
        ),
        ("CONFIG SET nosuch 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"),
        ("SLOWLOG RESET", "+OK"),
        ("LATENCY LATEST", "*0"),
        ("OBJECT FREQ k", "$-1"),
        ("HELLO 9", "-NOPROTO unsupported protocol version"),
        ("LPUSH k v", "-ERR unknown command 'LPUSH', with args beginning with: 'k' 'v' "),
        ("SET k 12", "+OK"),
        ("OBJECT ENCODING k", "\"int\""),
        ("OBJECT REFCOUNT k", ":1"),
        ("MEMORY USAGE k", ":16"),
        ("DBSIZE", ":1"),
        ("RANDOMKEY", "\"k\""),
        ("FLUSHALL ASYNC", "+OK"),
        ("DBSIZE", ":0"),
        ("RANDOMKEY", "$-1"),
        ("RESET", "+RESET"),
        ("CLIENT GETNAME", "$-1"),
    ] {
        assert_eq!(client.ask(request), reply, "{request}");
    }
    assert!(client.ask("HELLO 3 SETNAME bob").starts_with("%7\n \"server\"\n \"redis\""));
    assert_eq!((client.ask("GET none"), client.ask("CLIENT GETNAME")), ("_".into(), "\"bob\"".into()));
    assert!(client.ask("CLIENT LIST").contains("name=bob") && client.ask("CLIENT INFO").contains(" resp=3 "));
    assert!(client.ask("INFO").contains("redis_version:7.0.15"));
    // On a busy machine any command may be slow, and any key may be idle.
    assert_eq!(client.ask("SET k 12"), "+OK");
    assert!(client.ask("OBJECT IDLETIME k").starts_with(':'));
    assert!(client.ask("SLOWLOG LEN").starts_with(':') && client.ask("SLOWLOG GET").starts_with('*'));
    // Not answered: the first two, and the one behind SKIP.
    for words in ["CLIENT REPLY OFF", "SET k 1", "CLIENT REPLY ON", "CLIENT REPLY SKIP", "PING"] {
        client.send(&words.split(' ').map(|word| word.as_bytes().to_vec()).collect());
    }
    assert_eq!((client.ask("GET k"), client.reply()), ("+OK".into(), "\"1\"".into()));
    assert_eq!((client.ask("QUIT"), client.reply()), ("+OK".into(), "<closed>".into()));
}

#[test]
fn a_scan_returns_every_key_once() {
    let server = serve(&[]);
    let mut client = Redis::new(&server);
    let store = store_of(&server);
    for i in 0..5000 {
        store.set(&format!("key{i}"), b"x").unwrap();
    }
    let (mut cursor, mut seen, mut calls) = ("0".to_string(), Vec::new(), 0);
    loop {
        let reply = client.ask(&format!("SCAN {cursor} MATCH key* COUNT 100 TYPE string"));
        let mut lines = reply.lines().map(str::trim);
        cursor = lines.nth(1).unwrap().trim_matches('"').into();
        seen.extend(lines.skip(1).map(str::to_string));
        calls += 1;
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    let count = seen.len();
    seen.dedup();
    assert_eq!((count, seen.len()), (5000, 5000));
    assert!(calls >= 50, "{calls}");
    assert_eq!(client.ask("KEYS key*").lines().count(), 5001);
    assert_eq!(client.ask("SCAN 0 TYPE list").lines().nth(2), Some(" *0"));
}

#[test]
fn accounts_are_asked_for() {
    let scratch = Scratch::new("serve");
    let accounts = scratch.path().join("accounts");
    std::fs::write(&accounts, "ada:secret\ndefault:word\n").unwrap();
    let server = start_on(&scratch, &["--resp", "-Y", accounts.to_str().unwrap()]);
    let mut client = Redis::new(&server);
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    for (request, reply) in [
        ("GET k", "-NOAUTH Authentication required."),
        ("NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: "),
        ("AUTH wrong", wrong),
        ("AUTH ada word", wrong),
        ("AUTH ada secret", "+OK"),
        ("GET k", "$-1"),
        ("RESET", "+RESET"),
        ("GET k", "-NOAUTH Authentication required."),
        ("AUTH word", "+OK"),
        ("GET k", "$-1"),
    ] {
        assert_eq!(client.ask(request), reply, "{request}");
    }
    let mut client = Redis::new(&server);
    assert!(client.ask("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert!(client.ask("HELLO 3 AUTH ada secret").starts_with("%7"));
    let mut client = Redis::new(&server);
    client.send(&vec![b"SET".to_vec(), b"k".to_vec(), vec![b'x'; 20_000]]);
    assert_eq!(client.reply(), "-ERR Protocol error: unauthenticated bulk length");
    assert_eq!(client.reply(), "<closed>");
}

#[test]
fn what_is_too_large_is_skipped() {
    let server = serve(&["-I", "64k"]);
    let mut client = Redis::new(&server);
    let long = vec![b'x'; 300_000];
    let limit = "-ERR an argument is longer than the item limit of 65536 bytes (-I)";
    client.send(&vec![b"SET".to_vec(), b"k".to_vec(), long.clone()]);
    client.send(&vec![b"SET".to_vec(), long.clone(), b"v".to_vec()]);
    client.send(&vec![b"MULTI".to_vec()]);
    client.send(&vec![b"SET".to_vec(), b"k".to_vec(), long]);
    client.send(&vec![b"EXEC".to_vec()]);
    let replies: Vec<String> = (0..5).map(|_| client.reply()).collect();
    assert_eq!(replies, [limit, limit, "+OK", limit, "-EXECABORT Transaction discarded because of previous errors."]);
    let most = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    client.send(&vec![b"SET".to_vec(), b"k".to_vec(), vec![b'x'; 40_000]]);
    assert_eq!(client.reply(), "+OK");
    client.send(&vec![b"APPEND".to_vec(), b"k".to_vec(), vec![b'x'; 40_000]]);
    assert_eq!((client.reply(), client.ask("STRLEN k")), (most.into(), ":40000".into()));
    client.send(&vec![b"SET".to_vec(), b"k".to_vec(), vec![b'x'; 65_530]]);
    assert_eq!((client.reply(), client.ask("SETRANGE k 70000 x")), (most.into(), most.into()));
    // A long value is sent from where it is stored.
    client.send(&vec![b"GET".to_vec(), b"k".to_vec()]);
    client.send(&vec![b"MGET".to_vec(), b"k".to_vec(), b"none".to_vec(), b"k".to_vec()]);
    let value = format!("\"{}\"", "x".repeat(40_000));
    assert_eq!(client.reply(), value);
    assert_eq!(client.reply(), format!("*3\n {value}\n $-1\n {value}"));
}

/// Counters of Redis, memcached and the store are the same text.
#[test]
fn counters_are_the_same_for_all() {
    let server = serve(&[]);
    let mut client = Redis::new(&server);
    let store = store_of(&server);
    assert_eq!(client.ask("INCRBY n 41"), ":41");
    assert_eq!(store.incr("n", 1, hashmere::Counter::EXISTING).unwrap(), Some(42));
    assert_eq!((client.ask("INCR n"), store.get("n").unwrap().as_deref()), (":43".into(), Some(&b"43"[..])));
    // As memcached's `decr` leaves a number that became shorter.
    store.set("n", b"9 ").unwrap();
    assert_eq!((client.ask("INCR n"), client.ask("GET n")), (":10".into(), "\"10\"".into()));
    assert_eq!(client.ask("DECRBY n 20"), ":-10");
    assert!(store.incr("n", 1, hashmere::Counter::EXISTING).is_err());
    store.set("n", b"9223372036854775808").unwrap();
    assert_eq!(client.ask("INCR n"), "-ERR value is not an integer or out of range");
}
