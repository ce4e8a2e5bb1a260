//! Numbers as Redis reads and writes them.

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
        assert_eq!((counter(b"9  "), counter(b"9"), counter(b"  "), counter(b" 9")), (Some(9), Some(9), None, None));
    }
}
