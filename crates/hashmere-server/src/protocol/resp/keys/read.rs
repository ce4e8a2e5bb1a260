//! Reading values.

use super::options::{self, Expires};
use super::{integer, ttl_at, Fail, Keys};
use crate::protocol::resp::parse::Args;
use crate::protocol::resp::reply::Reply;
use hashmere::Ttl;

/// `GET key`.
pub fn get(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let item = keys.read(args.at(1))?;
    reply.bulk_or_null(item.as_ref().map(|item| &item.value[..]));
    Ok(())
}

/// `MGET key ...`
pub fn mget(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    reply.array(args.count() - 1);
    for key in args.from(1) {
        let item = keys.read(key)?;
        reply.bulk_or_null(item.as_ref().map(|item| &item.value[..]));
    }
    Ok(())
}

/// `STRLEN key`.
pub fn strlen(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let item = keys.read(args.at(1))?;
    reply.integer(item.map_or(0, |item| item.value.len() as i64));
    Ok(())
}

/// `GETRANGE key start end`: below zero counts from the end.
pub fn getrange(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let (start, end) = (integer(args.at(2))?, integer(args.at(3))?);
    let item = keys.read(args.at(1))?;
    let value = item.as_ref().map_or(&[][..], |item| &item.value);
    reply.bulk(range(value, start, end));
    Ok(())
}

fn range(value: &[u8], start: i64, end: i64) -> &[u8] {
    let len = value.len() as i64;
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    match start > end || len == 0 {
        true => &[],
        false => &value[start as usize..=end as usize],
    }
}

/// `GETDEL key`.
pub fn getdel(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let item = keys.read(args.at(1))?;
    if item.is_some() {
        keys.delete(args.at(1))?;
    }
    reply.bulk_or_null(item.as_ref().map(|item| &item.value[..]));
    Ok(())
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]`.
pub fn getex(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let options = options::read(args, 2, false)?;
    let item = keys.read(args.at(1))?;
    if let Some(item) = &item {
        match options.expires("getex", keys.now)? {
            Expires::At(at) if at <= keys.now => keys.delete(args.at(1))?,
            Expires::At(at) => keys.expire(args.at(1), ttl_at(at))?,
            Expires::Never if item.metadata.expires_at_ms.is_some() => keys.expire(args.at(1), Ttl::Never)?,
            _ => {}
        }
    }
    reply.bulk_or_null(item.as_ref().map(|item| &item.value[..]));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_as_redis_reads_them() {
        for (start, end, expected) in [
            (0, -1, "abcd"),
            (1, 2, "bc"),
            (-2, -1, "cd"),
            (-100, 1, "ab"),
            (2, 1, ""),
            (-1, -2, ""),
            (4, 9, ""),
            (3, i64::MAX, "d"),
            (i64::MIN, i64::MIN, "a"),
            (0, i64::MIN, "a"),
        ] {
            assert_eq!(range(b"abcd", start, end), expected.as_bytes(), "{start} {end}");
        }
        assert_eq!(range(b"", 0, -1), b"");
    }
}
