//! Promise: over links that break anywhere a replica gets the same as over one that does not: transactions whole, and
//! nothing twice that would show; and what a server says that is wrong is an error and not applied.
//! Catches: half a transaction that was on its way, a place ahead of what was applied, a link that is dead and not
//! given up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests: what is not there ends them")]

use hashmere::{Options, Store, WriteBatch};
use hashmere_feed::{Event, Feed, FeedOptions, FeedStart};
use hashmere_os::random::SplitMix64;
use hashmere_replica::{ReplicaError, Replicator, Served, ORIGIN};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

/// A folder that goes with the test: two stores, and a socket.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let root = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
        let path = root.join(format!("hashmere-served-{name}-{}", std::process::id()));
        // What a process of the same number left that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn source(&self) -> Store {
        Options::new().feed(1 << 20).feed_values(true).open(self.0.join("from.mere")).unwrap()
    }
    fn target(&self) -> Store {
        Options::new().origin(ORIGIN).open(self.0.join("to.mere")).unwrap()
    }
    fn served(&self) -> Served {
        Served::parse(&format!("unix:{}", self.0.join("sock").display())).unwrap()
    }
    fn listen(&self) -> UnixListener {
        UnixListener::bind(self.0.join("sock")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The request of the next client.
fn accept(listener: &UnixListener) -> (UnixStream, String) {
    let (stream, _) = listener.accept().unwrap();
    let mut line = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
    (stream, line)
}

/// A server that sends at most `limit()` bytes of each stream, and breaks it off there; until a connection is not for
/// a feed.
fn breaking(listener: &UnixListener, from: &Store, mut limit: impl FnMut() -> usize) {
    loop {
        let (mut stream, line) = accept(listener);
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["feed", start, "values"] = words[..] else { return };
        let start = match start {
            "start" => FeedStart::Start,
            token => FeedStart::At(token.parse().unwrap()),
        };
        let mut feed = Feed::open(from, start, FeedOptions::new().values(true)).unwrap();
        let mut out = b"FEED 1\r\n".to_vec();
        while let Some(event) = feed.next_within(Duration::ZERO).unwrap() {
            event.write_json(&mut out);
            out.extend_from_slice(b"\r\n");
        }
        let token = feed.token();
        out.extend_from_slice(format!("BEAT {token} {} 1 0\r\n", token.position()).as_bytes());
        // A client that has gone away already is no news.
        let _ = stream.write_all(&out[..limit().min(out.len())]);
    }
}

fn all(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<_> = store.iter().map(|pair| pair.unwrap()).map(|pair| (pair.key, pair.value)).collect();
    all.sort();
    all
}

/// Two keys that only transactions write are never seen to differ, wherever links break.
#[test]
fn links_that_break_anywhere() {
    let folder = Folder::new("breaks");
    let (from, to, listener) = (folder.source(), folder.target(), folder.listen());
    let seed = std::env::var("HASHMERE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("HASHMERE_SEED={seed}");
    to.set("stale", b"goes").unwrap();
    let served = folder.served();
    let mut rng = SplitMix64(seed);
    std::thread::scope(|scope| {
        let mut cuts = (SplitMix64(seed ^ 1), 0);
        // Every third stream is whole.
        let limit = move || {
            cuts.1 = (cuts.1 + 1) % 3;
            if cuts.1 == 0 {
                usize::MAX
            } else {
                (cuts.0.next() % 15_000) as usize
            }
        };
        let (listener, from) = (&listener, &from);
        scope.spawn(move || breaking(listener, from, limit));
        let mut replicator = Replicator::open_served(&served, &to).unwrap();
        for round in 0..12u32 {
            for n in 0..20u32 {
                let mut batch = WriteBatch::new();
                let value = (round * 100 + n).to_string();
                batch.set("left", value.as_bytes()).set("filler", [b'x'; 300]).set("right", value.as_bytes());
                from.write_batch(&batch).unwrap();
                from.set(&format!("k{}", n % 7), value.as_bytes()).unwrap();
            }
            let deadline = Instant::now() + LIMIT;
            while all(from) != all(&to) {
                replicator.step(Duration::from_millis(5)).unwrap();
                assert_eq!(to.get("left").unwrap(), to.get("right").unwrap(), "round {round}");
                assert!(Instant::now() < deadline, "round {round}: {:?}", replicator.trouble());
                if rng.next() % 20 == 0 {
                    drop(replicator);
                    replicator = Replicator::open_served(&served, &to).unwrap();
                }
            }
        }
        UnixStream::connect(folder.0.join("sock")).unwrap().write_all(b"quit\r\n").unwrap();
    });
}

/// What the server says to the first request, and how the client takes it: an error, or it tries again.
fn told(name: &str, says: &[u8]) -> Result<Option<String>, ReplicaError> {
    let folder = Folder::new(name);
    let (to, listener) = (folder.target(), folder.listen());
    let mut replicator = Replicator::open_served(&folder.served(), &to).unwrap();
    let says = says.to_vec();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = accept(&listener);
        stream.write_all(&says).unwrap();
        // Its other end closes it.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let deadline = Instant::now() + LIMIT;
    let result = loop {
        match replicator.step(Duration::from_millis(5)) {
            Err(error) => break Err(error),
            Ok(_) => {
                if let Some(trouble) = replicator.trouble() {
                    break Ok(Some(trouble.to_owned()));
                }
            }
        }
        assert!(Instant::now() < deadline, "{}", says_nothing(&replicator));
    };
    assert!(to.is_empty() && replicator.status().changes == 0);
    drop(replicator);
    server.join().unwrap();
    result
}

fn says_nothing(replicator: &Replicator) -> String {
    format!("neither an error nor trouble: {:?}", replicator.status())
}

#[test]
fn what_a_server_says_that_is_wrong() {
    for (n, (says, text)) in [
        (&b"ERROR\r\n"[..], "no server with a feed"),
        (b"FEED 2\r\n", "this version"),
        (b"CLIENT_ERROR feed not allowed\r\n", "--feed"),
        (b"CLIENT_ERROR unauthenticated\r\n", "--account"),
        (b"FEED 1\r\nnonsense\r\n", "no line of a feed"),
        (b"FEED 1\r\n{\"op\":\"u\"}\r\n", "not an event"),
        (b"FEED 1\r\nBEAT hm1-00 1 1 1\r\n", "no line of a feed"),
        (b"\xff\x00\r\n", "\\xff\\x00"),
    ]
    .into_iter()
    .enumerate()
    {
        let error = told(&format!("wrong-{n}"), says).expect_err(text);
        assert!(error.code() == 88 && error.to_string().contains(text), "{error}");
    }
    for (n, (says, text)) in [
        (&b"ERROR Too many open connections\r\n"[..], "Too many"),
        (b"SERVER_ERROR too many feeds\r\n", "too many feeds"),
        (b"FEED 1\r\nSERVER_ERROR the store keeps no changes\r\n", "keeps no changes"),
    ]
    .into_iter()
    .enumerate()
    {
        let trouble = told(&format!("later-{n}"), says).unwrap().unwrap();
        assert!(trouble.contains(text), "{trouble}");
    }
}

/// A link on which nothing comes is given up, before the stream and in it.
#[test]
fn a_server_that_is_silent() {
    std::thread::scope(|scope| {
        for (name, says) in [("silent-1", &b""[..]), ("silent-2", b"FEED 1\r\n{\"op\":")] {
            scope.spawn(move || {
                let trouble = told(name, says).unwrap().unwrap();
                assert!(trouble.contains("silent"), "{trouble}");
            });
        }
    });
}

/// A lag by the server's clock, which is hours off.
#[test]
fn clocks_that_differ_make_no_lag() {
    let folder = Folder::new("clocks");
    let (from, to, listener) = (folder.source(), folder.target(), folder.listen());
    let mut feed = Feed::open(&from, FeedStart::Start, FeedOptions::new().values(true)).unwrap();
    from.set("a", b"1").unwrap();
    let mut first = b"FEED 1\r\n".to_vec();
    let write = |feed: &mut Feed, hours: u64, out: &mut Vec<u8>| {
        while let Some(mut event) = feed.next_within(Duration::ZERO).unwrap() {
            if let Event::Read(change) | Event::Change(change) = &mut event {
                change.ts_ms += hours * 3_600_000;
            }
            event.write_json(out);
            out.extend_from_slice(b"\r\n");
        }
    };
    write(&mut feed, 5, &mut first);
    let token = feed.token();
    let now = hashmere_os::clock::now_ms();
    // There is one change more than what comes: so there is a lag.
    first.extend_from_slice(format!("BEAT {token} {} {} 0\r\n", token.position() + 2, now + 5 * 3_600_000).as_bytes());
    from.set("b", b"2").unwrap();
    let mut second = Vec::new();
    write(&mut feed, 5, &mut second);
    let mut replicator = Replicator::open_served(&folder.served(), &to).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = accept(&listener);
        stream.write_all(&first).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        stream.write_all(&second).unwrap();
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let deadline = Instant::now() + LIMIT;
    while to.get("b").unwrap().is_none() {
        replicator.step(Duration::from_millis(5)).unwrap();
        assert!(Instant::now() < deadline);
    }
    let status = replicator.status();
    assert_eq!(status.lag(), 1);
    assert!(status.lag_ms < LIMIT.as_millis() as u64, "{status:?}");
    drop(replicator);
    server.join().unwrap();
}
