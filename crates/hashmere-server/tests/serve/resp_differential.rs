//! The same commands to this server and to Debian's Redis 7.0: the replies are the same, byte by byte, or the
//! difference is one of those that `docs/internals/resp.md` explains.

use crate::resp::{serve, Redis};
use crate::resp_grammar::{encode, request, watched, Request};
use crate::support::{Scratch, PATIENCE};
use hashmere_testkit::memcached::{Port, Server};
use hashmere_testkit::rng::Rng;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Debian's Redis; `None` if there is none here.
fn redis() -> Option<Server> {
    let (scratch, port) = (Scratch::new("redis"), Port::reserve());
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    command.arg(scratch.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(child) = command.spawn() else {
        eprintln!("skipped: there is no redis-server (scripts/setup packages redis-server)");
        return None;
    };
    let server = Server { child, port: port.number(), scratch: Some(scratch) };
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", server.port)).is_err() {
        assert!(start.elapsed() < PATIENCE, "redis-server does not start");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Some(server)
}

fn name(request: &Request) -> String {
    String::from_utf8_lossy(&request[0]).to_ascii_uppercase()
}

/// Milliseconds and seconds that are left, and when a time that was said as a distance is over.
fn is_near(a: &str, b: &str) -> bool {
    let number = |line: &str| line.trim().strip_prefix(':').and_then(|digits| digits.parse::<i64>().ok());
    matches!((number(a), number(b)), (Some(a), Some(b)) if a > 1000 && b > 1000 && a.abs_diff(b) <= 60_000)
}

/// Fractions, and what is beyond integers: Redis computes in 80 bits.
fn is_rounded(a: &str, b: &str) -> bool {
    let number = |text: &str| text.trim().trim_matches('"').parse::<f64>().ok();
    let is_float = |number: f64| a.contains('.') || b.contains('.') || number.abs() > 9e18;
    matches!((number(a), number(b)), (Some(a), Some(b)) if a == b && is_float(a))
}

/// The elements of a reply, each with what is in it.
fn elements(reply: &str) -> Vec<String> {
    let mut elements = Vec::<String>::new();
    for line in reply.lines().skip(1) {
        match elements.last_mut().filter(|_| line.starts_with("  ")) {
            Some(element) => *element += &format!("\n{line}"),
            None => elements.push(line.into()),
        }
    }
    elements
}

/// Whether these replies are the same but for the order of keys and for times that go on.
fn is_same(request: &str, a: &str, b: &str) -> bool {
    let sorted = |reply: &str| {
        let mut lines: Vec<&str> = reply.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    a == b
        || match request {
            "KEYS" => sorted(a) == sorted(b),
            "TTL" | "PTTL" | "EXPIRETIME" | "PEXPIRETIME" => is_near(a, b),
            "INCRBYFLOAT" => is_rounded(a, b),
            // The requests of its elements are not known here; those behind a rounded number may be about that.
            "EXEC" => {
                let (a, b) = (elements(a), elements(b));
                let is_exact = |(a, b): &(&String, &String)| a == b || !is_rounded(a, b);
                let is_same = |(a, b): (&String, &String)| sorted(a) == sorted(b) || is_near(a, b);
                a.len() == b.len() && a.iter().zip(&b).take_while(is_exact).all(is_same)
            }
            _ => false,
        }
}

#[test]
fn the_same_replies_as_redis() {
    let Some(theirs) = redis() else { return };
    let mut rng = Rng::for_test("resp-differential");
    let (mut redis, ours) = (Redis::new(&theirs), serve(&[]));
    let mut hashmere = Redis::new(&ours);
    let rounds = std::env::var("HASHMERE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6000);
    let (mut different, mut history, mut queue) = (Vec::new(), Vec::new(), Vec::<Request>::new());
    let (mut is_queueing, mut is_resp3) = (false, false);
    for round in 0..rounds {
        // Not within a transaction, where it would be queued.
        if round >= rounds / 2 && !is_resp3 && !is_queueing {
            redis.ask("HELLO 3");
            hashmere.ask("HELLO 3");
            is_resp3 = true;
        }
        if queue.is_empty() && rng.index(40) == 0 {
            queue = watched(&mut rng);
            queue.reverse();
        }
        let request = queue.pop().unwrap_or_else(|| request(&mut rng));
        // There it does not see what the transaction wrote.
        if is_queueing && name(&request) == "KEYS" {
            continue;
        }
        redis.send(&request);
        hashmere.send(&request);
        let (a, b) = (redis.reply(), hashmere.reply());
        match name(&request).as_str() {
            "MULTI" if b == "+OK" => is_queueing = true,
            "EXEC" | "DISCARD" => is_queueing = false,
            _ => {}
        }
        let short = |text: &str| text.chars().take(200).collect::<String>();
        let asked = short(&encode(&request).escape_ascii().to_string());
        if !is_same(&name(&request), &a, &b) {
            let before: Vec<String> = history.iter().rev().take(5).rev().cloned().collect();
            // From the first line that differs.
            let same = a.lines().zip(b.lines()).take_while(|(a, b)| a == b).count();
            let rest = |reply: &str| short(&reply.lines().skip(same).collect::<Vec<_>>().join("\n"));
            different.push(format!("{}{asked}\n  redis    {}\n  hashmere {}", before.concat(), rest(&a), rest(&b)));
            for client in [&mut redis, &mut hashmere] {
                client.ask("DISCARD");
                client.ask("FLUSHALL");
            }
            queue.clear();
            is_queueing = false;
        }
        if a != b && ["INCRBYFLOAT", "EXEC"].contains(&name(&request).as_str()) {
            // From the same numbers on.
            for client in [&mut redis, &mut hashmere] {
                client.ask("DISCARD");
                client.ask("FLUSHALL");
            }
            is_queueing = false;
        }
        history.push(format!("    {asked} -> {}\n", short(&b)));
    }
    let count = different.len();
    different.truncate(20);
    assert!(count == 0, "{count} of {rounds} replies differ\n{}", different.join("\n"));
}

/// Inline commands, and errors of the protocol, behind which the connection ends.
#[test]
fn the_same_errors_of_the_protocol_as_redis() {
    let Some(theirs) = redis() else { return };
    let ours = serve(&[]);
    let long = vec![b'x'; 70_000];
    let cases: Vec<Vec<u8>> = vec![
        b"*x\r\n".to_vec(),
        b"*1\r\n:1\r\n".to_vec(),
        b"*1\r\n$x\r\n".to_vec(),
        b"*1\r\n$-5\r\n".to_vec(),
        b"*2\r\n$3\r\nGET\r\n$536870913\r\n".to_vec(),
        b"*0\r\nPING\r\n*1\r\n\r\n".to_vec(),
        b"set k \"a\r\n".to_vec(),
        b"SET k \"a b\\n\"\r\nget k\r\nGET 'k'\r\n*x\r\n".to_vec(),
        b"\r\n  \r\nPING\r\n*x\r\n".to_vec(),
        [&b"*1\r\n$"[..], &long].concat(),
        [&b"*"[..], &long].concat(),
        long.clone(),
    ];
    for case in cases {
        let answer = |server: &Server| {
            let mut client = server.connect();
            client.send(&case);
            let (answer, open) = client.until(b"never");
            (answer.escape_ascii().to_string(), open)
        };
        assert_eq!(answer(&ours), answer(&theirs), "{}", case[..case.len().min(60)].escape_ascii());
    }
}
