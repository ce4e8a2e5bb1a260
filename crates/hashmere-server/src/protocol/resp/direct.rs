//! The frequent commands, each as one call of the store for each key. What they reply is what their counterparts in
//! `keys` reply.

use super::keys::count::{fraction, negative, OVERFLOW};
use super::keys::options::{self, Expires};
use super::keys::{alone, integer, refusal, set as strings, ttl_at, Fail, NOT_AN_INTEGER, TOO_LARGE};
use super::number::RedisInteger;
use super::parse::Args;
use super::reply::{bulk_header, Reply};
use crate::commands::{delete, marks, set as storing, Outcome};
use crate::protocol::{Verb, OUTPUT_MAX};
use crate::server::now_ms;
use crate::turn::Turn;
use crate::watch::{requests, FETCHERS};
use hashmere::{Attributes, Counter, Item, ReadError, Ttl, Update, View, WriteError};
use hashmere_engine::{Framed, StoreHandle, Tick};

/// Keys of one bulk read.
const BATCH: usize = 32;

/// A direct command: `first` is the argument that it goes on with, 1 at first. Returns the one to go on with when there
/// is room for output again; `None`: it is done.
pub type Direct = fn(turn: &mut Turn<'_>, args: Args<'_>, first: usize, resp3: bool) -> Option<usize>;

fn reply<'a>(turn: &'a mut Turn<'_>, resp3: bool) -> Reply<'a> {
    Reply { out: &mut turn.out.bytes, resp3 }
}

fn unreadable(turn: &mut Turn<'_>, error: &ReadError, resp3: bool) {
    turn.server.report_unreadable(error);
    reply(turn, resp3).error(&format!("ERR {error}"));
}

/// Writes a long value, which is sent from where it is stored.
fn push(turn: &mut Turn<'_>, view: View) {
    turn.note(view.metadata().uid, true);
    bulk_header(view.len(), &mut turn.out.bytes);
    turn.out.push_view(view);
    turn.out.bytes.extend_from_slice(b"\r\n");
}

/// `GET key`.
pub fn get(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    get_one(turn, args.at(1), resp3);
    None
}

fn get_one(turn: &mut Turn<'_>, key: &[u8], resp3: bool) {
    let start = turn.out.bytes.len();
    let frame = |meta: &hashmere::Metadata, out: &mut Vec<u8>| bulk_header(meta.value_len as usize, out);
    let found = match turn.server.store.shared().get_framed(key, &mut turn.out.bytes, frame) {
        Ok(Framed::Copied(meta)) if !marks::is_hidden(meta.marks) => {
            turn.note(meta.uid, true);
            turn.out.bytes.extend_from_slice(b"\r\n");
            true
        }
        Ok(Framed::Long(view)) => {
            push(turn, view);
            true
        }
        Ok(Framed::Absent | Framed::Copied(_)) => {
            // The placeholder of a lease is no value.
            turn.out.bytes.truncate(start);
            reply(turn, resp3).null();
            turn.missed(key);
            false
        }
        Err(error) => {
            unreadable(turn, &error, resp3);
            false
        }
    };
    requests::fetched(turn, key, found);
    turn.server.detail.fetched(key, found);
    let counters = turn.counters;
    counters.cmd_get.add(1);
    if found { &counters.get_hits } else { &counters.get_misses }.add(1);
}

/// `MGET key ...`
pub fn mget(turn: &mut Turn<'_>, args: Args<'_>, first: usize, resp3: bool) -> Option<usize> {
    if first == 1 {
        reply(turn, resp3).array(args.count() - 1);
    }
    // Watchers and counts by prefix need each key by itself.
    let alone = turn.server.watchers.wants(FETCHERS) || turn.server.detail.is_on();
    let mut at = first;
    while at < args.count() {
        if turn.out.len() >= OUTPUT_MAX {
            return Some(at);
        }
        if alone {
            get_one(turn, args.at(at), resp3);
            at += 1;
            continue;
        }
        let mut keys = [&b""[..]; BATCH];
        let mut count = 0;
        for (place, key) in keys.iter_mut().zip(args.from(at)) {
            *place = key;
            count += 1;
        }
        at += get_batch(turn, &keys[..count], resp3);
    }
    None
}

