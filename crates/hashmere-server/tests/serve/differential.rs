//! The same requests to this server and to memcached, Debian's and 1.6.45: every byte of every answer is the same, or
//! the difference is one of those that `docs/internals/protocol.md` explains. This server does as 1.6.45 does; where
//! Debian's 1.6.18 answers with an error, or takes what is an error today, the difference is explained by that.

use crate::grammar;
use crate::support::{start, Client, Server};
use hashmere_testkit::rng::Rng;
use std::collections::HashMap;

/// Behind each request: ends whatever it left open, then asks for a sign.
const SENTINEL: &[u8] = b"\r\n\r\n\r\nmn\r\n";

struct Side {
    server: Server,
    client: Client,
    versions: HashMap<String, u64>,
}

impl Side {
    fn new(server: Server) -> Side {
        let client = server.connect();
        Side { server, client, versions: HashMap::new() }
    }

    /// Sends a request and returns the answer with versions replaced by marks.
    fn ask(&mut self, request: &grammar::Request) -> String {
        let mut text = request.text.clone();
        if let Some(key) = &request.cas_of {
            let version = self.version_of(key);
            text = text.replace("{cas}", &version.to_string());
        }
        self.client.send(text.as_bytes());
        self.client.send(SENTINEL);
        let (answer, open) = self.client.until(b"MN\r\n");
        let mut answer = normal(&String::from_utf8_lossy(&answer));
        if !open {
            answer.push_str("<closed>");
            self.client = self.server.connect();
        }
        answer
    }

    fn version_of(&mut self, key: &str) -> u64 {
        if key.len() > 250 {
            return 1;
        }
        let answer = self.client.ask(&format!("mg {key} c u\r\n"));
        let version = answer.trim().strip_prefix("HD c").and_then(|text| text.split(' ').next()?.parse().ok());
        if let Some(version) = version {
            self.versions.insert(key.into(), version);
        }
        // A key that is gone is asked for by the version that it had.
        self.versions.get(key).copied().unwrap_or(1)
    }
}

/// Whether two answers are the same. Times may differ by the seconds that pass between the two servers.
fn same(a: &str, b: &str) -> bool {
    let time = |word: &str| {
        let digits = ["t", "exp=", "la="].iter().find_map(|prefix| word.strip_prefix(prefix));
        digits.and_then(|digits| digits.parse::<u64>().ok())
    };
    let near = |(a, b): (&str, &str)| a == b || matches!((time(a), time(b)), (Some(a), Some(b)) if a.abs_diff(b) <= 30);
    let words = |text| str::split(text, [' ', '\r', '\n']);
    words(a).count() == words(b).count() && words(a).zip(words(b)).all(near)
}

/// Versions differ, and what an item takes.
fn normal(answer: &str) -> String {
    let lines: Vec<String> = answer
        .split("\r\n")
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let is_value = words[0] == "VALUE" && words.len() == 5;
            let is_meta = ["HD", "VA", "EN", "NS", "EX", "NF"].contains(&words[0]);
            let words: Vec<String> = words
                .iter()
                .enumerate()
                .map(|(i, word)| match word.as_bytes() {
                    _ if is_value && i == 4 => "#".into(),
                    _ if words[0] == "ME" && i > 1 => match word.split_once('=') {
                        Some((name @ ("cas" | "cls" | "size"), _)) => format!("{name}=#"),
                        _ => (*word).to_string(),
                    },
                    [b'c', digits @ ..] if is_meta && digits.iter().all(u8::is_ascii_digit) && i > 0 => "c#".into(),
                    _ => (*word).to_string(),
                })
                .collect();
            words.join(" ")
        })
        .collect();
    lines.join("\r\n")
}

/// The differences that `docs/internals/protocol.md` explains, to any memcached.
fn is_explained(request: &str, theirs: &str, ours: &str) -> bool {
    let words: Vec<&str> = request.lines().next().unwrap_or("").split(' ').filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.iter().skip(2).any(|other| *other == word);
    match words.first().copied() {
        // A connection that is closed while it still sends may lose what it was answered before.
        _ if theirs.ends_with("<closed>") && ours.ends_with("<closed>") => true,
        // A key in base 64 is shown as it was sent, not as it was stored.
        Some("mg") if has("b") && has("k") && ours.contains(" kaz") && !theirs.contains(" kaz") => true,
        // Whether counting is in place, and the item so fetched as before, depends on whether memcached still sends it
        // to a client.
        Some("mg") if has("h") && theirs.replacen(" h0", " h1", 1) == ours => true,
        // Counting a stale or won value makes it a fresh one.
        Some("mg") if [" X", " Z"].iter().any(|mark| theirs.contains(mark) && !ours.contains(mark)) => true,
        // To a key that is too long 1.6.45 ends its answer twice, which the next reply would be taken for; if that is
        // the first key of a line that ends in `noreply`, the second end alone is sent.
        Some("get" | "gets" | "gat" | "gats") if request.contains(&"k".repeat(251)) => {
            let error = "CLIENT_ERROR bad command line format";
            theirs.replacen("\r\n\r\n", "\r\n", 1) == ours
                || words.last() == Some(&"noreply") && format!("{error}{theirs}") == ours
        }
        // Commands for slabs and lists are answered as if there were some.
        Some("slabs" | "lru" | "lru_crawler") => true,
        Some("stats") => true,
        _ => false,
    }
}

