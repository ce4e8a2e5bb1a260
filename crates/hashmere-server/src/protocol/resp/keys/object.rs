//! What is known about a key.

use super::{integer, Fail, Keys, SYNTAX};
use crate::protocol::resp::number;
use crate::protocol::resp::parse::Args;
use crate::protocol::resp::reply::Reply;
use hashmere::Item;

/// Longest value that Redis keeps within its object.
const EMBEDDED_MAX: usize = 44;

/// `TYPE key`.
pub fn kind(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    reply.simple(if keys.item(args.at(1))?.is_some() { "string" } else { "none" });
    Ok(())
}

fn about(
    keys: &mut Keys<'_, '_>,
    args: Args<'_>,
    reply: &mut Reply<'_>,
    tell: impl FnOnce(&Keys<'_, '_>, &Item, &mut Reply<'_>),
) -> Result<(), Fail> {
    match keys.item(args.at(2))? {
        Some(item) => tell(keys, &item, reply),
        None => reply.null(),
    }
    Ok(())
}

/// `OBJECT ENCODING key`.
pub fn encoding(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    about(keys, args, reply, |_, item, reply| {
        reply.bulk(match item.value.len() {
            _ if number::integer(&item.value).is_some() => b"int",
            0..=EMBEDDED_MAX => b"embstr",
            _ => b"raw",
        });
    })
}

/// `OBJECT IDLETIME key`: seconds since the last access over a socket.
pub fn idletime(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    about(keys, args, reply, |keys, item, reply| {
        let last = keys.server().access.lookup(item.metadata.uid).last;
        reply.integer((keys.now / 1000).saturating_sub(last as i64).max(0));
    })
}

/// `OBJECT REFCOUNT key`.
pub fn refcount(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    about(keys, args, reply, |_, _, reply| reply.integer(1))
}

/// `OBJECT FREQ key`.
pub fn freq(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    about(keys, args, reply, |_, _, reply| {
        reply.error(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        );
    })
}

/// `MEMORY USAGE key [SAMPLES count]`: bytes of the record in the file.
pub fn memory(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    for at in (3..args.count()).step_by(2) {
        if !args.is(at, "samples") || at + 1 >= args.count() {
            return Err(SYNTAX.into());
        }
        if integer(args.at(at + 1))? < 0 {
            return Err(SYNTAX.into());
        }
    }
    let key = args.at(2);
    about(keys, args, reply, |_, item, reply| {
        // Header, expiry, and flags with marks: a word each; key and value together end at a word.
        let meta = &item.metadata;
        let words = 1 + u64::from(meta.expires_at_ms.is_some()) + u64::from(meta.flags | meta.marks != 0);
        let bytes = (key.len() as u64 + meta.value_len).next_multiple_of(8);
        reply.integer((8 * words + bytes) as i64);
    })
}