/// Answers keys; returns how many, which may be less than all.
fn get_batch(turn: &mut Turn<'_>, keys: &[&[u8]], resp3: bool) -> usize {
    let (access, now) = (&turn.server.access, turn.now);
    let null = |out: &mut Vec<u8>| Reply { out, resp3 }.null();
    let (mut done, mut hits, mut long, mut absent) = (0, 0, None, 0u32);
    let mut end = turn.out.bytes.len();
    let read = turn.server.store.shared().get_many_framed(
        keys,
        &mut turn.out.bytes,
        |_, meta, out| bulk_header(meta.value_len as usize, out),
        |_, framed, out| {
            done += 1;
            match framed {
                Framed::Copied(meta) if !marks::is_hidden(meta.marks) => {
                    hits += 1;
                    access.note(meta.uid, true, now);
                    out.extend_from_slice(b"\r\n");
                }
                Framed::Long(view) => {
                    hits += 1;
                    long = Some(view);
                    return false;
                }
                Framed::Absent | Framed::Copied(_) => {
                    out.truncate(end);
                    null(out);
                    // A batch has a bit for each key.
                    absent |= 1 << (done - 1);
                }
            }
            end = out.len();
            out.len() < OUTPUT_MAX
        },
    );
    if let Some(view) = long {
        push(turn, view);
    }
    if let Err(error) = read {
        // The key that cannot be read has no value; an error within an array is no answer to `MGET`.
        turn.server.report_unreadable(&error);
        null(&mut turn.out.bytes);
        done += 1;
    }
    (0..done).filter(|i| absent >> i & 1 != 0).for_each(|i| turn.missed(keys[i]));
    turn.counters.cmd_get.add(done as u64);
    turn.counters.get_hits.add(hits);
    turn.counters.get_misses.add(done as u64 - hits);
    done
}

/// `SET key value`, and with an expiry or `NX`; with other options it is a transaction.
pub fn set(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    let (key, value) = (args.at(1), args.at(2));
    let (mut verb, mut ttl) = (Verb::Set, Ttl::Never);
    if args.count() > 3 {
        let options = options::read(args, 3, true).and_then(|options| {
            let expires = options.expires("set", now_ms() as i64)?;
            Ok((options, expires))
        });
        match options {
            Ok((options, expires)) if !options.present && !options.get && expires != Expires::Keep => {
                if options.absent {
                    verb = Verb::Add;
                }
                if let Expires::At(at) = expires {
                    ttl = ttl_at(at);
                }
            }
            _ => {
                alone(turn, strings::set, args, resp3);
                return None;
            }
        }
    }
    match store(turn, verb, key, value, ttl) {
        Ok(true) => reply(turn, resp3).ok(),
        Ok(false) => reply(turn, resp3).null(),
        Err(text) => reply(turn, resp3).error(&text),
    }
    None
}

/// `SETNX key value`.
pub fn setnx(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    match store(turn, Verb::Add, args.at(1), args.at(2), Ttl::Never) {
        Ok(stored) => reply(turn, resp3).integer(stored.into()),
        Err(text) => reply(turn, resp3).error(&text),
    }
    None
}

/// Stores a value; `false`: the key is there, and was to be absent.
fn store(turn: &mut Turn<'_>, verb: Verb, key: &[u8], value: &[u8], ttl: Ttl) -> Result<bool, String> {
    if !storing::fits(turn, key, 0, value.len() as u64) {
        turn.counters.too_large.add(1);
        return Err(TOO_LARGE.into());
    }
    match storing::set(turn, verb, key, value, Attributes::NONE.ttl(ttl), None) {
        Outcome::Stored(..) | Outcome::StoredStale(_) => Ok(true),
        Outcome::NotStored | Outcome::Exists | Outcome::NotFound => Ok(false),
        Outcome::TooLarge => Err(TOO_LARGE.into()),
        Outcome::Failed(error) => Err(refusal(&error)),
    }
}

