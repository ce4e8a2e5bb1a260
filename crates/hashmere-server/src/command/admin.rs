//! The rest of the text protocol: statistics, flushing, and what dashboards send.

use super::dump::{Dump, Shape};
use super::text::Step;
use super::Context;
use crate::protocol::classic::{BAD_FORMAT, ERROR};
use crate::protocol::number;
use crate::protocol::words::Words;
use crate::server::now_ms;
use crate::stats::{self, Answer};
use hashmere::Options;
use std::sync::atomic::Ordering;

impl Context<'_> {
    /// Performs a command that is neither meta nor about single keys.
    pub fn other(&mut self, name: &[u8], words: Words<'_>) -> Step {
        match name {
            b"version" => self.out.line(&format!("VERSION {}", stats::VERSION)),
            b"quit" => return Step::Close,
            b"shutdown" => return self.shutdown(words),
            b"stats" => return self.stats(words),
            b"flush_all" => self.flush_all(words),
            b"verbosity" => self.verbosity(words),
            b"cache_memlimit" => self.memory_limit(words),
            b"slabs" => self.slabs(words),
            b"lru" => self.accept_if(words, &[b"tune", b"mode", b"temp_ttl"]),
            b"lru_crawler" => return self.crawler(words),
            b"watch" => return self.watch(words).map_or(Step::Done, Step::Watch),
            b"refresh_certs" => self.refresh_certs(),
            b"hashmere" => return self.hashmere(words),
            _ => self.out.line(ERROR),
        }
        Step::Done
    }

    fn stats(&mut self, mut words: Words<'_>) -> Step {
        let name = words.next().unwrap_or(b"");
        if name == b"cachedump" {
            return self.cachedump(words);
        }
        let server = self.server;
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
        let (class, limit) = (words.next().and_then(number::unsigned), words.next().and_then(number::unsigned));
        let (Some(class), Some(limit)) = (class, limit) else {
            self.out.line(BAD_FORMAT);
            return Step::Done;
        };
        if class > 63 {
            self.out.line("CLIENT_ERROR Illegal slab id");
            return Step::Done;
        }
        // Everything is in class 1.
        let limit = match (class, limit) {
            (1, 0) => u64::MAX,
            (1, limit) => limit,
            _ => 0,
        };
        Step::Dump(Dump::new(Shape::Cachedump, b"", limit))
    }

    fn flush_all(&mut self, mut words: Words<'_>) {
        let (first, second) = (words.next(), words.next());
        let noreply = second.or(first) == Some(b"noreply");
        if !self.server.config.may_flush {
            return self.out.line("CLIENT_ERROR flush_all not allowed");
        }
        let delay = match first {
            None => 0,
            Some(b"noreply") if second.is_none() => 0,
            Some(word) => match number::signed(word) {
                Some(delay) => delay,
                None => return self.say_unless(noreply, "CLIENT_ERROR invalid exptime argument"),
            },
        };
        match self.flush(delay) {
            Ok(()) if noreply => {}
            Ok(()) => self.out.line("OK"),
            Err(error) => self.out.line(&super::put::failure(&error)),
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

    fn verbosity(&mut self, mut words: Words<'_>) {
        let Some(level) = words.next() else { return self.out.line(ERROR) };
        if level == b"noreply" {
            return;
        }
        let noreply = words.next() == Some(b"noreply");
        if !words.is_empty() {
            return self.out.line(ERROR);
        }
        match number::unsigned(level) {
            Some(level) => {
                self.server.verbosity.store(u8::try_from(level).unwrap_or(u8::MAX), Ordering::Relaxed);
                self.say_unless(noreply, "OK");
            }
            None => self.say_unless(noreply, BAD_FORMAT),
        }
    }

    /// The limit of a store can be raised while it is open, and not lowered.
    fn memory_limit(&mut self, mut words: Words<'_>) {
        let Some(megabytes) = words.next() else { return self.out.line(ERROR) };
        let Some(megabytes) = number::unsigned32(megabytes) else { return self.out.line(BAD_FORMAT) };
        let noreply = words.next() == Some(b"noreply");
        if megabytes < 8 {
            return self.out.line("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m");
        }
        if megabytes > 1_000_000_000 {
            return self.out.line("MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes");
        }
        let bytes = u64::from(megabytes) << 20;
        let raised = Options::new().existing_only().max_bytes(bytes).open(self.server.store.path());
        match raised {
            Ok(_) if noreply => {}
            Ok(_) => self.out.line("OK"),
            Err(_) => self.out.line("MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"),
        }
    }

    fn refresh_certs(&mut self) {
        match self.server.reload_certificates() {
            Ok(true) => self.out.line("OK"),
            Ok(false) => self.out.line("Error TLS not enabled"),
            Err(error) => self.out.line(&format!("Error {error}")),
        }
    }

    fn slabs(&mut self, mut words: Words<'_>) {
        match words.next() {
            Some(b"reassign") if words.len() >= 2 => self.out.line("NOSPARE source class has no spare pages"),
            Some(b"automove") if !words.is_empty() => self.say_unless(words.last() == Some(b"noreply"), "OK"),
            _ => self.out.line(ERROR),
        }
    }

    fn accept_if(&mut self, mut words: Words<'_>, known: &[&[u8]]) {
        let known = words.next().is_some_and(|word| known.contains(&word)) && !words.is_empty();
        self.out.line(if known { "OK" } else { ERROR });
    }

    fn crawler(&mut self, mut words: Words<'_>) -> Step {
        match words.next() {
            Some(b"enable" | b"disable") => self.out.line("OK"),
            Some(b"sleep" | b"tocrawl" | b"crawl") if !words.is_empty() => self.out.line("OK"),
            Some(b"metadump" | b"mgdump") if words.is_empty() => self.out.line(ERROR),
            Some(_) if !self.server.config.may_dump => self.out.line("ERROR metadump not allowed"),
            Some(b"metadump") => return Step::Dump(Dump::new(Shape::Metadump, b"", u64::MAX)),
            Some(b"mgdump") => return Step::Dump(Dump::new(Shape::Mgdump, b"", u64::MAX)),
            _ => self.out.line(ERROR),
        }
        Step::Done
    }

    fn shutdown(&mut self, mut words: Words<'_>) -> Step {
        if !self.server.config.may_shutdown {
            self.out.line("ERROR: shutdown not enabled");
            return Step::Done;
        }
        if !matches!(words.next(), None | Some(b"graceful")) {
            self.out.line("CLIENT_ERROR invalid shutdown mode");
            return Step::Done;
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
                let Some(limit) = limit else {
                    self.out.line(BAD_FORMAT);
                    return Step::Done;
                };
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
