//! The binary operations that change something.

use super::binary::Packet;
use super::count::{Count, Outcome as Counted};
use super::put::Outcome;
use super::{exptime, Context};
use crate::protocol::binary::{opcode, status, wide, word};
use crate::protocol::classic::Verb;
use hashmere::{Attributes, CasOutcome, Change, Expected, Version, WriteError};

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

impl Context<'_> {
    fn fail_write(&mut self, packet: &Packet<'_>, error: &WriteError) {
        let status = match error {
            error if error.is_no_room() => status::NO_MEMORY,
            WriteError::TooLarge { .. } => status::TOO_LARGE,
            WriteError::NotANumber => status::NOT_A_NUMBER,
            other => {
                self.server.say(0, || format!("cannot write: {other}"));
                (0x84, "Internal error")
            }
        };
        self.fail(packet, status);
    }

    /// `set` and its kin.
    pub fn binary_put(&mut self, packet: &Packet<'_>) {
        let (flags, exptime) = (word(packet.extras, 0), word(packet.extras, 4));
        let cas = Some(packet.header.cas).filter(|cas| *cas != 0);
        let verb = verb_of(packet);
        self.server.detail.stored(packet.key);
        if !self.fits(packet.key, flags, packet.value.len() as u64) {
            return self.binary_too_large(packet);
        }
        let attributes = Attributes { flags, ttl: exptime::ttl(i64::from(exptime)), ..Attributes::NONE };
        match self.put(verb, packet.key, packet.value, attributes, cas) {
            Outcome::Stored(..) if packet.quiet => {}
            Outcome::Stored(stored, _) => self.reply(packet, self.shown(stored.version), b"", b"", b""),
            Outcome::NotStored => self.fail(
                packet,
                match packet.opcode {
                    opcode::ADD => status::EXISTS,
                    opcode::REPLACE => status::NOT_FOUND,
                    _ => status::NOT_STORED,
                },
            ),
            Outcome::Exists => self.fail(packet, status::EXISTS),
            Outcome::NotFound => self.fail(packet, status::NOT_FOUND),
            Outcome::TooLarge => self.fail(packet, status::TOO_LARGE),
            Outcome::Failed(error) => self.fail_write(packet, &error),
        }
    }

    /// A value that is too large, of which nothing more than the key need be there.
    pub fn binary_too_large(&mut self, packet: &Packet<'_>) {
        self.refuse_large(verb_of(packet), packet.key, packet.opcode == opcode::SET);
        self.fail(packet, status::TOO_LARGE);
    }

    fn shown(&self, version: Version) -> u64 {
        if self.server.config.cas {
            version.0
        } else {
            0
        }
    }

    /// `delete`, at a version if one is given.
    pub fn binary_delete(&mut self, packet: &Packet<'_>) {
        self.server.detail.deleted(packet.key);
        let done = match packet.header.cas {
            0 => {
                self.delete(packet.key).map(|deleted| if deleted { CasOutcome::Removed } else { CasOutcome::NotFound })
            }
            cas => self.server.store.compare_and_set(packet.key, Expected::Version(Version(cas)), Change::Remove),
        };
        match done {
            Ok(CasOutcome::Mismatch(_)) => self.fail(packet, status::EXISTS),
            Ok(CasOutcome::NotFound) => self.fail(packet, status::NOT_FOUND),
            Ok(_) if packet.quiet => {}
            Ok(_) => self.reply(packet, 0, b"", b"", b""),
            Err(error) => self.fail_write(packet, &error),
        }
    }

    /// `increment` and `decrement`.
    pub fn binary_count(&mut self, packet: &Packet<'_>) {
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
        match self.count(packet.key, count) {
            Counted::Done(_) if packet.quiet => {}
            Counted::Done(counted) => {
                self.reply(packet, self.shown(counted.version), b"", b"", &counted.number.to_be_bytes());
            }
            Counted::NotFound => self.fail(packet, status::NOT_FOUND),
            Counted::Exists => self.fail(packet, status::EXISTS),
            Counted::NotANumber => self.fail(packet, status::NOT_A_NUMBER),
            Counted::Failed(error) => self.fail_write(packet, &error),
        }
    }

    /// `touch`, and `get and touch` with and without the key.
    pub fn binary_touch(&mut self, packet: &Packet<'_>) {
        let exptime = i64::from(word(packet.extras, 0));
        if packet.opcode == opcode::TOUCH {
            return match self.touch(packet.key, exptime) {
                Ok(true) => {
                    self.note_key(packet.key, true);
                    let meta = self.server.store.metadata(packet.key).ok().flatten();
                    let (cas, flags) = meta.map_or((0, 0), |meta| (self.cas(&meta), meta.flags));
                    self.reply(packet, cas, &flags.to_be_bytes(), b"", b"");
                }
                Ok(false) => self.fail(packet, status::NOT_FOUND),
                Err(error) => self.fail_write(packet, &error),
            };
        }
        let key = if packet.opcode == opcode::GATK { packet.key } else { b"" };
        match self.touch_and_fetch(packet.key, exptime) {
            Ok(Some(item)) => {
                self.reply(packet, self.cas(&item.metadata), &item.metadata.flags.to_be_bytes(), key, &item.value);
            }
            Ok(None) => self.binary_miss(packet, key),
            Err(error) => self.fail_write(packet, &error),
        }
    }

    /// `flush`, at once or later.
    pub fn binary_flush(&mut self, packet: &Packet<'_>) {
        if !self.server.config.may_flush {
            return self.fail(packet, status::AUTH_ERROR);
        }
        match self.flush(i64::from(word(packet.extras, 0))) {
            Ok(()) if packet.quiet => {}
            Ok(()) => self.reply(packet, 0, b"", b"", b""),
            Err(error) => self.fail_write(packet, &error),
        }
    }
}