/// `INCR key`.
pub fn incr(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    count(turn, args.at(1), Ok(1), resp3)
}

/// `DECR key`.
pub fn decr(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    count(turn, args.at(1), Ok(-1), resp3)
}

/// `INCRBY key number`.
pub fn incrby(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    count(turn, args.at(1), integer(args.at(2)), resp3)
}

/// `DECRBY key number`.
pub fn decrby(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    count(turn, args.at(1), negative(args.at(2)), resp3)
}

fn count(turn: &mut Turn<'_>, key: &[u8], by: Result<i64, Fail>, resp3: bool) -> Option<usize> {
    let by = match by {
        Ok(by) => by,
        Err(Fail::Say(text)) => {
            reply(turn, resp3).error(&text);
            return None;
        }
        Err(Fail::Store(error)) => {
            reply(turn, resp3).error(&refusal(&error));
            return None;
        }
    };
    let counter = Counter { initial: Some(by), attributes: Attributes::NONE };
    let shared = turn.server.store.shared();
    let counted = shared.count((key, shared.engine().hash(key)), &RedisInteger, counter, |number| {
        number.checked_add(by).map(Tick::Set).ok_or(WriteError::Overflow)
    });
    let is_new = matches!(&counted, Ok(Some((_, stored))) if stored.created);
    let counters = turn.counters;
    match (by >= 0, is_new) {
        (true, false) => &counters.incr_hits,
        (true, true) => &counters.incr_misses,
        (false, false) => &counters.decr_hits,
        (false, true) => &counters.decr_misses,
    }
    .add(1);
    let mut reply = reply(turn, resp3);
    match counted {
        // Without a number it would be absent, and one with an initial value never is.
        Ok(counted) => reply.integer(counted.map_or(by, |(number, _)| number)),
        Err(WriteError::NotANumber) => reply.error(NOT_AN_INTEGER),
        Err(WriteError::Overflow) => reply.error(OVERFLOW),
        Err(error) => reply.error(&refusal(&error)),
    }
    None
}

/// `INCRBYFLOAT key number`.
pub fn incrbyfloat(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    let mut now = Ok(String::new());
    let updated = turn.server.store.update_with(args.at(1), |item| {
        let item = item.filter(|item: &&Item| !marks::is_hidden(item.metadata.marks));
        now = fraction(item, args.at(2));
        match (&now, item) {
            (Err(_), _) => Update::Keep,
            (Ok(text), None) => Update::SetWith(text.clone().into(), Attributes::NONE),
            (Ok(text), Some(_)) => Update::Set(text.clone().into()),
        }
    });
    match (updated, now) {
        (Err(error), _) => reply(turn, resp3).error(&refusal(&error)),
        (Ok(_), Ok(text)) => reply(turn, resp3).bulk(text.as_bytes()),
        (Ok(_), Err(text)) => reply(turn, resp3).error(text),
    }
    None
}

/// `DEL key ...`, `UNLINK key ...`
pub fn del(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    let mut deleted = 0;
    for key in args.from(1) {
        match delete::delete(turn, key) {
            Ok(was_there) => deleted += i64::from(was_there),
            Err(error) => {
                reply(turn, resp3).error(&refusal(&error));
                return None;
            }
        }
    }
    reply(turn, resp3).integer(deleted);
    None
}

/// `EXISTS key ...`, `TOUCH key ...`
pub fn exists(turn: &mut Turn<'_>, args: Args<'_>, _: usize, resp3: bool) -> Option<usize> {
    let mut found = 0;
    for key in args.from(1) {
        match turn.server.store.metadata(key) {
            Ok(Some(meta)) if !marks::is_hidden(meta.marks) => {
                turn.note(meta.uid, true);
                found += 1;
            }
            Ok(_) => {}
            Err(error) => {
                unreadable(turn, &error, resp3);
                return None;
            }
        }
    }
    let asked = args.count() as u64 - 1;
    turn.counters.cmd_get.add(asked);
    turn.counters.get_hits.add(found);
    turn.counters.get_misses.add(asked - found);
    reply(turn, resp3).integer(found as i64);
    None
}
