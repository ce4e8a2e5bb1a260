//! When keys expire.

use super::{integer, ttl_at, Fail, Keys};
use crate::protocol::resp::parse::Args;
use crate::protocol::resp::reply::Reply;
use hashmere::Ttl;

/// A time without end, as `TTL` and its like say it.
const NO_EXPIRY: i64 = -1;
/// No such key, as they say it.
const NO_KEY: i64 = -2;

/// `TTL key`: seconds, rounded.
pub fn ttl(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let now = keys.now;
    tell(keys, args, reply, |at| ((at - now).max(0) + 500) / 1000)
}

/// `PTTL key`: milliseconds.
pub fn pttl(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let now = keys.now;
    tell(keys, args, reply, |at| (at - now).max(0))
}

/// `EXPIRETIME key`: seconds since 1970.
pub fn expiretime(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    tell(keys, args, reply, |at| (at + 500) / 1000)
}

/// `PEXPIRETIME key`: milliseconds since 1970.
pub fn pexpiretime(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    tell(keys, args, reply, |at| at)
}

fn tell(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>, show: impl Fn(i64) -> i64) -> Result<(), Fail> {
    let item = keys.item(args.at(1))?;
    reply.integer(match item.map(|item| item.metadata.expires_at_ms) {
        None => NO_KEY,
        Some(None) => NO_EXPIRY,
        Some(Some(at)) => show(at as i64),
    });
    Ok(())
}

/// `PERSIST key`.
pub fn persist(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let item = keys.item(args.at(1))?;
    let expires = item.is_some_and(|item| item.metadata.expires_at_ms.is_some());
    if expires {
        keys.expire(args.at(1), Ttl::Never)?;
    }
    reply.integer(expires.into());
    Ok(())
}

/// `EXPIRE key seconds [NX | XX | GT | LT]`.
pub fn expire(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let now = keys.now;
    change(keys, args, reply, "expire", 1000, now)
}

/// `PEXPIRE key milliseconds [...]`.
pub fn pexpire(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let now = keys.now;
    change(keys, args, reply, "pexpire", 1, now)
}

/// `EXPIREAT key time [...]`: seconds since 1970.
pub fn expireat(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    change(keys, args, reply, "expireat", 1000, 0)
}

/// `PEXPIREAT key time [...]`: milliseconds since 1970.
pub fn pexpireat(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    change(keys, args, reply, "pexpireat", 1, 0)
}

/// Which keys get the new expiry.
#[derive(Clone, Copy, Debug, Default)]
struct Only {
    without: bool,
    with: bool,
    later: bool,
    earlier: bool,
}

fn only(args: Args<'_>) -> Result<Only, Fail> {
    let mut only = Only::default();
    for word in args.from(3) {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => only.without = true,
            b"xx" => only.with = true,
            b"gt" => only.later = true,
            b"lt" => only.earlier = true,
            _ => return Err(Fail::Say(format!("ERR Unsupported option {}", String::from_utf8_lossy(word)).into())),
        }
    }
    if only.without && (only.with || only.later || only.earlier) {
        return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
    }
    if only.later && only.earlier {
        return Err("ERR GT and LT options at the same time are not compatible".into());
    }
    Ok(only)
}

fn change(
    keys: &mut Keys<'_, '_>,
    args: Args<'_>,
    reply: &mut Reply<'_>,
    name: &str,
    unit: i64,
    base: i64,
) -> Result<(), Fail> {
    let only = only(args)?;
    let at = integer(args.at(2))?.checked_mul(unit).and_then(|at| at.checked_add(base));
    let at = at.ok_or_else(|| Fail::Say(format!("ERR invalid expire time in '{name}' command").into()))?;
    let Some(item) = keys.item(args.at(1))? else {
        reply.integer(0);
        return Ok(());
    };
    let now = item.metadata.expires_at_ms.map(|at| at as i64);
    let refused = only.without && now.is_some()
        || only.with && now.is_none()
        || only.later && now.is_none_or(|now| at <= now)
        || only.earlier && now.is_some_and(|now| at >= now);
    match refused {
        true => {}
        false if at <= keys.now => keys.delete(args.at(1))?,
        false => keys.expire(args.at(1), ttl_at(at))?,
    }
    reply.integer((!refused).into());
    Ok(())
}