/// Where a number becomes longer, memcached gives the new expiry of `ma` to the item that it replaces, so it is lost.
fn may_lose_its_time(request: &str) -> bool {
    request.starts_with("ma ") && request.contains(" T")
}

/// The differences to 1.6.18 alone.
fn is_of_an_older_one(request: &str, theirs: &str, ours: &str) -> bool {
    let words: Vec<&str> = request.lines().next().unwrap_or("").split(' ').filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.iter().skip(2).any(|other| *other == word);
    let is_error = |answer: &str| answer.contains("ERROR");
    match words.first().copied() {
        // Which lines are wrong, in which words they are refused, and whether their data are read as requests.
        _ if is_error(theirs.split("\r\nERROR\r\nERROR").next().unwrap_or("")) || is_error(ours) => true,
        // The seconds left have the wrong sign.
        Some("me") => true,
        // Appending creates with N.
        Some("ms") if has("N1000") && (has("MA") || has("MP")) && theirs.starts_with("NS") => true,
        // The length is returned.
        Some("ms") if has("s") => true,
        // A client that has this version gets no value.
        Some("mg") if words.iter().any(|word| word.starts_with('C')) && ours.starts_with("HD") => true,
        // What counting creates is quiet too.
        Some("ma") if has("q") && has("N1000") => true,
        // A space in front makes it no command.
        _ if request.starts_with(' ') => true,
        _ => false,
    }
}

fn short(text: &str) -> String {
    let escaped = text.escape_debug().to_string();
    match escaped.len() > 600 {
        true => format!("{}...{}", &escaped[..300], &escaped[escaped.len() - 200..]),
        false => escaped,
    }
}

/// Without the threads that crawl the items: what they look at cannot be counted in place.
const QUIET: &[&str] = &["-o", "no_lru_maintainer,no_lru_crawler"];

#[test]
fn the_same_answers_as_memcached_1_6_18() {
    let Some(theirs) = Server::memcached(QUIET) else { return };
    compare(theirs, |request, theirs, ours| {
        is_explained(request, theirs, ours) || is_of_an_older_one(request, theirs, ours)
    });
}

#[test]
fn the_same_answers_as_memcached_1_6_45() {
    let Some(theirs) = Server::memcached_today(QUIET) else { return };
    compare(theirs, is_explained);
}

fn compare(theirs: Server, is_explained: impl Fn(&str, &str, &str) -> bool) {
    let mut rng = Rng::for_test("differential");
    let mut theirs = Side::new(theirs);
    let mut ours = Side::new(start(&["-o", "access_times"]));
    let rounds = std::env::var("HASHMERE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4000);
    let mut different = Vec::new();
    let mut history = Vec::new();
    for round in 0..rounds {
        let request = grammar::request(&mut rng);
        let (a, b) = (theirs.ask(&request), ours.ask(&request));
        history.push(format!("{} -> {}", short(&request.text), short(&b)));
        let is_same = same(&a, &b);
        if is_same && may_lose_its_time(&request.text) || !is_same && is_explained(&request.text, &a, &b) {
            theirs.client.ask("flush_all\r\n");
            ours.client.ask("flush_all\r\n");
        } else if !is_same {
            let before: Vec<String> =
                history.iter().rev().skip(1).take(6).rev().map(|line| format!("    {line}\n")).collect();
            different.push(format!(
                "{}{round}: {}\n  memcached {}\n  hashmere  {}",
                before.concat(),
                short(&request.text),
                short(&a),
                short(&b)
            ));
            // Go on from a common state.
            for side in [&mut theirs, &mut ours] {
                side.client = side.server.connect();
                side.client.ask("flush_all\r\n");
            }
        }
    }
    let count = different.len();
    different.truncate(40);
    assert!(count == 0, "{count} of {rounds} answers differ\n{}", different.join("\n"));
}
