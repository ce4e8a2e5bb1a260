//! Decimal numbers of up to 20 digits. Those of up to eight, which is what most counters have, are read and written
//! eight digits at a time, in one word.

/// Bytes of the longest number: twenty digits, or a sign and nineteen.
pub const DIGITS: usize = 20;

/// Each byte of a word.
const fn bytes(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The number that a text of digits alone spells; `None` if it is none, or larger than 64 bits.
#[inline(always)]
pub(super) fn parse(text: &[u8]) -> Option<u64> {
    match text.len() {
        0 => None,
        1..=8 => parse_short(text),
        _ => parse_long(text),
    }
}

/// The same with trailing spaces allowed.
#[inline(always)]
pub(super) fn parse_padded(text: &[u8]) -> Option<u64> {
    parse(text).or_else(|| parse_trimmed(text))
}

#[cold]
fn parse_trimmed(text: &[u8]) -> Option<u64> {
    parse(text.trim_ascii_end())
}

/// One to eight digits: neighbours become numbers of two digits, these of four, these of eight.
#[inline(always)]
fn parse_short(text: &[u8]) -> Option<u64> {
    // The last digit is in the highest byte, with zeros in front.
    let word = match text.try_into() {
        Ok(eight) => u64::from_le_bytes(eight),
        Err(_) => text.iter().fold(bytes(b'0'), |word, byte| word >> 8 | u64::from(*byte) << 56),
    };
    let digits = word ^ bytes(b'0');
    // Above 9 the sum has a bit of the upper half, or the digit had one.
    if (digits | digits.wrapping_add(bytes(6))) & bytes(0xf0) != 0 {
        return None;
    }
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff)
}

#[cold]
fn parse_long(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|d| *d < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Writes a number to the end of `buffer`. Returns where it begins.
#[inline(always)]
pub(super) fn format(number: u64, buffer: &mut [u8; DIGITS]) -> usize {
    if number >= 100_000_000 {
        return format_long(number, buffer);
    }
    let (high, low) = (number / 10_000, number % 10_000);
    let fours = high | low << 32;
    // Divisions by 100 and by 10 of each part, as multiplications that are exact below 10,000 and below 100.
    let hundreds = (fours.wrapping_mul(10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | fours.wrapping_sub(hundreds.wrapping_mul(100)) << 16;
    let tens = (pairs.wrapping_mul(103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | pairs.wrapping_sub(tens.wrapping_mul(10)) << 8;
    buffer[DIGITS - 8..].copy_from_slice(&(digits | bytes(b'0')).to_le_bytes());
    // The last digit stays, also of zero.
    DIGITS - 8 + ((digits | 1 << 56).trailing_zeros() / 8) as usize
}

#[cold]
fn format_long(mut number: u64, buffer: &mut [u8; DIGITS]) -> usize {
    let mut at = DIGITS;
    while number != 0 {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(number: u64) {
        let mut buffer = [b'x'; DIGITS];
        let start = format(number, &mut buffer);
        let text = std::str::from_utf8(&buffer[start..]).unwrap();
        assert_eq!(text, number.to_string());
        assert_eq!(parse(text.as_bytes()), Some(number));
        // With zeros in front, as in a store of fixed lengths.
        for digits in text.len()..=DIGITS {
            assert_eq!(parse(format!("{number:0digits$}").as_bytes()), Some(number), "{number} in {digits} digits");
        }
    }

    #[test]
    fn numbers_round_trip() {
        (0..if cfg!(miri) { 120 } else { 120_000 }).for_each(round_trip);
        for power in (0..20).map(|n| 10u64.pow(n)) {
            [power - 1, power, power + 1, power / 2, power.saturating_mul(9)].into_iter().for_each(round_trip);
        }
        [u64::MAX, u64::MAX - 1, 1 << 63, 99_999_999, 100_000_000].into_iter().for_each(round_trip);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", " ", "-1", "+1", "1 ", " 1", "1a", "0x1", "12345678a", "18446744073709551616", "99999999999999999999"]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        // Each byte in each place of each length.
        for len in 1..=9 {
            for place in 0..len {
                for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
                    let mut text = vec![b'5'; len];
                    text[place] = byte;
                    assert_eq!(parse(&text), None, "{text:?}");
                }
            }
        }
    }
}
