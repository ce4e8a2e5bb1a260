//! The loop over lines: classic and meta.

use super::dump::Dump;
use super::retrieve::Retrieval;
use super::{Context, Next, Session, LINE_MAX, OUTPUT_MAX, SHORT_LINE_MAX};
use crate::protocol::classic::{self, Refusal, Request, BAD_FORMAT};
use crate::protocol::words::{chomp, Words};
use memchr::memchr;

/// Bytes of the shortest line that is looked at, its ending included; before authentication.
const SHORTEST: usize = 4;
const SHORTEST_LOCKED: usize = 7;
/// Longest name and password.
const TOKEN_MAX: usize = 16 << 10;
const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated";

/// What came of a line.
#[derive(Debug)]
pub enum Step {
    /// It is done.
    Done,
    /// It is done, with a data block of so many bytes, line ending included.
    DoneWith(usize),
    /// It needs a data block of so many bytes, line ending included, and is to be read again with it.
    Wants(usize),
    /// It was refused, and a data block of so many bytes is to be ignored.
    Swallow(u64),
    /// It begins a walk over the keys.
    Dump(Dump),
    /// It begins a retrieval; the keys start at this byte of the line.
    Retrieve(Retrieval, usize),
    /// It makes the connection one that is told about events of these kinds.
    Watch(u16),
    /// The connection is to be closed.
    Close,
}

impl Session {
    pub(super) fn feed_text(&mut self, cx: &mut Context<'_>, input: &[u8]) -> (usize, Next) {
        let mut at = 0;
        loop {
            if cx.out.len() >= OUTPUT_MAX {
                return (at, Next::Output);
            }
            if let Some(dump) = &mut self.dump {
                if !dump.walk(cx) {
                    return (at, Next::Output);
                }
                self.dump = None;
            }
            let rest = &input[at..];
            let Some(end) = memchr(b'\n', rest) else { return (at, self.unfinished(rest)) };
            let line = chomp(&rest[..=end]);
            if let Some(retrieval) = self.retrieval {
                let left = self.retrieve(cx, retrieval, line);
                if left > 0 {
                    return (at + line.len() - left, Next::Output);
                }
                at += end + 1;
                continue;
            }
            match self.line(cx, &rest[..=end], &rest[end + 1..]) {
                Step::Done => at += end + 1,
                Step::DoneWith(block) => at += end + 1 + block,
                Step::Wants(block) => return (at, Next::Input(end + 1 + block)),
                Step::Close => return (at + end + 1, Next::Close),
                Step::Watch(kinds) => {
                    at += end + 1;
                    self.watcher = cx.server.watchers.enter(kinds, cx.worker);
                    if self.is_watching() {
                        cx.out.line("OK");
                        return (input.len(), Next::Input(0));
                    }
                    cx.out.line("WATCHER_TOO_MANY log watcher limit reached");
                }
                Step::Dump(dump) => {
                    self.dump = Some(Box::new(dump));
                    at += end + 1;
                }
                Step::Retrieve(retrieval, keys) => {
                    let left = self.retrieve(cx, retrieval, &line[keys..]);
                    if left > 0 {
                        return (at + line.len() - left, Next::Output);
                    }
                    at += end + 1;
                }
                Step::Swallow(block) => {
                    at += end + 1;
                    let here = block.min((input.len() - at) as u64);
                    at += here as usize;
                    self.swallow = block - here;
                    if self.swallow > 0 {
                        return (at, Next::Input(0));
                    }
                }
            }
        }
    }

    /// Goes on with a retrieval; returns how many bytes of keys are left, after which there has to be room for more output.
    #[inline]
    fn retrieve(&mut self, cx: &mut Context<'_>, retrieval: Retrieval, keys: &[u8]) -> usize {
        let left = cx.retrieve(retrieval, keys);
        if Words::new(left).is_empty() {
            self.retrieval = None;
            cx.out.text("END\r\n");
            return 0;
        }
        self.retrieval = Some(retrieval);
        left.len()
    }

    /// A line without an end: only retrievals may be long.
    fn unfinished(&self, rest: &[u8]) -> Next {
        if rest.len() <= SHORT_LINE_MAX || self.retrieval.is_some() {
            return Next::Input(0);
        }
        let is_retrieval = [&b"get "[..], b"gets ", b"gat ", b"gats "].iter().any(|name| rest.starts_with(name));
        if self.locked || !is_retrieval || rest.len() > LINE_MAX {
            return Next::Close;
        }
        Next::Input(0)
    }

    /// Performs a line, given with its ending and what came behind it.
    fn line(&mut self, cx: &mut Context<'_>, whole: &[u8], block: &[u8]) -> Step {
        let line = chomp(whole);
        if self.locked {
            // Something that short from a stranger is not worth an answer.
            return if whole.len() < SHORTEST_LOCKED { Step::Close } else { self.unlock(cx, line, block) };
        }
        if whole.len() < SHORTEST {
            return cx.done(BAD_FORMAT);
        }
        if let [b'm', letter, b' ', ..] | [b'm', letter] = line {
            if let Some(step) = cx.meta(*letter, &line[2..], block) {
                return step;
            }
        }
        match classic::parse(line) {
            Ok(Request::Retrieve(request)) => {
                let keys = request.keys;
                // The keys are the end of the line.
                Step::Retrieve(Retrieval::from(request), line.len() - keys.len())
            }
            Ok(Request::Other { name, words }) => cx.other(name, words, line),
            Ok(request) => cx.classic(request, block),
            Err(Refusal { reply, value }) => {
                if let Some(reply) = reply {
                    cx.out.line(reply);
                }
                value.map_or(Step::Done, |len| Step::Swallow(len + 2))
            }
        }
    }

    /// The only command before authentication: a `set` whose value is name and password.
    fn unlock(&mut self, cx: &mut Context<'_>, line: &[u8], block: &[u8]) -> Step {
        if classic::is_http(line) {
            return Step::Close;
        }
        let words: Vec<&[u8]> = Words::new(line).take(5).collect();
        let [b"set", _, _, _, len] = words[..] else { return cx.done(UNAUTHENTICATED) };
        let Some(len) = classic::declared_len(len) else { return cx.done(UNAUTHENTICATED) };
        let len = len as usize;
        if len > TOKEN_MAX {
            return cx.done("CLIENT_ERROR auth token too long");
        }
        let Some(token) = block.get(..len + 2) else { return Step::Wants(len + 2) };
        cx.counters.auth_cmds.add(1);
        let refuse = |cx: &mut Context<'_>, reply: &str| {
            cx.counters.auth_errors.add(1);
            cx.out.line(reply);
            Step::DoneWith(len + 2)
        };
        let Some(token) = token.strip_suffix(b"\r\n") else {
            return refuse(cx, "CLIENT_ERROR bad command line termination");
        };
        let Some((name, password)) = token.iter().position(|byte| *byte == b' ').map(|at| token.split_at(at)) else {
            return refuse(cx, "CLIENT_ERROR bad authentication token format");
        };
        if !cx.server.accounts().is_some_and(|accounts| accounts.admits(name, &password[1..])) {
            return refuse(cx, "CLIENT_ERROR authentication failure");
        }
        self.locked = false;
        cx.out.line("STORED");
        Step::DoneWith(len + 2)
    }
}
