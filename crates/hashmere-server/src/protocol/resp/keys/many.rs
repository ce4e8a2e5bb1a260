//! Several keys.

use super::{Fail, Keys};
use crate::protocol::resp::parse::Args;
use crate::protocol::resp::reply::Reply;
use hashmere::Attributes;

fn pairs(args: Args<'_>, name: &str) -> Result<(), Fail> {
    match args.count() % 2 {
        0 => Err(Fail::Say(format!("ERR wrong number of arguments for '{name}' command").into())),
        _ => Ok(()),
    }
}

fn put_all(keys: &mut Keys<'_, '_>, args: Args<'_>) -> Result<(), Fail> {
    let all = (1..args.count()).step_by(2);
    // Before the first is written: what is too long for one of them is so for all.
    for at in all.clone() {
        if args.at(at + 1).len() as u64 > keys.value_max(args.at(at)) {
            return Err(super::TOO_LARGE.into());
        }
    }
    for at in all {
        keys.put(args.at(at), args.at(at + 1), Attributes::NONE)?;
    }
    Ok(())
}

/// `MSET key value ...`
pub fn mset(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    pairs(args, "mset")?;
    put_all(keys, args)?;
    reply.ok();
    Ok(())
}

/// `MSETNX key value ...`
pub fn msetnx(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    pairs(args, "msetnx")?;
    for at in (1..args.count()).step_by(2) {
        if keys.item(args.at(at))?.is_some() {
            reply.integer(0);
            return Ok(());
        }
    }
    put_all(keys, args)?;
    reply.integer(1);
    Ok(())
}

/// `DEL key ...`, `UNLINK key ...`
pub fn del(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let mut count = 0;
    for key in args.from(1) {
        count += i64::from(keys.remove(key)?);
    }
    reply.integer(count);
    Ok(())
}

/// `EXISTS key ...`, `TOUCH key ...`: a key that is named twice counts twice.
pub fn exists(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let mut count = 0;
    for key in args.from(1) {
        count += i64::from(keys.read(key)?.is_some());
    }
    reply.integer(count);
    Ok(())
}
