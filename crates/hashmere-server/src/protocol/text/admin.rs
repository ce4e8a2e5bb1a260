//! The rest of the text protocol: statistics, flushing, and what dashboards send.

use super::dump::{Dump, Shape};
use super::parse::is_http;
use super::reply::{done, failure};
use super::step::Step;
use crate::commands::flush;
use crate::feed_stream::{command, FeedStream, NoStream};
use crate::protocol::tokens::Tokens;
use crate::protocol::{number, BAD_EXPTIME, BAD_FORMAT, ERROR};
use crate::stats::{self, Answer};
use crate::turn::Turn;
use crate::watch::{self, FETCHERS};
use hashmere::{Mode, Store};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a connection waits for a smaller store. A cache that cannot be that small says so at once.
const RESIZE_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns true if the store has the new maximum, or a cache is still being reduced to it.
fn resize(store: Store, bytes: u64) -> bool {
    let is_cache = store.mode() == Mode::Cache;
    let (done, outcome) = mpsc::channel();
    let resized = thread::Builder::new().name("resize".into()).spawn(move || {
        // The receiver is gone if it took too long.
        let _ = done.send(store.set_max_bytes(bytes).is_ok());
    });
    match (resized, is_cache) {
        (Err(_), _) => false,
        (_, true) => outcome.recv_timeout(RESIZE_TIMEOUT).unwrap_or(true),
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

/// Performs a command that is neither meta nor about single keys.
pub fn run(turn: &mut Turn<'_>, name: &[u8], tokens: Tokens<'_>, line: &[u8]) -> Step {
    let start = turn.out.bytes.len();
    let step = match name {
        b"version" => return done(turn, &format!("VERSION {}", stats::VERSION)),
        b"quit" => return Step::Close,
        b"stats" => return stats(turn, tokens),
        b"watch" => return watch(turn, tokens).map_or(Step::Done, Step::Watch),
        b"feed" => return feed(turn, tokens),
        b"refresh_certs" => return refresh_certs(turn),
        b"hashmere" => return hashmere(turn, tokens),
        b"shutdown" => shutdown(turn, tokens),
        b"flush_all" => flush_all(turn, tokens),
        b"verbosity" => verbosity(turn, tokens),
        b"cache_memlimit" => memory_limit(turn, tokens),
        b"slabs" => slabs(turn, tokens),
        b"lru" => lru(turn, tokens),
        b"lru_crawler" => crawler(turn, tokens),
        _ if is_http(line) => return Step::Close,
        _ => done(turn, ERROR),
    };
    // The rest answers nothing to `noreply`, whatever it would say.
    if Tokens::new(line).last() == Some(b"noreply") {
        turn.out.bytes.truncate(start);
    }
    step
}

fn stats(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    let name = tokens.next().unwrap_or(b"");
    if name == b"cachedump" {
        return cachedump(turn, tokens);
    }
    let server = turn.server;
    if name == b"detail" {
        if !server.config.may_dump {
            return done(turn, "CLIENT_ERROR stats detail not allowed");
        }
        // A copy of the words: what is said next is still to be read below.
        if tokens.into_iter().next() == Some(b"dump") {
            turn.out.bytes.extend_from_slice(&server.detail.dump());
            return done(turn, "END");
        }
    }
    let out = &mut *turn.out;
    let answer = stats::group(server, name, tokens.next(), &mut |name, value| {
        out.text("STAT ");
        out.text(name);
        out.text(" ");
        out.line(value);
    });
    turn.out.line(match answer {
        Answer::Done => "END",
        Answer::Reset => "RESET",
        Answer::Switched => "OK",
        Answer::Unknown if name == b"detail" => "CLIENT_ERROR usage: stats detail on|off|dump",
        Answer::Unknown => ERROR,
    });
    Step::Done
}

fn cachedump(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    if !turn.server.config.may_dump {
        turn.out.line("CLIENT_ERROR stats cachedump not allowed");
        return Step::Done;
    }
    let (Some(class), Some(limit)) = (tokens.next(), tokens.next()) else {
        return done(turn, "CLIENT_ERROR bad command line");
    };
    let (Some(class), Some(limit)) = (number::digits(class), number::digits(limit)) else {
        return done(turn, BAD_FORMAT);
    };
    if class >= CLASSES {
        return done(turn, "CLIENT_ERROR Illegal slab id");
    }
    // Everything is in class 1.
    let limit = match (class, limit) {
        (1, 0) => u64::MAX,
        (1, limit) => limit,
        _ => 0,
    };
    Step::Dump(Dump::new(Shape::Cachedump, b"", limit))
}

fn flush_all(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    if !turn.server.config.may_flush {
        return done(turn, "CLIENT_ERROR flush_all not allowed");
    }
    let delay = match tokens.next() {
        None => Some(0),
        Some(b"noreply") if tokens.last().is_none() => Some(0),
        Some(token) => number::signed_digits(token),
    };
    let Some(delay) = delay else { return done(turn, BAD_EXPTIME) };
    match flush::flush(turn, delay) {
        Ok(()) => done(turn, "OK"),
        Err(error) => done(turn, &failure(&error)),
    }
}

fn verbosity(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    let Some(level) = tokens.next().and_then(number::digits) else { return done(turn, BAD_FORMAT) };
    turn.server.verbosity.store(u8::try_from(level).unwrap_or(u8::MAX), Ordering::Relaxed);
    done(turn, "OK")
}

/// Gives the store another maximum. Dropping what is too much may take longer than other connections may wait: it goes
/// on by itself then.
fn memory_limit(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    let Some(megabytes) = tokens.next().and_then(number::unsigned32) else { return done(turn, ERROR) };
    match megabytes {
        ..8 => done(turn, "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"),
        1_000_000_001.. => done(turn, "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"),
        _ if resize(turn.server.store.clone(), u64::from(megabytes) << 20) => done(turn, "OK"),
        _ => done(turn, "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"),
    }
}

fn refresh_certs(turn: &mut Turn<'_>) -> Step {
    match turn.server.reload_certificates() {
        Ok(true) => done(turn, "OK"),
        Ok(false) => done(turn, "Error TLS not enabled"),
        Err(error) => done(turn, &format!("Error {error}")),
    }
}

/// There are no slabs: what memcached would take is accepted, and what it would refuse is refused in its words.
fn slabs(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    let (verb, first, second) = (tokens.next(), tokens.next(), tokens.next());
    let class = |token: Option<&[u8]>| token.map(number::signed_digits);
    let reply = match (verb, class(first), class(second)) {
        (Some(b"reassign"), Some(Some(from)), Some(Some(to))) if from == to => "SAME src and dst class are identical",
        (Some(b"reassign"), Some(Some(from)), Some(Some(to))) => match [from, to].iter().all(|id| is_class(*id)) {
            true => "NOSPARE source class has no spare pages",
            false => "BADCLASS invalid src or dst class id",
        },
        (Some(b"reassign"), Some(_), Some(_)) => BAD_FORMAT,
        (Some(b"automove"), Some(Some(_)), _) => "OK",
        (Some(b"automove"), Some(None), Some(_)) if matches!(first, Some(b"ratio" | b"freeratio" | b"window")) => "OK",
        (Some(b"automove"), Some(None), _) => BAD_FORMAT,
        _ => ERROR,
    };
    done(turn, reply)
}

/// The same for lists.
fn lru(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    let verb = tokens.next();
    let number = |token| std::str::from_utf8(token).ok()?.parse::<f64>().ok();
    let mut numbers = tokens.map_while(number).fuse();
    let known = match verb {
        Some(b"tune") => match (numbers.next(), numbers.next(), numbers.nth(1)) {
            (Some(hot), Some(warm), Some(_)) if hot + warm > 80.0 => {
                return done(turn, "ERROR hot and warm pcts must not exceed 80");
            }
            (.., last) => last.is_some(),
        },
        Some(b"mode") => matches!(tokens.next(), Some(b"flat" | b"segmented")),
        Some(b"temp_ttl") => numbers.next().is_some(),
        _ => false,
    };
    done(turn, if known { "OK" } else { ERROR })
}

/// There is nothing to crawl for; dumps work.
fn crawler(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    let (verb, argument) = (tokens.next(), tokens.next().filter(|token| *token != b"noreply"));
    let shape = match (verb, argument) {
        (Some(b"enable" | b"disable"), None) => return done(turn, "OK"),
        (Some(b"sleep" | b"tocrawl"), Some(number)) => {
            return done(
                turn,
                match number::digits(number) {
                    None => BAD_FORMAT,
                    Some(number) if verb == Some(b"sleep") && number > 1_000_000 => {
                        "CLIENT_ERROR sleep must be one second or less"
                    }
                    Some(_) => "OK",
                },
            );
        }
        (Some(b"crawl"), Some(classes)) => return done(turn, if are_classes(classes) { "OK" } else { BAD_CLASS }),
        (Some(b"metadump"), Some(_)) => Shape::Metadump,
        (Some(b"mgdump"), Some(_)) => Shape::Mgdump,
        _ => return done(turn, ERROR),
    };
    if !turn.server.config.may_dump {
        return done(turn, "ERROR metadump not allowed");
    }
    if !argument.is_some_and(|classes| classes == b"hash" || are_classes(classes)) {
        return done(turn, BAD_CLASS);
    }
    turn.out.line("OK");
    Step::Dump(Dump::new(shape, b"", u64::MAX))
}

fn shutdown(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    if !turn.server.config.may_shutdown {
        return done(turn, "SERVER_ERROR: shutdown not enabled");
    }
    if !matches!(tokens.next(), None | Some(b"graceful" | b"noreply")) {
        return done(turn, "CLIENT_ERROR invalid shutdown mode");
    }
    turn.server.ask_to_stop();
    Step::Close
}

/// What memcached has no command for: keys by prefix, listed or deleted.
fn hashmere(turn: &mut Turn<'_>, mut tokens: Tokens<'_>) -> Step {
    let (verb, prefix) = (tokens.next(), tokens.next().unwrap_or(b""));
    match verb {
        _ if !turn.server.config.may_dump => turn.out.line("CLIENT_ERROR listing keys is not allowed"),
        Some(b"keys") => {
            let limit = tokens.next().map_or(Some(u64::MAX), number::unsigned);
            let Some(limit) = limit else { return done(turn, BAD_FORMAT) };
            return Step::Dump(Dump::new(Shape::Keys, prefix, limit));
        }
        Some(b"delete") if !prefix.is_empty() => {
            return Step::Dump(Dump::new(Shape::Delete, prefix, u64::MAX));
        }
        _ => turn.out.line("CLIENT_ERROR usage: hashmere keys [prefix [limit]] | hashmere delete <prefix>"),
    }
    Step::Done
}

/// Makes the connection a stream of the store's changes.
fn feed(turn: &mut Turn<'_>, tokens: Tokens<'_>) -> Step {
    if turn.server.config.feed.is_none() {
        return done(turn, "CLIENT_ERROR feed not allowed");
    }
    let Some(wanted) = command::parse(tokens) else { return done(turn, command::USAGE) };
    match FeedStream::open(&turn.server.streams, turn.worker, &wanted) {
        Ok(stream) => {
            turn.out.line("FEED 1");
            Step::Feed(Box::new(stream))
        }
        Err(NoStream::TooMany) => done(turn, "SERVER_ERROR too many feeds"),
        Err(NoStream::Refused(why)) => done(turn, &format!("SERVER_ERROR {why}")),
    }
}

/// `watch`: the kinds of events that the connection is to receive; `None` if it is refused.
pub fn watch(turn: &mut Turn<'_>, tokens: Tokens<'_>) -> Option<u16> {
    if !turn.server.config.may_watch {
        turn.out.line("CLIENT_ERROR watch commands not allowed");
        return None;
    }
    let kinds = tokens.map(watch::kind).try_fold(0, |kinds, kind| kind.map(|kind| kinds | kind));
    match kinds {
        None => turn.out.line("ERROR"),
        Some(0) => return Some(FETCHERS),
        some => return some,
    }
    None
}
