//! `set` and its kin, `incr`, `decr`, `touch`, `delete`.

use super::count::{Count, Outcome as Counted};
use super::put::{failure, Outcome};
use super::text::Step;
use super::{exptime, Context};
use crate::protocol::classic::{Put, Request, Verb, BAD_CHUNK, TOO_LARGE};
use crate::protocol::number;
use hashmere::{Attributes, Version};

impl Context<'_> {
    /// Performs a request other than a retrieval.
    #[inline]
    pub fn classic(&mut self, request: Request<'_>, block: &[u8]) -> Step {
        match request {
            Request::Put(put) => return self.classic_put(&put, block),
            Request::Count { key, by, up, noreply } => self.classic_count(key, (by, up), noreply),
            Request::Touch { key, exptime, noreply } => self.classic_touch(key, exptime, noreply),
            Request::Delete { key, noreply } => self.classic_delete(key, noreply),
            Request::Retrieve(_) | Request::Other { .. } => {}
        }
        Step::Done
    }

    /// Answers a line that needs nothing else.
    pub fn done(&mut self, reply: &str) -> Step {
        self.out.line(reply);
        Step::Done
    }

    /// Answers, unless the client asked not to be answered.
    pub fn say_unless(&mut self, noreply: bool, reply: &str) {
        if !noreply {
            self.out.line(reply);
        }
    }

    #[inline]
    fn classic_put(&mut self, put: &Put<'_>, block: &[u8]) -> Step {
        if !self.fits(put.key, put.flags, put.len) {
            self.server.detail.stored(put.key);
            self.refuse_large(put.verb, put.key, put.verb == Verb::Set);
            self.say_unless(put.noreply, TOO_LARGE);
            return Step::Swallow(put.len + 2);
        }
        let len = put.len as usize;
        let Some(block) = block.get(..len + 2) else { return Step::Wants(len + 2) };
        self.server.detail.stored(put.key);
        let Some(value) = block.strip_suffix(b"\r\n") else {
            self.say_unless(put.noreply, BAD_CHUNK);
            return Step::DoneWith(len + 2);
        };
        let attributes = Attributes { flags: put.flags, ttl: exptime::ttl(put.exptime), ..Attributes::NONE };
        let outcome = self.put(put.verb, put.key, value, attributes, None);
        match outcome {
            Outcome::Stored(..) => self.say_unless(put.noreply, "STORED"),
            Outcome::NotStored => self.say_unless(put.noreply, "NOT_STORED"),
            Outcome::Exists => self.say_unless(put.noreply, "EXISTS"),
            Outcome::NotFound => self.say_unless(put.noreply, "NOT_FOUND"),
            Outcome::TooLarge => self.say_unless(put.noreply, TOO_LARGE),
            Outcome::Failed(error) => self.out.line(&failure(&error)),
        }
        Step::DoneWith(len + 2)
    }

    fn classic_count(&mut self, key: &[u8], (by, up): (u64, bool), noreply: bool) {
        match self.count(key, Count { by, up, create: None, only: None, ttl: None, version: Version(0) }) {
            Counted::Done(counted) if !noreply => {
                number::write(counted.number, &mut self.out.bytes);
                self.out.text("\r\n");
            }
            Counted::Done(_) => {}
            Counted::NotFound | Counted::Exists => self.say_unless(noreply, "NOT_FOUND"),
            Counted::NotANumber => {
                self.say_unless(noreply, "CLIENT_ERROR cannot increment or decrement non-numeric value");
            }
            Counted::Failed(error) => self.out.line(&failure(&error)),
        }
    }

    fn classic_touch(&mut self, key: &[u8], exptime: i64, noreply: bool) {
        match self.touch(key, exptime) {
            Ok(true) => {
                self.note_key(key, true);
                self.say_unless(noreply, "TOUCHED");
            }
            Ok(false) => self.say_unless(noreply, "NOT_FOUND"),
            Err(error) => self.out.line(&failure(&error)),
        }
    }

    /// Gives a key a new expiry, and counts that.
    pub fn touch(&self, key: &[u8], exptime: i64) -> Result<bool, hashmere::WriteError> {
        let touched = self.server.store.touch(key, exptime::ttl(exptime))?;
        self.counters.cmd_touch.add(1);
        if touched {
            self.counters.touch_hits.add(1);
        } else {
            self.counters.touch_misses.add(1);
            self.missed(key);
        }
        Ok(touched)
    }

    /// Notes an access of a key whose UID is not at hand.
    pub fn note_key(&self, key: &[u8], fetched: bool) {
        if let Ok(Some(meta)) = self.server.store.metadata(key) {
            self.note(meta.uid, fetched);
        }
    }

    fn classic_delete(&mut self, key: &[u8], noreply: bool) {
        self.server.detail.deleted(key);
        match self.delete(key) {
            Ok(true) => self.say_unless(noreply, "DELETED"),
            Ok(false) => self.say_unless(noreply, "NOT_FOUND"),
            Err(error) => self.out.line(&failure(&error)),
        }
    }

    /// Deletes a key, and counts that.
    pub fn delete(&self, key: &[u8]) -> Result<bool, hashmere::WriteError> {
        let size = self.size_if_watched(key);
        let deleted = self.server.store.delete(key)?;
        if deleted {
            self.counters.delete_hits.add(1);
            self.log_delete(key, "delete", size);
        } else {
            self.counters.delete_misses.add(1);
            self.missed(key);
        }
        Ok(deleted)
    }
}
