//! Changing a part of a value.

use super::{integer, Fail, Keys, TOO_LARGE};
use crate::protocol::resp::parse::Args;
use crate::protocol::resp::reply::Reply;

/// `APPEND key value`.
pub fn append(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let item = keys.item(args.at(1))?;
    let old = item.as_ref().map_or(&[][..], |item| &item.value);
    let value = [old, args.at(2)].concat();
    keys.change(args.at(1), item.as_ref(), &value)?;
    reply.integer(value.len() as i64);
    Ok(())
}

/// `SETRANGE key offset value`: zeros fill what lies between.
pub fn setrange(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let (key, part) = (args.at(1), args.at(3));
    let offset = u64::try_from(integer(args.at(2))?).map_err(|_| "ERR offset is out of range")?;
    let item = keys.item(key)?;
    let len = item.as_ref().map_or(0, |item| item.value.len());
    if part.is_empty() {
        reply.integer(len as i64);
        return Ok(());
    }
    let end = offset.saturating_add(part.len() as u64);
    if end > keys.value_max(key) {
        return Err(TOO_LARGE.into());
    }
    let mut value = item.as_ref().map_or_else(Vec::new, |item| item.value.clone());
    let (offset, end) = (offset as usize, end as usize);
    value.resize(len.max(end), 0);
    value[offset..end].copy_from_slice(part);
    keys.change(key, item.as_ref(), &value)?;
    reply.integer(value.len() as i64);
    Ok(())
}
