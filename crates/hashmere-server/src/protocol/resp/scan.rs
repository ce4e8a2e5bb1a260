//! Walking over the keys: `KEYS`, `SCAN`, `RANDOMKEY`, `DBSIZE`, `FLUSHALL`.

use super::glob;
use super::keys::{integer, refusal, Fail, SYNTAX};
use super::parse::Args;
use super::reply::Reply;
use super::state::{refuse, Client, Step};
use super::transaction::BYTES_MAX;
use crate::commands::marks;
use crate::turn::Turn;
use hashmere::{Cursor, Filter, Pair, ReadError};

/// Places of the index that are looked at before other connections get their turn: below a millisecond.
const STRIDE: usize = 2048;
/// Keys that one `SCAN` looks at by default, and at most.
const COUNT: u64 = 10;
const COUNT_MAX: u64 = 4096;
/// Tries of `RANDOMKEY` to find what is no placeholder.
const TRIES: u32 = 100;

/// Whether a pair is a key to a client.
fn is_key(pair: &Pair) -> bool {
    !marks::is_hidden(pair.metadata.marks)
}

fn unreadable(client: &Client, turn: &mut Turn<'_>, error: &ReadError) -> Step {
    turn.server.report_unreadable(error);
    client.reply_to(turn).error(&format!("ERR {error}"));
    Step::Done
}

/// `KEYS pattern`.
pub fn keys(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if !turn.server.config.may_dump {
        return refuse(client, turn, "NOPERM listing keys is not allowed (-X)");
    }
    let mut walk = client.walk.take().unwrap_or_default();
    let mut scan = turn.server.store.scan(walk.cursor, Filter::all().keys_only());
    let mut places = STRIDE;
    while let Some(next) = scan.next_within(&mut places) {
        match next {
            Ok(pair) if is_key(&pair) && glob::matches(args.at(1), &pair.key) => {
                walk.count += 1;
                Reply { out: &mut walk.found, resp3: client.resp3 }.bulk(&pair.key);
            }
            Ok(_) => {}
            Err(error) => return unreadable(client, turn, &error),
        }
    }
    if walk.found.len() > BYTES_MAX {
        client.reply_to(turn).error("ERR the reply of KEYS has more than 64 MiB; use SCAN");
        return Step::Done;
    }
    if let Some(cursor) = scan.cursor() {
        walk.cursor = cursor;
        client.walk = Some(walk);
        return Step::More;
    }
    client.reply_to(turn).array(walk.count);
    turn.out.bytes.append(&mut walk.found);
    Step::Done
}

/// What `SCAN` was asked for.
struct Asked<'a> {
    cursor: Cursor,
    pattern: Option<&'a [u8]>,
    count: u64,
    strings: bool,
}

fn asked(args: Args<'_>) -> Result<Asked<'_>, Fail> {
    let text = std::str::from_utf8(args.at(1)).ok();
    let cursor = text.and_then(|text| text.parse().ok()).map(Cursor).ok_or("ERR invalid cursor")?;
    let mut asked = Asked { cursor, pattern: None, count: COUNT, strings: true };
    let mut at = 2;
    while at < args.count() {
        let value = args.at(at + 1);
        match args.at(at).to_ascii_lowercase().as_slice() {
            _ if at + 1 >= args.count() => return Err(SYNTAX.into()),
            b"match" => asked.pattern = Some(value),
            b"count" => {
                asked.count = match integer(value)? {
                    count @ 1.. => (count as u64).min(COUNT_MAX),
                    _ => return Err(SYNTAX.into()),
                };
            }
            b"type" => asked.strings = value.eq_ignore_ascii_case(b"string"),
            _ => return Err(SYNTAX.into()),
        }
        at += 2;
    }
    Ok(asked)
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`.
pub fn scan(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if !turn.server.config.may_dump {
        return refuse(client, turn, "NOPERM listing keys is not allowed (-X)");
    }
    let asked = match asked(args) {
        Ok(asked) => asked,
        Err(Fail::Say(text)) => {
            client.reply_to(turn).error(&text);
            return Step::Done;
        }
        Err(Fail::Store(error)) => {
            client.reply_to(turn).error(&refusal(&error));
            return Step::Done;
        }
    };
    let mut scan = turn.server.store.scan(asked.cursor, Filter::all().keys_only());
    let mut places = STRIDE.max(8 * asked.count as usize);
    let (mut looked, mut found) = (0, Vec::new());
    while looked < asked.count {
        match scan.next_within(&mut places) {
            Some(Ok(pair)) => {
                looked += 1;
                let passes = asked.pattern.is_none_or(|pattern| glob::matches(pattern, &pair.key));
                if asked.strings && passes && is_key(&pair) {
                    found.push(pair.key);
                }
            }
            Some(Err(ReadError::BadCursor)) => {
                client.reply_to(turn).error("ERR invalid cursor");
                return Step::Done;
            }
            Some(Err(error)) => return unreadable(client, turn, &error),
            None => break,
        }
    }
    let cursor = scan.cursor().map_or(0, |cursor| cursor.0);
    let reply = &mut client.reply_to(turn);
    reply.array(2);
    reply.bulk(cursor.to_string().as_bytes());
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Step::Done
}

/// `RANDOMKEY`.
pub fn randomkey(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    for _ in 0..TRIES {
        match turn.server.store.random() {
            Ok(Some(pair)) if is_key(&pair) => {
                client.reply_to(turn).bulk(&pair.key);
                return Step::Done;
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => return unreadable(client, turn, &error),
        }
    }
    client.reply_to(turn).null();
    Step::Done
}

/// `DBSIZE`.
pub fn dbsize(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let count = turn.server.store.len();
    client.reply_to(turn).integer(count as i64);
    Step::Done
}

/// `FLUSHALL [ASYNC | SYNC]`, `FLUSHDB [ASYNC | SYNC]`.
pub fn flush(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let known = args.count() == 1 || args.count() == 2 && (args.is(1, "async") || args.is(1, "sync"));
    if !known {
        client.reply_to(turn).error(SYNTAX);
        return Step::Done;
    }
    if !turn.server.config.may_flush {
        client.reply_to(turn).error("NOPERM removing all keys is not allowed (-F)");
        return Step::Done;
    }
    turn.counters.cmd_flush.add(1);
    match turn.server.flush() {
        Ok(()) => client.reply_to(turn).ok(),
        Err(error) => client.reply_to(turn).error(&refusal(&error)),
    }
    Step::Done
}
