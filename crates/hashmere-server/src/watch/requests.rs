//! What watchers are told about requests. Nothing here is done unless somebody watches.

use super::put::Outcome;
use super::{exptime, Context};
use crate::protocol::classic::Verb;
use crate::protocol::words::Words;
use crate::server::now_ms;
use crate::watch::{self, DELETIONS, FETCHERS, MUTATIONS};
use hashmere::Attributes;
use std::io::Write;

impl Context<'_> {
    /// `watch`: whether the connection becomes one that is told what happens.
    pub fn watch(&mut self, words: Words<'_>) -> Option<u16> {
        if !self.server.config.may_watch {
            self.out.line("CLIENT_ERROR watch commands not allowed");
            return None;
        }
        let kinds = words.map(watch::kind).try_fold(0, |kinds, kind| kind.map(|kind| kinds | kind));
        match kinds {
            None => self.out.line("ERROR"),
            Some(0) => return Some(FETCHERS),
            some => return some,
        }
        None
    }

    /// A key was asked for.
    #[inline]
    pub fn log_fetch(&self, key: &[u8], found: bool) {
        if self.server.watchers.wants(FETCHERS) {
            self.log_fetched(key, found);
        }
    }

    #[cold]
    fn log_fetched(&self, key: &[u8], found: bool) {
        let size = if found { self.size_of(key).0 } else { 0 };
        self.server.watchers.tell(FETCHERS, Some(self.worker), |line| {
            line.extend_from_slice(b"item_get");
            watch::key(key, line);
            let (status, class) = if found { ("found", 1) } else { ("not_found", 0) };
            // Writing to a vector does not fail.
            let _ = write!(line, " status={status} clsid={class} cfd={} size={size}", self.connection);
        });
    }

    /// A value was brought.
    #[inline]
    pub fn log_store(&self, verb: Verb, key: &[u8], len: usize, attributes: Attributes, outcome: &Outcome) {
        if self.server.watchers.wants(MUTATIONS) {
            self.log_stored(verb, key, len, attributes, outcome);
        }
    }

    #[cold]
    fn log_stored(&self, verb: Verb, key: &[u8], len: usize, attributes: Attributes, outcome: &Outcome) {
        let (status, class) = match outcome {
            Outcome::Stored(..) => ("stored", 1),
            Outcome::NotStored => ("not_stored", 1),
            Outcome::Exists => ("exists", 1),
            Outcome::NotFound => ("not_found", 1),
            Outcome::TooLarge => ("too_large", 0),
            Outcome::Failed(error) if error.is_no_room() => ("no_memory", 0),
            Outcome::Failed(_) => ("error", 0),
        };
        let (cmd, extends) = match verb {
            Verb::Set => ("set", false),
            Verb::Add => ("add", false),
            Verb::Replace => ("replace", false),
            Verb::Append => ("append", true),
            Verb::Prepend => ("prepend", true),
            Verb::Cas(_) => ("cas", false),
        };
        let mut size = if class == 0 { 0 } else { len as u64 };
        let now = now_ms();
        let mut expires = exptime::deadline(attributes.ttl, now);
        if extends && status == "stored" {
            (size, expires) = self.size_of(key);
        }
        let ttl = exptime::remaining(expires, now).unwrap_or(0);
        self.server.watchers.tell(MUTATIONS, Some(self.worker), |line| {
            line.extend_from_slice(b"item_store");
            watch::key(key, line);
            let connection = self.connection;
            let _ = write!(line, " status={status} cmd={cmd} ttl={ttl} clsid={class} cfd={connection} size={size}");
        });
    }

    /// The size of what is about to be deleted, if somebody watches that.
    #[inline]
    pub fn size_if_watched(&self, key: &[u8]) -> Option<u64> {
        self.server.watchers.wants(DELETIONS).then(|| self.size_of(key).0)
    }

    /// A key was deleted that had this size.
    pub fn log_delete(&self, key: &[u8], cmd: &str, size: Option<u64>) {
        let Some(size) = size else { return };
        self.server.watchers.tell(DELETIONS, Some(self.worker), |line| {
            line.extend_from_slice(b"deleted");
            watch::key(key, line);
            let _ = write!(line, " cmd={cmd} clsid=1 size={size}");
        });
    }

    /// Length and expiry of a value, as they are now.
    fn size_of(&self, key: &[u8]) -> (u64, Option<u64>) {
        let meta = self.server.store.metadata(key).ok().flatten();
        meta.map_or((0, None), |meta| (meta.value_len, meta.expires_at_ms))
    }
}
