//! `md`: deleting, and what comes instead of it.

use super::meta::{Request, STALE};
use super::put::{failure, Outcome};
use super::{exptime, Context};
use hashmere::{Attributes, CasOutcome, Change, Expected, Ttl, Version};

impl Context<'_> {
    /// Performs `md`.
    pub fn meta_delete(&mut self, request: &Request<'_>) {
        let flags = &request.flags;
        let size = self.size_if_watched(request.key.bytes());
        let outcome = if flags.has(b'I') || flags.has(b'x') { self.invalidate(request) } else { self.remove(request) };
        match outcome {
            Outcome::Stored(..) => {
                self.counters.delete_hits.add(1);
                self.log_delete(request.key.bytes(), "md", size);
            }
            Outcome::NotFound => {
                self.counters.delete_misses.add(1);
                self.missed(request.key.bytes());
            }
            _ => {}
        }
        let text = match outcome {
            Outcome::Stored(..) if request.is_quiet() => return,
            Outcome::Stored(..) => "HD",
            Outcome::Exists => "EX",
            Outcome::Failed(error) => return self.out.line(&failure(&error)),
            _ => "NF",
        };
        self.out.text(text);
        request.finish(&mut self.out.bytes, |_, _| {});
    }

    fn remove(&self, request: &Request<'_>) -> Outcome {
        let (store, key) = (&self.server.store, request.key.bytes());
        let Some(version) = request.flags.compare else {
            return match store.delete(key) {
                Ok(true) => Outcome::gone(),
                Ok(false) => Outcome::NotFound,
                Err(error) => Outcome::Failed(error),
            };
        };
        match store.compare_and_set(key, Expected::Version(Version(version)), Change::Remove) {
            Ok(CasOutcome::Mismatch(_)) => Outcome::Exists,
            Ok(CasOutcome::NotFound) => Outcome::NotFound,
            Ok(_) => Outcome::gone(),
            Err(error) => Outcome::Failed(error),
        }
    }

    /// `I` marks the item as stale, with a new version, and lets the next reader win; `x` leaves nothing of it: no value, no flags, no
    /// expiry and no marks.
    fn invalidate(&self, request: &Request<'_>) -> Outcome {
        let (store, key, flags) = (&self.server.store, request.key.bytes(), &request.flags);
        loop {
            let item = match store.get_item(key) {
                Ok(Some(item)) => item,
                Ok(None) => return Outcome::NotFound,
                Err(error) => return Outcome::Failed(error.into()),
            };
            if flags.compare.is_some_and(|version| version != item.metadata.version.0) {
                return Outcome::Exists;
            }
            let (value, client, kept) = match flags.has(b'x') {
                true => (&b""[..], 0, None),
                false => (&item.value[..], item.metadata.flags, item.metadata.expires_at_ms),
            };
            let ttl = flags.ttl.map_or(kept.map_or(Ttl::Never, Ttl::At), exptime::ttl);
            let marks = if flags.has(b'I') { STALE } else { 0 };
            let attributes = Attributes { flags: client, ttl, min_version: flags.version };
            match store.set_marked(key, value, attributes, marks, Some(&item.metadata)) {
                Ok(None) => {}
                Ok(Some(stored)) => return Outcome::Stored(stored, value.len() as u64),
                Err(error) => return Outcome::Failed(error),
            }
        }
    }
}
