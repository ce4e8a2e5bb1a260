//! Counting.

use super::{integer, Fail, Keys, NOT_AN_INTEGER};
use crate::protocol::resp::number;
use crate::protocol::resp::parse::Args;
use crate::protocol::resp::reply::Reply;
use hashmere::{Item, WriteError};
use hashmere_engine::add_fractions;

/// A sum that 64 bits do not hold.
pub const OVERFLOW: &str = "ERR increment or decrement would overflow";

/// `INCR key`.
pub fn incr(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    add(keys, args, 1, reply)
}

/// `DECR key`.
pub fn decr(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    add(keys, args, -1, reply)
}

/// `INCRBY key number`.
pub fn incrby(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    add(keys, args, integer(args.at(2))?, reply)
}

/// `DECRBY key number`.
pub fn decrby(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    add(keys, args, negative(args.at(2))?, reply)
}

/// What `DECRBY` adds.
pub fn negative(text: &[u8]) -> Result<i64, Fail> {
    integer(text)?.checked_neg().ok_or(Fail::Say("ERR decrement would overflow".into()))
}

/// What a value becomes; an absent key counts as 0.
pub fn sum(value: Option<&[u8]>, by: i64) -> Result<i64, &'static str> {
    let old = value.map_or(Some(0), number::counter).ok_or(NOT_AN_INTEGER)?;
    old.checked_add(by).ok_or(OVERFLOW)
}

fn add(keys: &mut Keys<'_, '_>, args: Args<'_>, by: i64, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let item = keys.item(args.at(1))?;
    let now = sum(item.as_ref().map(|item| &item.value[..]), by)?;
    let mut text = Vec::with_capacity(20);
    number::write(now, &mut text);
    keys.change(args.at(1), item.as_ref(), &text)?;
    reply.integer(now);
    Ok(())
}

/// What a decimal fraction becomes; an absent key counts as 0.
pub fn fraction(item: Option<&Item>, by: &[u8]) -> Result<String, &'static str> {
    add_fractions(item.map_or(b"0", |item| &item.value[..]), by).map_err(|error| match error {
        WriteError::Overflow => "ERR increment would produce NaN or Infinity",
        _ => "ERR value is not a valid float",
    })
}

/// `INCRBYFLOAT key number`.
pub fn incrbyfloat(keys: &mut Keys<'_, '_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fail> {
    let item = keys.item(args.at(1))?;
    let text = fraction(item.as_ref(), args.at(2))?;
    keys.change(args.at(1), item.as_ref(), text.as_bytes())?;
    reply.bulk(text.as_bytes());
    Ok(())
}
