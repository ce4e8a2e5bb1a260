//! `get`, `gets`, `gat`, `gats`. A long line of keys is answered in parts: when there is enough output, the rest waits.

use super::{exptime, Context, OUTPUT_MAX};
use crate::protocol::classic::Retrieve;
use crate::protocol::number;
use crate::protocol::words::Words;
use crate::watch::FETCHERS;
use hashmere::{Item, Metadata, ReadError, WriteError};
use hashmere_engine::{Framed, StoreHandle};

/// Keys of one bulk read.
const BATCH: usize = 32;

/// A retrieval in progress: its keys are the input up to the end of the line.
#[derive(Clone, Copy, Debug)]
pub struct Retrieval {
    cas: bool,
    touch: Option<i64>,
}

impl From<Retrieve<'_>> for Retrieval {
    fn from(request: Retrieve<'_>) -> Retrieval {
        Retrieval { cas: request.cas, touch: request.touch }
    }
}

/// What stands in front of a value.
#[inline]
fn head(key: &[u8], meta: &Metadata, cas: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number::write(u64::from(meta.flags), out);
    out.push(b' ');
    number::write(meta.value_len, out);
    if let Some(cas) = cas {
        out.push(b' ');
        number::write(cas, out);
    }
    out.extend_from_slice(b"\r\n");
}

impl Context<'_> {
    /// Answers keys until they are done or there is enough output; returns the keys that are left.
    pub fn retrieve<'k>(&mut self, retrieval: Retrieval, keys: &'k [u8]) -> &'k [u8] {
        let mut words = Words::new(keys);
        if let Some(exptime) = retrieval.touch {
            while self.out.len() < OUTPUT_MAX {
                let Some(key) = words.next() else { break };
                self.get_and_touch(key, exptime, retrieval.cas);
            }
            return words.rest();
        }
        // Watchers and counts by prefix need each key by itself.
        let alone = self.server.watchers.wants(FETCHERS) || self.server.detail.is_on();
        let most = if alone { 1 } else { BATCH };
        loop {
            let mut batch = [&b""[..]; BATCH];
            let mut ends = [words; BATCH];
            let mut count = 0;
            while count < most {
                let Some(key) = words.next() else { break };
                batch[count] = key;
                ends[count] = words;
                count += 1;
            }
            if count == 0 {
                return words.rest();
            }
            let done = self.get_batch(&batch[..count], retrieval.cas);
            if self.out.len() >= OUTPUT_MAX {
                return done.checked_sub(1).map_or(keys, |last| ends[last].rest());
            }
        }
    }

    /// Answers keys; returns how many, which may be less than all.
    #[inline]
    fn get_batch(&mut self, keys: &[&[u8]], cas: bool) -> usize {
        let (store, access, now) = (&self.server.store, &self.server.access, self.now);
        let with_cas = cas && self.server.config.cas;
        let cas_of = |meta: &Metadata| cas.then_some(if with_cas { meta.version.0 } else { 0 });
        let (mut done, mut hits) = (0, 0);
        let read = if let [key] = keys {
            done = 1;
            let read = match store
                .shared()
                .get_framed(key, &mut self.out.bytes, |meta, out| head(key, meta, cas_of(meta), out))
            {
                Ok(Framed::Copied(meta)) => {
                    hits = 1;
                    self.note(meta.uid, true);
                    self.out.bytes.extend_from_slice(b"\r\n");
                    Ok(())
                }
                Ok(Framed::Long(view)) => {
                    hits = 1;
                    let meta = view.metadata();
                    self.note(meta.uid, true);
                    head(key, &meta, cas_of(&meta), &mut self.out.bytes);
                    self.out.push_view(view);
                    self.out.bytes.extend_from_slice(b"\r\n");
                    Ok(())
                }
                Ok(Framed::Absent) => Ok(()),
                Err(error) => Err(error),
            };
            self.log_fetch(key, hits == 1);
            self.server.detail.fetched(key, hits == 1);
            if matches!(read, Ok(())) && hits == 0 {
                self.missed(key);
            }
            read
        } else {
            let (mut long, mut from, mut absent) = (None, 0, 0u32);
            let read = loop {
                let read = store.shared().get_many_framed(
                    &keys[from..],
                    &mut self.out.bytes,
                    |key, meta, out| head(key, meta, cas_of(meta), out),
                    |_, framed, out| {
                        done += 1;
                        match framed {
                            Framed::Copied(meta) => {
                                hits += 1;
                                access.note(meta.uid, true, now);
                                out.extend_from_slice(b"\r\n");
                            }
                            Framed::Long(view) => {
                                hits += 1;
                                long = Some(view);
                                return false;
                            }
                            // A batch has a bit for each key.
                            Framed::Absent => absent |= 1 << (done - 1),
                        }
                        out.len() < OUTPUT_MAX
                    },
                );
                from = done;
                let Some(view) = long.take() else { break read };
                let meta = view.metadata();
                access.note(meta.uid, true, now);
                head(keys[done - 1], &meta, cas_of(&meta), &mut self.out.bytes);
                self.out.push_view(view);
                self.out.bytes.extend_from_slice(b"\r\n");
                if read.is_err() || done == keys.len() || self.out.len() >= OUTPUT_MAX {
                    break read;
                }
            };
            for (i, key) in keys.iter().enumerate() {
                if absent >> i & 1 != 0 {
                    self.missed(key);
                }
            }
            read
        };
        if let Err(error) = read {
            self.unreadable(&error);
            done = keys.len();
        }
        self.counters.cmd_get.add(done as u64);
        self.counters.get_hits.add(hits);
        self.counters.get_misses.add(done as u64 - hits);
        done
    }

    /// A damaged record is a miss to the client, and a message to the operator.
    pub fn unreadable(&self, error: &ReadError) {
        self.server.say(0, || format!("cannot read: {error}"));
    }

    /// Gives a key a new expiry and fetches it, with the counting that goes with it.
    pub fn touch_and_fetch(&self, key: &[u8], exptime: i64) -> Result<Option<Item>, WriteError> {
        let item = self.server.store.get_and_touch(key, exptime::ttl(exptime))?;
        let counters = self.counters;
        counters.cmd_touch.add(1);
        counters.cmd_get.add(1);
        self.log_fetch(key, item.is_some());
        self.server.detail.fetched(key, item.is_some());
        if let Some(item) = &item {
            counters.touch_hits.add(1);
            counters.get_hits.add(1);
            self.note(item.metadata.uid, true);
        } else {
            counters.touch_misses.add(1);
            counters.get_misses.add(1);
            self.missed(key);
        }
        Ok(item)
    }

    fn get_and_touch(&mut self, key: &[u8], exptime: i64, cas: bool) {
        match self.touch_and_fetch(key, exptime) {
            Ok(Some(item)) => {
                head(key, &item.metadata, cas.then_some(self.cas(&item.metadata)), &mut self.out.bytes);
                self.out.bytes.extend_from_slice(&item.value);
                self.out.bytes.extend_from_slice(b"\r\n");
            }
            Ok(None) => {}
            Err(error) => self.server.say(0, || format!("cannot touch: {error}")),
        }
    }
}
