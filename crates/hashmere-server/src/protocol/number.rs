//! Decimal numbers as memcached's parser takes them, and as it writes them.

/// An unsigned number: digits, a plus sign allowed. What does not fit 64 bits is none.
#[inline]
pub fn unsigned(text: &[u8]) -> Option<u64> {
    digits(text.strip_prefix(b"+").unwrap_or(text))
}

/// An unsigned number: digits and nothing else. What does not fit 64 bits is none.
#[inline]
pub fn digits(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    // Nineteen digits cannot overflow.
    if digits.len() <= 19 {
        let mut number = 0u64;
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + u64::from(digit);
        }
        return Some(number);
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A signed number.
#[inline]
pub fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) if !digits.starts_with(b"+") => 0i64.checked_sub_unsigned(unsigned(digits)?),
        Some(_) => None,
        None => i64::try_from(unsigned(text)?).ok(),
    }
}

/// A signed number without a plus sign.
#[inline]
pub fn signed_digits(text: &[u8]) -> Option<i64> {
    if text.starts_with(b"+") {
        return None;
    }
    signed(text)
}

/// A number of at most 32 bits.
#[inline]
pub fn unsigned32(text: &[u8]) -> Option<u32> {
    u32::try_from(unsigned(text)?).ok()
}

/// Appends a number.
#[inline]
pub fn write(number: u64, out: &mut Vec<u8>) {
    if number < 10 {
        out.push(b'0' + number as u8);
        return;
    }
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_their_bounds() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"18446744073709551616"), None);
        assert_eq!(unsigned(b"00000000000000000000000007"), Some(7));
        assert_eq!(unsigned(b"+7"), Some(7));
        for bad in ["", "+", "-1", "1x", "x", " 1", "++1", "0x10"] {
            assert_eq!(unsigned(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!((digits(b"7"), digits(b"+7"), digits(b"")), (Some(7), None, None));
        assert_eq!((signed_digits(b"-7"), signed_digits(b"+7"), signed_digits(b"-+7")), (Some(-7), None, None));
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"9223372036854775808"), None);
        assert_eq!((signed(b"-1"), signed(b"-+1"), signed(b"--1")), (Some(-1), None, None));
        assert_eq!((unsigned32(b"4294967295"), unsigned32(b"4294967296")), (Some(u32::MAX), None));
    }

    #[test]
    fn written_numbers_read_back() {
        for number in [0, 9, 10, 12345, u64::MAX] {
            let mut out = Vec::new();
            write(number, &mut out);
            assert_eq!(unsigned(&out), Some(number));
        }
    }
}
