//! The options of `SET` and `GETEX`.

use super::{integer, Fail, SYNTAX};
use crate::protocol::resp::parse::Args;

/// When a key is to expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expires {
    /// Nothing was said.
    Unsaid,
    /// `KEEPTTL`.
    Keep,
    /// `PERSIST`.
    Never,
    /// At this time, in milliseconds since 1970.
    At(i64),
}

/// What `SET` and `GETEX` are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Only if the key is absent.
    pub absent: bool,
    /// Only if it is present.
    pub present: bool,
    /// Return the old value.
    pub get: bool,
    /// The expiry.
    pub expires: Expires,
    /// The expiry was said as a time, not as a distance.
    pub is_absolute: bool,
}

/// How a word says a time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unit {
    millis: bool,
    absolute: bool,
}

fn unit(word: &[u8]) -> Option<Unit> {
    let (millis, absolute) = match word.to_ascii_lowercase().as_slice() {
        b"ex" => (false, false),
        b"px" => (true, false),
        b"exat" => (false, true),
        b"pxat" => (true, true),
        _ => return None,
    };
    Some(Unit { millis, absolute })
}

/// Milliseconds since 1970 that an argument means. It must be above zero.
pub fn deadline(text: &[u8], millis: bool, absolute: bool, now: i64, command: &str) -> Result<i64, Fail> {
    let number = integer(text)?;
    let invalid = || Fail::Say(format!("ERR invalid expire time in '{command}' command").into());
    if number <= 0 {
        return Err(invalid());
    }
    let time = if millis { Some(number) } else { number.checked_mul(1000) };
    let time = if absolute { time } else { time.and_then(|time| time.checked_add(now)) };
    time.ok_or_else(invalid)
}

/// Reads the options from this argument on. `is_set`: of `SET`, else of `GETEX`.
pub fn read(args: Args<'_>, first: usize, is_set: bool, now: i64) -> Result<Options, Fail> {
    let mut options =
        Options { absent: false, present: false, get: false, expires: Expires::Unsaid, is_absolute: false };
    let mut said: Option<(Unit, &[u8])> = None;
    let mut at = first;
    while at < args.count() {
        let word = args.at(at);
        let no_time = said.is_none() && options.expires == Expires::Unsaid;
        match word.to_ascii_lowercase().as_slice() {
            b"nx" if is_set && !options.present => options.absent = true,
            b"xx" if is_set && !options.absent => options.present = true,
            b"get" if is_set => options.get = true,
            b"keepttl" if is_set && (no_time || options.expires == Expires::Keep) => options.expires = Expires::Keep,
            b"persist" if !is_set && (no_time || options.expires == Expires::Never) => {
                options.expires = Expires::Never;
            }
            _ => {
                let unit = unit(word).ok_or(SYNTAX)?;
                let same = said.is_some_and(|(before, _)| before == unit);
                if at + 1 >= args.count() || !(no_time || same) {
                    return Err(SYNTAX.into());
                }
                said = Some((unit, args.at(at + 1)));
                at += 1;
            }
        }
        at += 1;
    }
    if let Some((unit, text)) = said {
        let command = if is_set { "set" } else { "getex" };
        options.expires = Expires::At(deadline(text, unit.millis, unit.absolute, now, command)?);
        options.is_absolute = unit.absolute;
    }
    Ok(options)
}
