//! The rest of the text protocol: statistics, flushing, and what dashboards send.

use super::dump::{Dump, Shape};
use super::text::Step;
use super::Context;
use crate::protocol::classic::{is_http, BAD_EXPTIME, BAD_FORMAT, ERROR};
use crate::protocol::number;
use crate::protocol::words::Words;
use crate::server::now_ms;
use crate::stats::{self, Answer};
use hashmere::{Mode, Store};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a connection waits for a smaller store. A cache that cannot be that small says so at once.
const RESIZE_PATIENCE: Duration = Duration::from_millis(500);

/// Whether the store has the new maximum, or a cache is on its way there.
fn resize(store: Store, bytes: u64) -> bool {
    let is_cache = store.mode() == Mode::Cache;
    let (done, outcome) = mpsc::channel();
    let resized = thread::Builder::new().name("resize".into()).spawn(move || {
        // The receiver is gone if it took too long.
        let _ = done.send(store.set_max_bytes(bytes).is_ok());
    });
    match (resized, is_cache) {
        (Err(_), _) => false,
        (_, true) => outcome.recv_timeout(RESIZE_PATIENCE).unwrap_or(true),
        (_, false) => outcome.recv().unwrap_or(false),
    }
}

/// Numbers that classes of items have in memcached are below this. Here everything is in class 1.
const CLASSES: u64 = 64;
const BAD_CLASS: &str = "BADCLASS invalid class id";

fn is_class(id: i64) -> bool {
    (1..CLASSES as i64).contains(&id)
}

/// `all`, or classes with commas between them.
fn are_classes(text: &[u8]) -> bool {
    text == b"all" || text.split(|byte| *byte == b',').all(|id| number::signed_digits(id).is_some_and(is_class))
}

