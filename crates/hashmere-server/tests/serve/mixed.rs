//! Promise: local processes and clients of several servers work on the same keys as if each operation took place at one
//! moment between request and answer, also while servers are killed: what a dead server was asked for took place whole
//! or not at all. Catches: lost updates between library and socket, two winners of one `cas` or `add`, versions that go
//! back, half requests.

use crate::support::{start_at, Client, Port, Scratch, PATIENCE};
use hashmere::{Options, Store};
use hashmere_testkit::history::{assert_linearizable, Call, Operation, Reply, State};
use hashmere_testkit::limits::{now_ns, SetOnDrop};
use hashmere_testkit::register::{key_bytes, number, perform, value_bytes};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::roles::mix::Choice;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Duration;

const ROUND_NS: u64 = 4_000_000;
const KEYS: u64 = 4;
const KILLS: u64 = 6;

/// The key of this number, without those that are too long for memcached.
fn key_of(number: u64) -> u32 {
    (number / 6 * 7 + number % 6) as u32
}

/// What the protocol answers: the first line, and the value behind it.
struct Answer {
    head: String,
    value: Option<u64>,
}

impl Answer {
    fn is(&self, word: &str) -> bool {
        self.head.split(' ').next() == Some(word)
    }

    /// The version in the flag `c`.
    fn version(&self) -> u64 {
        self.head.split(' ').find_map(|word| word.strip_prefix('c')?.parse().ok()).unwrap_or(0)
    }
}

/// A client that connects again when its server was killed.
struct Remote {
    port: u16,
    client: Option<Client>,
}

/// The server died before it answered.
struct Lost;

impl Remote {
    fn client(&mut self) -> &mut Client {
        let port = self.port;
        self.client.get_or_insert_with(|| loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => return Client::new(stream),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        })
    }

    fn ask(&mut self, key: u32, command: &str, flags: &str, value: Option<u64>) -> Result<Answer, Lost> {
        let name = String::from_utf8(key_bytes(key)).unwrap();
        let mut request = format!("{command} {name}").into_bytes();
        match value {
            None => request.extend_from_slice(format!(" {flags}\r\n").as_bytes()),
            Some(value) => {
                let value = value_bytes(key, value);
                request.extend_from_slice(format!(" {} {flags}\r\n", value.len()).as_bytes());
                request.extend_from_slice(&value);
                request.extend_from_slice(b"\r\n");
            }
        }
        let answer = self.exchange(key, &request);
        if answer.is_err() {
            self.client = None;
        }
        answer
    }

    fn exchange(&mut self, key: u32, request: &[u8]) -> Result<Answer, Lost> {
        let client = self.client();
        client.send(request);
        let (line, open) = client.until(b"\r\n");
        if !open {
            return Err(Lost);
        }
        let head = String::from_utf8(line).unwrap().trim_end().to_string();
        let Some(rest) = head.strip_prefix("VA ") else { return Ok(Answer { head, value: None }) };
        let len: usize = rest.split(' ').next().unwrap().parse().unwrap();
        let Some(value) = client.try_exactly(len + 2) else { return Err(Lost) };
        Ok(Answer { value: Some(number(key, &value[..len])), head })
    }

    /// The value of a key with its version; zero if it is absent.
    fn look(&mut self, key: u32) -> Result<(State, u64), Lost> {
        let answer = self.ask(key, "mg", "v c", None)?;
        Ok((answer.value, answer.version()))
    }

    fn perform(&mut self, key: u32, call: Call) -> Result<(Reply, u64), Lost> {
        let done = |answer: &Answer| match answer.is("HD") {
            true => (Reply::Yes, answer.version()),
            false => (Reply::No, 0),
        };
        Ok(match call {
            Call::Get => (Reply::Found(self.look(key)?.0), 0),
            Call::Set(value) => done(&self.ask(key, "ms", "c", Some(value))?),
            Call::Add(value) => done(&self.ask(key, "ms", "ME c", Some(value))?),
            Call::Replace(value) => done(&self.ask(key, "ms", "MR c", Some(value))?),
            Call::Delete => done(&self.ask(key, "md", "", None)?),
            Call::Take => loop {
                let (seen, version) = self.look(key)?;
                if seen.is_none() || self.ask(key, "md", &format!("C{version}"), None)?.is("HD") {
                    break (Reply::Found(seen), 0);
                }
            },
            Call::Cas { expected: None, new: Some(new) } => self.perform(key, Call::Add(new))?,
            Call::Cas { expected, new } => self.cas(key, expected, new)?,
            Call::Incr { by, initial } => {
                let create = initial.map_or(String::new(), |initial| format!("N0 J{initial}"));
                let answer = self.ask(key, "ma", &format!("v c D{by} {create}"), None)?;
                assert!(answer.value.is_some() || answer.is("NF"), "{}", answer.head);
                (Reply::Found(answer.value), answer.version())
            }
        })
    }

    fn cas(&mut self, key: u32, expected: State, new: State) -> Result<(Reply, u64), Lost> {
        loop {
            let (seen, version) = self.look(key)?;
            match (seen, expected) {
                (None, None) => return Ok((Reply::Yes, 0)),
                (None, Some(_)) => return Ok((Reply::NotFound, 0)),
                _ if seen != expected => return Ok((Reply::No, 0)),
                _ => {}
            }
            let answer = match new {
                Some(new) => self.ask(key, "ms", &format!("c C{version}"), Some(new))?,
                None => self.ask(key, "md", &format!("C{version}"), None)?,
            };
            if answer.is("HD") {
                return Ok((Reply::Yes, answer.version()));
            }
            assert!(answer.is("EX") || answer.is("NF"), "{}", answer.head);
        }
    }
}

