//! The loop over lines, and authentication.

use super::dump::Dump;
use super::parse::{self, Refusal, Request, Retrieval};
use super::step::Step;
use super::{admin, get, reply, write};
use crate::feed_stream::FeedStream;
use crate::outbox::Outbox;
use crate::protocol::tokens::{chomp, Tokens};
use crate::protocol::{meta, Gate, Next, BAD_FORMAT, LINE_MAX, OUTPUT_MAX};
use crate::turn::Turn;
use crate::watch::Watcher;
use memchr::memchr;
use std::sync::Arc;

/// Bytes of the shortest line that is parsed, its ending included; before authentication.
const SHORTEST: usize = 4;
const SHORTEST_LOCKED: usize = 7;
/// Longest line that is not a retrieval.
const SHORT_LINE_MAX: usize = 2048;
/// Longest name and password.
const TOKEN_MAX: usize = 16 << 10;
const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated";

/// What the text protocol keeps of a connection between two inputs.
#[derive(Debug, Default)]
pub struct Text {
    /// A retrieval that was interrupted; its keys are the next input.
    retrieval: Option<Retrieval>,
    /// A scan of the keys that was interrupted.
    dump: Option<Box<Dump>>,
    /// The connection sends no more requests, and receives the lines of `watch`.
    watcher: Option<Arc<Watcher>>,
    /// The same, for the lines of `feed`.
    stream: Option<Box<FeedStream>>,
}

impl Text {
    /// Whether the connection receives the lines of `watch` or of `feed`.
    pub fn is_watching(&self) -> bool {
        self.watcher.is_some() || self.is_feeding()
    }

