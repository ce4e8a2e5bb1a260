//! One key's value under another key.

use super::{attributes_of, integer, Fail, Keys, NOT_AN_INTEGER, NO_SUCH_KEY, SYNTAX};
use crate::protocol::resp::parse::Args;
use crate::protocol::resp::reply::Reply;

/// `RENAME key to`.
pub fn rename(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    move_to(keys, args, false)?;
    reply.ok();
    Ok(())
}

/// `RENAMENX key to`.
pub fn renamenx(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let moved = move_to(keys, args, true)?;
    reply.integer(moved.into());
    Ok(())
}

fn move_to(keys: &mut Keys<'_, '_>, args: Args<'_>, only_absent: bool) -> Result<bool, Fail> {
    let (from, to) = (args.at(1), args.at(2));
    let item = keys.item(from)?.ok_or(NO_SUCH_KEY)?;
    if from == to {
        return Ok(!only_absent);
    }
    if only_absent && keys.item(to)?.is_some() {
        return Ok(false);
    }
    keys.put(to, &item.value, attributes_of(&item))?;
    keys.delete(from)?;
    Ok(true)
}

/// `COPY key to [DB 0] [REPLACE]`.
pub fn copy(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let (from, to) = (args.at(1), args.at(2));
    let (mut at, mut replace) = (3, false);
    while at < args.count() {
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"replace" => replace = true,
            b"db" if at + 1 < args.count() => {
                at += 1;
                let number = integer(args.at(at))?;
                if i32::try_from(number).is_err() {
                    return Err(NOT_AN_INTEGER.into());
                }
                if number != 0 {
                    return Err("ERR DB index is out of range".into());
                }
            }
            _ => return Err(SYNTAX.into()),
        }
        at += 1;
    }
    if from == to {
        return Err("ERR source and destination objects are the same".into());
    }
    let Some(item) = keys.item(from)? else {
        reply.integer(0);
        return Ok(());
    };
    let free = replace || keys.item(to)?.is_none();
    if free {
        keys.put(to, &item.value, attributes_of(&item))?;
    }
    reply.integer(free.into());
    Ok(())
}
