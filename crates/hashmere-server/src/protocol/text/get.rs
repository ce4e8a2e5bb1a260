//! `get`, `gets`, `gat`, `gats`; `lease-get` and `metaget` key by key. A long line of keys is answered in parts: when
//! there is enough output, the rest waits.

use super::lease;
use super::parse::{Kind, Retrieval};
use super::reply::value_line;
use crate::commands::{marks, touch};
use crate::protocol::tokens::Tokens;
use crate::protocol::OUTPUT_MAX;
use crate::turn::Turn;
use crate::watch::{requests, FETCHERS};
use hashmere::Metadata;
use hashmere_engine::{Framed, StoreHandle};

/// Keys of one bulk read.
const BATCH: usize = 32;

/// Answers keys until they are done or there is enough output; returns the keys that are left.
pub fn retrieve<'k>(turn: &mut Turn<'_>, retrieval: Retrieval, keys: &'k [u8]) -> &'k [u8] {
    let mut tokens = Tokens::new(keys);
    let each = match retrieval.kind {
        Kind::Value => None,
        Kind::Lease => Some(lease::get as fn(&mut Turn<'_>, &[u8])),
        Kind::Metadata => Some(lease::metadata as fn(&mut Turn<'_>, &[u8])),
    };
    if let Some(each) = each {
        while turn.out.len() < OUTPUT_MAX {
            let Some(key) = tokens.next() else { break };
            each(turn, key);
        }
        return tokens.rest();
    }
    if let Some(exptime) = retrieval.touch {
        while turn.out.len() < OUTPUT_MAX {
            let Some(key) = tokens.next() else { break };
            get_and_touch(turn, key, exptime, retrieval.cas);
        }
        return tokens.rest();
    }
    // Watchers and counts by prefix need each key by itself.
    let alone = turn.server.watchers.wants(FETCHERS) || turn.server.detail.is_on();
    let most = if alone { 1 } else { BATCH };
    loop {
        let mut batch = [&b""[..]; BATCH];
        let mut ends = [tokens; BATCH];
        let mut count = 0;
        while count < most {
            let Some(key) = tokens.next() else { break };
            batch[count] = key;
            ends[count] = tokens;
            count += 1;
        }
        if count == 0 {
            return tokens.rest();
        }
        let done = get_batch(turn, &batch[..count], retrieval.cas);
        if turn.out.len() >= OUTPUT_MAX {
            return done.checked_sub(1).map_or(keys, |last| ends[last].rest());
        }
    }
}

/// Answers keys; returns how many, which may be less than all.
#[inline]
fn get_batch(turn: &mut Turn<'_>, keys: &[&[u8]], cas: bool) -> usize {
    let (store, access, now) = (&turn.server.store, &turn.server.access, turn.now);
    let with_cas = cas && turn.server.config.cas;
    let cas_of = |meta: &Metadata| cas.then_some(if with_cas { meta.version.0 } else { 0 });
    let (mut done, mut hits) = (0, 0);
    let read = if let [key] = keys {
        done = 1;
        let start = turn.out.bytes.len();
        let read = match store
            .shared()
            .get_framed(key, &mut turn.out.bytes, |meta, out| value_line(key, meta, cas_of(meta), out))
        {
            // The placeholder of a lease is no value.
            Ok(Framed::Copied(meta)) if marks::is_hidden(meta.marks) => {
                turn.out.bytes.truncate(start);
                Ok(())
            }
            Ok(Framed::Copied(meta)) => {
                hits = 1;
                turn.note(meta.uid, true);
                turn.out.bytes.extend_from_slice(b"\r\n");
                Ok(())
            }
            Ok(Framed::Long(view)) => {
                hits = 1;
                let meta = view.metadata();
                turn.note(meta.uid, true);
                value_line(key, &meta, cas_of(&meta), &mut turn.out.bytes);
                turn.out.push_view(view);
                turn.out.bytes.extend_from_slice(b"\r\n");
                Ok(())
            }
            Ok(Framed::Absent) => Ok(()),
            Err(error) => Err(error),
        };
        requests::fetched(turn, key, hits == 1);
        turn.server.detail.fetched(key, hits == 1);
        if matches!(read, Ok(())) && hits == 0 {
            turn.missed(key);
        }
        read
    } else {
        let (mut long, mut from, mut absent) = (None, 0, 0u32);
        let read = loop {
            let mut end = turn.out.bytes.len();
            let read = store.shared().get_many_framed(
                &keys[from..],
                &mut turn.out.bytes,
                |key, meta, out| value_line(key, meta, cas_of(meta), out),
                |_, framed, out| {
                    done += 1;
                    match framed {
                        Framed::Copied(meta) if marks::is_hidden(meta.marks) => {
                            out.truncate(end);
                            absent |= 1 << (done - 1);
                        }
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
                    end = out.len();
                    out.len() < OUTPUT_MAX
                },
            );
            from = done;
            let Some(view) = long.take() else { break read };
            let meta = view.metadata();
            access.note(meta.uid, true, now);
            value_line(keys[done - 1], &meta, cas_of(&meta), &mut turn.out.bytes);
            turn.out.push_view(view);
            turn.out.bytes.extend_from_slice(b"\r\n");
            if read.is_err() || done == keys.len() || turn.out.len() >= OUTPUT_MAX {
                break read;
            }
        };
        for (i, key) in keys.iter().enumerate() {
            if absent >> i & 1 != 0 {
                turn.missed(key);
            }
        }
        read
    };
    if let Err(error) = read {
        turn.server.report_unreadable(&error);
        done = keys.len();
    }
    turn.counters.cmd_get.add(done as u64);
    turn.counters.get_hits.add(hits);
    turn.counters.get_misses.add(done as u64 - hits);
    done
}

fn get_and_touch(turn: &mut Turn<'_>, key: &[u8], exptime: i64, cas: bool) {
    match touch::touch_and_fetch(turn, key, exptime) {
        Ok(Some(item)) => {
            value_line(key, &item.metadata, cas.then_some(turn.cas(item.metadata.version)), &mut turn.out.bytes);
            turn.out.bytes.extend_from_slice(&item.value);
            turn.out.bytes.extend_from_slice(b"\r\n");
        }
        Ok(None) => {}
        Err(error) => turn.server.log(0, || format!("cannot touch: {error}")),
    }
}