/// Works until `stop` is set; returns its operations.
fn work(
    worker: u32,
    mut rng: Rng,
    start: u64,
    stop: &AtomicBool,
    mut act: impl FnMut(u32, Call, &mut Rng) -> Option<(Reply, u64)>,
) -> Vec<Operation> {
    let mut choice = Choice::new(worker);
    let mut operations = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let key = key_of((now_ns() - start) / ROUND_NS * KEYS + rng.below(KEYS));
        let call = choice.next(&mut rng, key);
        let called = now_ns();
        let answer = act(key, call, &mut rng);
        let returned = if answer.is_some() { now_ns() } else { u64::MAX };
        let (reply, version) = answer.unzip();
        if let Some(reply) = reply {
            choice.learn(key, reply);
        }
        operations.push(Operation { key, worker, call, reply, version: version.unwrap_or(0), called, returned });
    }
    operations
}

#[test]
fn local_processes_and_clients_of_servers_that_are_killed() {
    let scratch = Scratch::new("serve");
    let mut rng = Rng::for_test("mixed");
    let ports = [Port::reserve(), Port::reserve()];
    let mut servers = [0, 1].map(|i| start_at(&scratch, &ports[i], &[]));
    let store = Options::new().create(false).open(scratch.path().join("ns/memcached.mere")).unwrap();
    let (stop, all, start) = (AtomicBool::new(false), Mutex::new(Vec::new()), now_ns());
    let (local, remote) = (AtomicU64::new(0), AtomicU64::new(0));
    let (stop, all, local, remote) = (&stop, &all, &local, &remote);
    std::thread::scope(|scope| {
        let _end = SetOnDrop(stop);
        let keep = move |operations: Vec<Operation>| all.lock().unwrap().extend(operations);
        for worker in 0..2 {
            let (store, rng): (Store, Rng) = (store.clone(), Rng::from_seed(rng.word()));
            scope.spawn(move || {
                keep(work(worker, rng, start, stop, |key, call, rng| {
                    local.fetch_add(1, Ordering::Relaxed);
                    // The library is a hundred times as fast; the others are to get their share of each key.
                    std::thread::sleep(Duration::from_micros(rng.below(60)));
                    Some(perform(&store, key, call, rng.word()).unwrap())
                }));
            });
        }
        for worker in 2..6 {
            let rng = Rng::from_seed(rng.word());
            let mut server = Remote { port: ports[worker as usize % 2].number(), client: None };
            scope.spawn(move || {
                keep(work(worker, rng, start, stop, |key, call, _| {
                    remote.fetch_add(1, Ordering::Relaxed);
                    server.perform(key, call).ok()
                }));
            });
        }
        for _ in 0..KILLS {
            std::thread::sleep(Duration::from_millis(100 + rng.below(100)));
            let victim = rng.index(2);
            servers[victim].signal("KILL");
            servers[victim].child.wait().unwrap();
            servers[victim] = start_at(&scratch, &ports[victim], &[]);
        }
        std::thread::sleep(Duration::from_millis(100));
        let deadline = now_ns() + PATIENCE.as_nanos() as u64;
        while [local, remote].iter().any(|done| done.load(Ordering::Relaxed) <= 600) && now_ns() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let operations = std::mem::take(&mut *all.lock().unwrap());
    let of = |workers: std::ops::Range<u32>| operations.iter().filter(|o| workers.contains(&o.worker)).count();
    let lost = operations.iter().filter(|operation| operation.reply.is_none()).count();
    println!("{} local, {} over sockets, {lost} of them unanswered", of(0..2), of(2..6));
    assert!(of(0..2) > 500 && of(2..6) > 500, "too little was done to show anything");
    assert_linearizable(operations);
    drop(servers);
    assert!(store.check().is_clean(), "{:?}", store.check());
}
