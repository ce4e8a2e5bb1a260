//! Storing values.

use super::options::{self, deadline, Expires};
use super::{attributes_of, ttl_at, Fail, Keys};
use crate::protocol::resp::parse::Args;
use crate::protocol::resp::reply::Reply;
use hashmere::{Attributes, Ttl};

/// `SET key value [options]`.
pub fn set(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let options = options::read(args, 3, true)?;
    let expires = options.expires("set", keys.now)?;
    let (key, value) = (args.at(1), args.at(2));
    let old = match options.get {
        true => keys.read(key)?,
        false => keys.item(key)?,
    };
    if options.absent && old.is_some() || options.present && old.is_none() {
        match (options.get, &old) {
            (true, Some(old)) => reply.bulk(&old.value),
            _ => reply.null(),
        }
        return Ok(());
    }
    let ttl = match expires {
        Expires::At(at) => ttl_at(at),
        Expires::Keep => old.as_ref().map_or(Ttl::Never, |old| attributes_of(old).ttl),
        Expires::Unsaid | Expires::Never => Ttl::Never,
    };
    keys.put(key, value, Attributes::NONE.ttl(ttl))?;
    match options.get {
        true => reply.bulk_or_null(old.as_ref().map(|old| &old.value[..])),
        false => reply.ok(),
    }
    Ok(())
}

/// `SETNX key value`.
pub fn setnx(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let absent = keys.item(args.at(1))?.is_none();
    if absent {
        keys.put(args.at(1), args.at(2), Attributes::NONE)?;
    }
    reply.integer(absent.into());
    Ok(())
}

/// `SETEX key seconds value`.
pub fn setex(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let at = deadline(args.at(2), false, false, keys.now, "setex")?;
    keys.put(args.at(1), args.at(3), Attributes::NONE.ttl(ttl_at(at)))?;
    reply.ok();
    Ok(())
}

/// `PSETEX key milliseconds value`.
pub fn psetex(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let at = deadline(args.at(2), true, false, keys.now, "psetex")?;
    keys.put(args.at(1), args.at(3), Attributes::NONE.ttl(ttl_at(at)))?;
    reply.ok();
    Ok(())
}

/// `GETSET key value`.
pub fn getset(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let old = keys.read(args.at(1))?;
    keys.put(args.at(1), args.at(2), Attributes::NONE)?;
    reply.bulk_or_null(old.as_ref().map(|old| &old.value[..]));
    Ok(())
}
