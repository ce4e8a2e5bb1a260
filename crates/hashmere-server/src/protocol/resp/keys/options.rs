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

/// What `SET` and `GETEX` are called with.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Only if the key is absent.
    pub absent: bool,
    /// Only if it is present.
    pub present: bool,
    /// Return the old value.
    pub get: bool,
    expires: Expires,
    /// An expiry that is to be read yet.
    said: Option<(Unit, &'a [u8])>,
}

/// How a word says a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub fn read(args: Args<'_>, first: usize, is_set: bool) -> Result<Options<'_>, Fail> {
    let mut options = Options { absent: false, present: false, get: false, expires: Expires::Unsaid, said: None };
    let mut at = first;
    while at < args.count() {
        let word = args.at(at);
        let no_time = options.said.is_none() && options.expires == Expires::Unsaid;
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
                let same = options.said.is_some_and(|(before, _)| before == unit);
                if at + 1 >= args.count() || !(no_time || same) {
                    return Err(SYNTAX.into());
                }
                options.said = Some((unit, args.at(at + 1)));
                at += 1;
            }
        }
        at += 1;
    }
    Ok(options)
}

impl Options<'_> {
    /// The expiry, for this command at this time.
    ///
    /// # Errors
    /// It is no number, or no time to come.
    pub fn expires(&self, command: &str, now: i64) -> Result<Expires, Fail> {
        let Some((unit, text)) = self.said else { return Ok(self.expires) };
        Ok(Expires::At(deadline(text, unit.millis, unit.absolute, now, command)?))
    }
}
