//! Numbers as Redis reads and writes them.

use crate::commands::marks;
use hashmere_engine::{CounterKind, Signed};

/// A signed number in its shortest form: no plus, no leading zero, no space. What does not fit 64 bits is none.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut number = 0u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Nineteen digits fit.
        number = number * 10 + u64::from(digit);
    }
    if negative {
        0i64.checked_sub_unsigned(number)
    } else {
        i64::try_from(number).ok()
    }
}

/// The number of a counter. Spaces behind it, which memcached's `decr` leaves, do not count.
pub fn counter(value: &[u8]) -> Option<i64> {
    integer(value).or_else(|| integer(value.trim_ascii_end()).filter(|_| value.ends_with(b" ")))
}

/// The counters of Redis, as a kind of counter of the store.
#[derive(Clone, Copy, Debug)]
pub struct RedisInteger;

impl CounterKind for RedisInteger {
    type Number = i64;
    #[inline(always)]
    fn parse(&self, text: &[u8], padded: bool) -> Option<i64> {
        // These are in the shortest form if they are numbers at all, and are read eight digits at a time.
        let is_short = match text {
            [b'1'..=b'9'] | [b'1'..=b'9', .., b'0'..=b'9'] | [b'-', b'1'..=b'9'] => true,
            [b'-', b'1'..=b'9', .., b'0'..=b'9'] => true,
            _ => padded,
        };
        if is_short {
            Signed.parse(text, padded)
        } else {
            counter(text)
        }
    }
    #[inline(always)]
    fn format(&self, number: i64, buffer: &mut [u8; 20]) -> usize {
        Signed.format(number, buffer)
    }
    fn zero(&self) -> i64 {
        0
    }
    #[inline(always)]
    fn is_absent(&self, marks: u32) -> bool {
        marks::is_hidden(marks)
    }
}

/// Appends a number.
#[inline]
pub fn write(number: i64, out: &mut Vec<u8>) {
    if (0..10).contains(&number) {
        out.push(b'0' + number as u8);
        return;
    }
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_their_only_form() {
        for number in [0, 1, -1, 9, 10, i64::MAX, i64::MIN] {
            let mut text = Vec::new();
            write(number, &mut text);
            assert_eq!(integer(&text), Some(number));
        }
        for bad in ["", "-", "-0", "+1", "01", " 1", "1 ", "1x", "9223372036854775808", "-9223372036854775809"] {
            assert_eq!(integer(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(integer(b"99999999999999999999"), None);
        let texts = [
            "",
            "-",
            "0",
            "00",
            "-0",
            "7",
            "-7",
            "07",
            "-07",
            "1 2",
            "12 ",
            "12\n",
            "-12  ",
            " 12",
            "12345678",
            "1234567a",
            "123456789012",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "1-2",
            "--2",
            "1.5",
            "1e3",
        ];
        for text in texts.map(str::as_bytes) {
            assert_eq!(RedisInteger.parse(text, false), counter(text), "{text:?}");
        }
        assert_eq!((RedisInteger.parse(b"0007", true), RedisInteger.parse(b"-007", true)), (Some(7), Some(-7)));
        assert_eq!((counter(b"9  "), counter(b"9"), counter(b"  "), counter(b" 9")), (Some(9), Some(9), None, None));
    }
}
