//! The kinds of counters: which numbers they have, and how a text spells them.

use crate::engine::write::decimal::{self, DIGITS};

/// A kind of counter. What the calls that count have in common is [`tick`](crate::Engine::tick).
pub trait CounterKind {
    /// Its numbers.
    type Number: Copy;
    /// The number that a text spells. In a store of fixed lengths it is `padded`: there are zeros in front of it.
    fn parse(&self, text: &[u8], padded: bool) -> Option<Self::Number>;
    /// Writes a number to the end of `buffer`. Returns where it begins.
    fn format(&self, number: Self::Number, buffer: &mut [u8; DIGITS]) -> usize;
    /// What a counter is that was deleted.
    fn zero(&self) -> Self::Number;
    /// Whether a record with these marks counts as an absent key.
    #[inline(always)]
    fn is_absent(&self, _marks: u32) -> bool {
        false
    }
}

/// From 0 up to 2^64 - 1. Spaces may be behind the digits, as memcached leaves them after a decrement, and zeros before
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned;

impl CounterKind for Unsigned {
    type Number = u64;
    #[inline(always)]
    fn parse(&self, text: &[u8], _padded: bool) -> Option<u64> {
        decimal::parse_padded(text)
    }
    #[inline(always)]
    fn format(&self, number: u64, buffer: &mut [u8; DIGITS]) -> usize {
        decimal::format(number, buffer)
    }
    fn zero(&self) -> u64 {
        0
    }
}

/// From -2^63 up to 2^63 - 1: the same, with a minus before those below zero.
#[derive(Clone, Copy, Debug)]
pub struct Signed;

impl CounterKind for Signed {
    type Number = i64;
    #[inline(always)]
    fn parse(&self, text: &[u8], _padded: bool) -> Option<i64> {
        match text {
            [b'-', digits @ ..] => 0i64.checked_sub_unsigned(decimal::parse_padded(digits)?),
            digits => i64::try_from(decimal::parse_padded(digits)?).ok(),
        }
    }
    #[inline(always)]
    fn format(&self, number: i64, buffer: &mut [u8; DIGITS]) -> usize {
        let at = decimal::format(number.unsigned_abs(), buffer);
        if number >= 0 {
            return at;
        }
        // The longest has nineteen digits.
        let at = at.saturating_sub(1);
        buffer[at] = b'-';
        at
    }
    fn zero(&self) -> i64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers_round_trip() {
        let mut numbers = vec![0, 1, -1, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1];
        for power in (0..19).map(|n| 10i64.pow(n)) {
            numbers.extend([power, -power, power - 1, 1 - power]);
        }
        for number in numbers {
            let mut buffer = [b'x'; DIGITS];
            let at = Signed.format(number, &mut buffer);
            assert_eq!(std::str::from_utf8(&buffer[at..]).unwrap(), number.to_string());
            assert_eq!(Signed.parse(&buffer[at..], false), Some(number));
        }
        let parse = |text: &[u8]| Signed.parse(text, false);
        assert_eq!((parse(b"-007"), parse(b"-7 "), parse(b"-0")), (Some(-7), Some(-7), Some(0)));
    }

    #[test]
    fn what_is_no_signed_number_is_refused() {
        for text in ["", "-", "--1", "+1", "- 1", "1-", "-1a", "9223372036854775808", "-9223372036854775809", "-1.5"] {
            assert_eq!(Signed.parse(text.as_bytes(), false), None, "{text:?}");
        }
    }
}
