//! The operations that change something.

use super::parse::{opcode, status, wide, word, Packet};
use super::reply::{fail, fail_write, miss, reply};
use crate::commands::count::{Count, Outcome as Counted};
use crate::commands::{self, Outcome};
use crate::protocol::{exptime, Verb};
use crate::turn::Turn;
use hashmere::{Attributes, CasOutcome, Change, Expected, Version};

/// The expiry that says: do not create.
const NEVER_CREATE: u32 = u32::MAX;

fn verb_of(packet: &Packet<'_>) -> Verb {
    match (packet.opcode, packet.header.cas) {
        (opcode::ADD, 0) => Verb::Add,
        (opcode::REPLACE, 0) => Verb::Replace,
        (opcode::APPEND, _) => Verb::Append,
        (opcode::PREPEND, _) => Verb::Prepend,
        (_, 0) => Verb::Set,
        (_, cas) => Verb::Cas(cas),
    }
}

/// `set` and its kin.
pub fn set(turn: &mut Turn<'_>, packet: &Packet<'_>) {
    let (flags, exptime) = (word(packet.extras, 0), word(packet.extras, 4));
    let cas = Some(packet.header.cas).filter(|cas| *cas != 0);
    let verb = verb_of(packet);
    turn.server.detail.stored(packet.key);
    if !commands::set::fits(turn, packet.key, flags, packet.value.len() as u64) {
        return refuse_large(turn, packet);
    }
    let attributes = Attributes { flags, ttl: exptime::ttl(i64::from(exptime)), ..Attributes::NONE };
    match commands::set::set(turn, verb, packet.key, packet.value, attributes, cas) {
        Outcome::Stored(..) if packet.quiet => {}
        Outcome::Stored(stored, _) => {
            let cas = turn.cas(stored.version);
            reply(turn, packet, cas, b"", b"", b"");
        }
        // No packet has a token.
        Outcome::StoredStale(_) => fail(turn, packet, status::NOT_STORED),
        Outcome::NotStored => fail(
            turn,
            packet,
            match packet.opcode {
                opcode::ADD => status::EXISTS,
                opcode::REPLACE => status::NOT_FOUND,
                _ => status::NOT_STORED,
            },
        ),
        Outcome::Exists => fail(turn, packet, status::EXISTS),
        Outcome::NotFound => fail(turn, packet, status::NOT_FOUND),
        Outcome::TooLarge => fail(turn, packet, status::TOO_LARGE),
        Outcome::Failed(error) => fail_write(turn, packet, &error),
    }
}

/// A value that is too large, of which nothing more than the key need be there.
pub fn refuse_large(turn: &mut Turn<'_>, packet: &Packet<'_>) {
    commands::set::refuse_large(turn, verb_of(packet), packet.key, packet.opcode == opcode::SET);
    fail(turn, packet, status::TOO_LARGE);
}

/// `delete`, at a version if one is given.
pub fn delete(turn: &mut Turn<'_>, packet: &Packet<'_>) {
    turn.server.detail.deleted(packet.key);
    let done = match packet.header.cas {
        0 => commands::delete::delete(turn, packet.key).map(|deleted| {
            if deleted {
                CasOutcome::Removed
            } else {
                CasOutcome::Absent
            }
        }),
        cas => turn.server.store.cas(packet.key, Expected::Version(Version(cas)), Change::Remove),
    };
    match done {
        Ok(CasOutcome::Mismatch(_)) => fail(turn, packet, status::EXISTS),
        Ok(CasOutcome::Absent) => fail(turn, packet, status::NOT_FOUND),
        Ok(_) if packet.quiet => {}
        Ok(_) => reply(turn, packet, 0, b"", b"", b""),
        Err(error) => fail_write(turn, packet, &error),
    }
}

/// `increment` and `decrement`.
pub fn count(turn: &mut Turn<'_>, packet: &Packet<'_>) {
    let exptime = word(packet.extras, 16);
    let create = (exptime != NEVER_CREATE).then(|| (wide(packet.extras, 8), exptime::ttl(i64::from(exptime))));
    let count = Count {
        by: wide(packet.extras, 0),
        up: packet.opcode == opcode::INCREMENT,
        create,
        only: Some(packet.header.cas).filter(|cas| *cas != 0),
        ttl: None,
        version: Version(0),
    };
    match commands::count::count(turn, packet.key, count) {
        Counted::Done(_) if packet.quiet => {}
        Counted::Done(counted) => {
            let cas = turn.cas(counted.version);
            reply(turn, packet, cas, b"", b"", &counted.number.to_be_bytes());
        }
        Counted::NotFound => fail(turn, packet, status::NOT_FOUND),
        Counted::Exists => fail(turn, packet, status::EXISTS),
        Counted::NotANumber => fail(turn, packet, status::NOT_A_NUMBER),
        Counted::Failed(error) => fail_write(turn, packet, &error),
    }
}

/// `touch`, and `get and touch` with and without the key.
pub fn touch(turn: &mut Turn<'_>, packet: &Packet<'_>) {
    let exptime = i64::from(word(packet.extras, 0));
    if packet.opcode == opcode::TOUCH {
        return match commands::touch::touch(turn, packet.key, exptime) {
            Ok(true) => {
                commands::touch::note_key(turn, packet.key, true);
                let meta = turn.server.store.metadata(packet.key).ok().flatten();
                let (cas, flags) = meta.map_or((0, 0), |meta| (turn.cas(meta.version), meta.flags));
                reply(turn, packet, cas, &flags.to_be_bytes(), b"", b"");
            }
            Ok(false) => fail(turn, packet, status::NOT_FOUND),
            Err(error) => fail_write(turn, packet, &error),
        };
    }
    let key = if packet.opcode == opcode::GATK { packet.key } else { b"" };
    match commands::touch::touch_and_fetch(turn, packet.key, exptime) {
        Ok(Some(item)) => {
            reply(turn, packet, turn.cas(item.metadata.version), &item.metadata.flags.to_be_bytes(), key, &item.value);
        }
        Ok(None) => miss(turn, packet, key),
        Err(error) => fail_write(turn, packet, &error),
    }
}

/// `flush`, at once or later.
pub fn flush(turn: &mut Turn<'_>, packet: &Packet<'_>) {
    if !turn.server.config.may_flush {
        return fail(turn, packet, status::AUTH_ERROR);
    }
    match commands::flush::flush(turn, i64::from(word(packet.extras, 0))) {
        Ok(()) if packet.quiet => {}
        Ok(()) => reply(turn, packet, 0, b"", b"", b""),
        Err(error) => fail_write(turn, packet, &error),
    }
}