impl Context<'_> {
    /// Performs a command that is neither meta nor about single keys.
    pub fn other(&mut self, name: &[u8], words: Words<'_>, line: &[u8]) -> Step {
        let start = self.out.bytes.len();
        let step = match name {
            b"version" => return self.done(&format!("VERSION {}", stats::VERSION)),
            b"quit" => return Step::Close,
            b"stats" => return self.stats(words),
            b"watch" => return self.watch(words).map_or(Step::Done, Step::Watch),
            b"refresh_certs" => return self.refresh_certs(),
            b"hashmere" => return self.hashmere(words),
            b"shutdown" => self.shutdown(words),
            b"flush_all" => self.flush_all(words),
            b"verbosity" => self.verbosity(words),
            b"cache_memlimit" => self.memory_limit(words),
            b"slabs" => self.slabs(words),
            b"lru" => self.lru(words),
            b"lru_crawler" => self.crawler(words),
            _ if is_http(line) => return Step::Close,
            _ => self.done(ERROR),
        };
        // The rest answers nothing to `noreply`, whatever it would say.
        if Words::new(line).last() == Some(b"noreply") {
            self.out.bytes.truncate(start);
        }
        step
    }

    fn stats(&mut self, mut words: Words<'_>) -> Step {
        let name = words.next().unwrap_or(b"");
        if name == b"cachedump" {
            return self.cachedump(words);
        }
        let server = self.server;
        if name == b"detail" {
            if !server.config.may_dump {
                return self.done("CLIENT_ERROR stats detail not allowed");
            }
            // A copy of the words: what is said next is still to be read below.
            if words.into_iter().next() == Some(b"dump") {
                self.out.bytes.extend_from_slice(&server.detail.dump());
                return self.done("END");
            }
        }
        let out = &mut *self.out;
        let answer = stats::group(server, name, words.next(), &mut |name, value| {
            out.text("STAT ");
            out.text(name);
            out.text(" ");
            out.line(value);
        });
        self.out.line(match answer {
            Answer::Done => "END",
            Answer::Reset => "RESET",
            Answer::Switched => "OK",
            Answer::Unknown if name == b"detail" => "CLIENT_ERROR usage: stats detail on|off|dump",
            Answer::Unknown => ERROR,
        });
        Step::Done
    }

    fn cachedump(&mut self, mut words: Words<'_>) -> Step {
        if !self.server.config.may_dump {
            self.out.line("CLIENT_ERROR stats cachedump not allowed");
            return Step::Done;
        }
        let (Some(class), Some(limit)) = (words.next(), words.next()) else {
            return self.done("CLIENT_ERROR bad command line");
        };
        let (Some(class), Some(limit)) = (number::digits(class), number::digits(limit)) else {
            return self.done(BAD_FORMAT);
        };
        if class >= CLASSES {
            return self.done("CLIENT_ERROR Illegal slab id");
        }
        // Everything is in class 1.
        let limit = match (class, limit) {
            (1, 0) => u64::MAX,
            (1, limit) => limit,
            _ => 0,
        };
        Step::Dump(Dump::new(Shape::Cachedump, b"", limit))
    }

    fn flush_all(&mut self, mut words: Words<'_>) -> Step {
        if !self.server.config.may_flush {
            return self.done("CLIENT_ERROR flush_all not allowed");
        }
        let delay = match words.next() {
            None => Some(0),
            Some(b"noreply") if words.last().is_none() => Some(0),
            Some(word) => number::signed_digits(word),
        };
        let Some(delay) = delay else { return self.done(BAD_EXPTIME) };
        match self.flush(delay) {
            Ok(()) => self.done("OK"),
            Err(error) => self.done(&super::put::failure(&error)),
        }
    }

    /// Removes everything, now or after a delay (or at a time, if it is above 30 days).
    pub fn flush(&self, delay: i64) -> Result<(), hashmere::WriteError> {
        self.counters.cmd_flush.add(1);
        let now = now_ms();
        match super::exptime::deadline(super::exptime::ttl(delay), now) {
            Some(at) if at > now => {
                self.server.flush_at.store(at, Ordering::Relaxed);
                Ok(())
            }
            _ => self.server.flush(),
        }
    }

    fn verbosity(&mut self, mut words: Words<'_>) -> Step {
        let Some(level) = words.next().and_then(number::digits) else { return self.done(BAD_FORMAT) };
        self.server.verbosity.store(u8::try_from(level).unwrap_or(u8::MAX), Ordering::Relaxed);
        self.done("OK")
    }

    /// Gives the store another maximum. Dropping what is too much may take longer than other connections may wait: it goes on by
    /// itself then.
    fn memory_limit(&mut self, mut words: Words<'_>) -> Step {
        let Some(megabytes) = words.next().and_then(number::unsigned32) else { return self.done(ERROR) };
        match megabytes {
            ..8 => self.done("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"),
            1_000_000_001.. => self.done("MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"),
            _ if resize(self.server.store.clone(), u64::from(megabytes) << 20) => self.done("OK"),
            _ => self.done("MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"),
        }
    }

    fn refresh_certs(&mut self) -> Step {
        match self.server.reload_certificates() {
            Ok(true) => self.done("OK"),
            Ok(false) => self.done("Error TLS not enabled"),
            Err(error) => self.done(&format!("Error {error}")),
        }
    }

    /// There are no slabs: what memcached would take is accepted, and what it would refuse is refused in its words.
    fn slabs(&mut self, mut words: Words<'_>) -> Step {
        let (verb, first, second) = (words.next(), words.next(), words.next());
        let class = |word: Option<&[u8]>| word.map(number::signed_digits);
        let reply = match (verb, class(first), class(second)) {
            (Some(b"reassign"), Some(Some(from)), Some(Some(to))) if from == to => {
                "SAME src and dst class are identical"
            }
            (Some(b"reassign"), Some(Some(from)), Some(Some(to))) => match [from, to].iter().all(|id| is_class(*id)) {
                true => "NOSPARE source class has no spare pages",
                false => "BADCLASS invalid src or dst class id",
            },
            (Some(b"reassign"), Some(_), Some(_)) => BAD_FORMAT,
            (Some(b"automove"), Some(Some(_)), _) => "OK",
            (Some(b"automove"), Some(None), Some(_)) if matches!(first, Some(b"ratio" | b"freeratio" | b"window")) => {
                "OK"
            }
            (Some(b"automove"), Some(None), _) => BAD_FORMAT,
            _ => ERROR,
        };
        self.done(reply)
    }

    /// The same for lists.
    fn lru(&mut self, mut words: Words<'_>) -> Step {
        let verb = words.next();
        let number = |word| std::str::from_utf8(word).ok()?.parse::<f64>().ok();
        let mut numbers = words.map_while(number).fuse();
        let known = match verb {
            Some(b"tune") => match (numbers.next(), numbers.next(), numbers.nth(1)) {
                (Some(hot), Some(warm), Some(_)) if hot + warm > 80.0 => {
                    return self.done("ERROR hot and warm pcts must not exceed 80");
                }
                (.., last) => last.is_some(),
            },
            Some(b"mode") => matches!(words.next(), Some(b"flat" | b"segmented")),
            Some(b"temp_ttl") => numbers.next().is_some(),
            _ => false,
        };
        self.done(if known { "OK" } else { ERROR })
    }

    /// There is nothing to crawl for; dumps work.
    fn crawler(&mut self, mut words: Words<'_>) -> Step {
        let (verb, argument) = (words.next(), words.next().filter(|word| *word != b"noreply"));
        let shape = match (verb, argument) {
            (Some(b"enable" | b"disable"), None) => return self.done("OK"),
            (Some(b"sleep" | b"tocrawl"), Some(number)) => {
                return self.done(match number::digits(number) {
                    None => BAD_FORMAT,
                    Some(number) if verb == Some(b"sleep") && number > 1_000_000 => {
                        "CLIENT_ERROR sleep must be one second or less"
                    }
                    Some(_) => "OK",
                });
            }
            (Some(b"crawl"), Some(classes)) => return self.done(if are_classes(classes) { "OK" } else { BAD_CLASS }),
            (Some(b"metadump"), Some(_)) => Shape::Metadump,
            (Some(b"mgdump"), Some(_)) => Shape::Mgdump,
            _ => return self.done(ERROR),
        };
        if !self.server.config.may_dump {
            return self.done("ERROR metadump not allowed");
        }
        if !argument.is_some_and(|classes| classes == b"hash" || are_classes(classes)) {
            return self.done(BAD_CLASS);
        }
        self.out.line("OK");
        Step::Dump(Dump::new(shape, b"", u64::MAX))
    }

    fn shutdown(&mut self, mut words: Words<'_>) -> Step {
        if !self.server.config.may_shutdown {
            return self.done("SERVER_ERROR: shutdown not enabled");
        }
        if !matches!(words.next(), None | Some(b"graceful" | b"noreply")) {
            return self.done("CLIENT_ERROR invalid shutdown mode");
        }
        self.server.ask_to_stop();
        Step::Close
    }

    /// What memcached has no command for: keys by prefix, listed or deleted.
    fn hashmere(&mut self, mut words: Words<'_>) -> Step {
        let (verb, prefix) = (words.next(), words.next().unwrap_or(b""));
        match verb {
            _ if !self.server.config.may_dump => self.out.line("CLIENT_ERROR listing keys is not allowed"),
            Some(b"keys") => {
                let limit = words.next().map_or(Some(u64::MAX), number::unsigned);
                let Some(limit) = limit else { return self.done(BAD_FORMAT) };
                return Step::Dump(Dump::new(Shape::Keys, prefix, limit));
            }
            Some(b"delete") if !prefix.is_empty() => {
                return Step::Dump(Dump::new(Shape::Delete, prefix, u64::MAX));
            }
            _ => self.out.line("CLIENT_ERROR usage: hashmere keys [prefix [limit]] | hashmere delete <prefix>"),
        }
        Step::Done
    }
}