    /// Whether the connection receives the lines of `feed`.
    pub fn is_feeding(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether a scan of the keys is in progress: it continues without input.
    pub fn is_dumping(&self) -> bool {
        self.dump.is_some()
    }

    /// Whether no retrieval and no scan is in progress.
    pub fn is_idle(&self) -> bool {
        self.retrieval.is_none() && self.dump.is_none()
    }

    /// What the client of `watch` or of `feed` said: a watcher's is ignored.
    pub fn hear(&mut self, input: &[u8]) {
        if let Some(stream) = &mut self.stream {
            stream.hear(input);
        }
    }

    /// Moves pending lines of `watch` or of `feed` into the outbox; `false` if there are none.
    pub fn take_lines(&mut self, out: &mut Outbox) -> bool {
        if let Some(stream) = &mut self.stream {
            return stream.take(out);
        }
        self.watcher.as_ref().is_some_and(|watcher| watcher.take(out))
    }

    /// Performs the lines of this input. Returns how many bytes were consumed, and what is needed to continue.
    pub fn feed(&mut self, gate: &mut Gate, turn: &mut Turn<'_>, input: &[u8]) -> (usize, Next) {
        let mut at = 0;
        loop {
            if turn.out.len() >= OUTPUT_MAX {
                return (at, Next::Output);
            }
            if let Some(dump) = &mut self.dump {
                if !dump.walk(turn) {
                    return (at, Next::Output);
                }
                self.dump = None;
            }
            let rest = &input[at..];
            let Some(end) = memchr(b'\n', rest) else { return (at, self.unfinished(gate, rest)) };
            let line = chomp(&rest[..=end]);
            if let Some(retrieval) = self.retrieval {
                let left = self.retrieve(turn, retrieval, line);
                if left > 0 {
                    return (at + line.len() - left, Next::Output);
                }
                at += end + 1;
                continue;
            }
            match perform(gate, turn, &rest[..=end], &rest[end + 1..]) {
                Step::Done => at += end + 1,
                Step::DoneWith(block) => at += end + 1 + block,
                Step::Wants(block) => return (at, Next::Input(end + 1 + block)),
                Step::Close => return (at + end + 1, Next::Close),
                Step::Watch(kinds) => {
                    at += end + 1;
                    self.watcher = turn.server.watchers.enter(kinds, turn.worker);
                    if self.is_watching() {
                        turn.out.line("OK");
                        return (input.len(), Next::Input(0));
                    }
                    turn.out.line("WATCHER_TOO_MANY log watcher limit reached");
                }
                Step::Feed(stream) => {
                    self.stream = Some(stream);
                    return (input.len(), Next::Input(0));
                }
                Step::Dump(dump) => {
                    self.dump = Some(Box::new(dump));
                    at += end + 1;
                }
                Step::Retrieve(retrieval, keys) => {
                    let left = self.retrieve(turn, retrieval, &line[keys..]);
                    if left > 0 {
                        return (at + line.len() - left, Next::Output);
                    }
                    at += end + 1;
                }
                Step::Skip(block) => {
                    at += end + 1;
                    gate.skip = block;
                    at += gate.skip_from(&input[at..]);
                    if gate.skip > 0 {
                        return (at, Next::Input(0));
                    }
                }
            }
        }
    }

    /// Goes on with a retrieval; returns how many bytes of keys are left, after which there has to be room for more
    /// output.
    #[inline]
    fn retrieve(&mut self, turn: &mut Turn<'_>, retrieval: Retrieval, keys: &[u8]) -> usize {
        let left = get::retrieve(turn, retrieval, keys);
        if Tokens::new(left).is_empty() {
            self.retrieval = None;
            turn.out.text("END\r\n");
            return 0;
        }
        self.retrieval = Some(retrieval);
        left.len()
    }

    /// A line without an end: only retrievals may be long.
    fn unfinished(&self, gate: &Gate, rest: &[u8]) -> Next {
        if rest.len() <= SHORT_LINE_MAX || self.retrieval.is_some() {
            return Next::Input(0);
        }
        let is_retrieval = [&b"get "[..], b"gets ", b"gat ", b"gats ", b"lease-get ", b"metaget "]
            .iter()
            .any(|name| rest.starts_with(name));
        if gate.locked || !is_retrieval || rest.len() > LINE_MAX {
            return Next::Close;
        }
        Next::Input(0)
    }
}

/// Performs a line, given with its ending and what came behind it.
fn perform(gate: &mut Gate, turn: &mut Turn<'_>, whole: &[u8], block: &[u8]) -> Step {
    let line = chomp(whole);
    if gate.locked {
        // Something that short from a stranger is not worth an answer.
        return if whole.len() < SHORTEST_LOCKED { Step::Close } else { unlock(gate, turn, line, block) };
    }
    if whole.len() < SHORTEST {
        return reply::done(turn, BAD_FORMAT);
    }
    if let [b'm', letter, b' ', ..] | [b'm', letter] = line {
        if let Some(step) = meta::run(turn, *letter, &line[2..], block) {
            return step;
        }
    }
    match parse::parse(line) {
        Ok(Request::Retrieve(request)) => {
            let keys = request.keys;
            // The keys are the end of the line.
            Step::Retrieve(Retrieval::from(request), line.len() - keys.len())
        }
        Ok(Request::Other { name, tokens }) => admin::run(turn, name, tokens, line),
        Ok(request) => write::run(turn, request, block),
        Err(Refusal { reply, value }) => {
            if let Some(reply) = reply {
                turn.out.line(reply);
            }
            value.map_or(Step::Done, |len| Step::Skip(len + 2))
        }
    }
}

/// The only command before authentication: a `set` whose value is name and password.
fn unlock(gate: &mut Gate, turn: &mut Turn<'_>, line: &[u8], block: &[u8]) -> Step {
    if parse::is_http(line) {
        return Step::Close;
    }
    let tokens: Vec<&[u8]> = Tokens::new(line).take(5).collect();
    let [b"set", _, _, _, len] = tokens[..] else { return reply::done(turn, UNAUTHENTICATED) };
    let Some(len) = parse::declared_len(len) else { return reply::done(turn, UNAUTHENTICATED) };
    let len = len as usize;
    if len > TOKEN_MAX {
        return reply::done(turn, "CLIENT_ERROR auth token too long");
    }
    let Some(token) = block.get(..len + 2) else { return Step::Wants(len + 2) };
    turn.counters.auth_cmds.add(1);
    let refuse = |turn: &mut Turn<'_>, reply: &str| {
        turn.counters.auth_errors.add(1);
        turn.out.line(reply);
        Step::DoneWith(len + 2)
    };
    let Some(token) = token.strip_suffix(b"\r\n") else {
        return refuse(turn, "CLIENT_ERROR bad command line termination");
    };
    let Some((name, password)) = token.iter().position(|byte| *byte == b' ').map(|at| token.split_at(at)) else {
        return refuse(turn, "CLIENT_ERROR bad authentication token format");
    };
    if !turn.server.accounts().is_some_and(|accounts| accounts.admits(name, &password[1..])) {
        return refuse(turn, "CLIENT_ERROR authentication failure");
    }
    gate.locked = false;
    turn.out.line("STORED");
    Step::DoneWith(len + 2)
}
