//! Sums of decimal fractions, exact: what Redis computes in 80 bits and shows with 17 digits behind the point.

use crate::error::WriteError;

/// Longest text of a number.
const TEXT_MAX: usize = 5 << 10;
/// Digits behind the point.
const SHOWN: usize = 17;
/// Largest exponent: a little less than that of 80 bits.
const EXPONENT_MAX: i32 = 4931;

/// A decimal fraction: `0.digits` times ten to the power of `point`; or infinite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    infinite: bool,
    digits: Vec<u8>,
    point: i32,
}

fn parse(text: &[u8]) -> Option<Decimal> {
    if text.is_empty() || text.len() > TEXT_MAX {
        return None;
    }
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
        return Some(Decimal { negative, infinite: true, ..Decimal::default() });
    }
    let exponent_at = rest.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = rest.split_at(exponent_at.unwrap_or(rest.len()));
    let exponent: i32 = match exponent.split_first() {
        None => 0,
        Some((_, digits)) => std::str::from_utf8(digits).ok()?.parse().ok()?,
    };
    let point_at = mantissa.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = mantissa.split_at(point_at.unwrap_or(mantissa.len()));
    let fraction = fraction.strip_prefix(b".").unwrap_or(fraction);
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let point = exponent.checked_add(whole.len() as i32)?.checked_sub(zeros as i32)?;
    let digits: Vec<u8> = digits[zeros..].iter().map(|digit| digit - b'0').collect();
    if digits.is_empty() {
        return Some(Decimal { negative, ..Decimal::default() });
    }
    match point {
        // Beyond what a number may be: an error there, and nothing here.
        point if point > EXPONENT_MAX + 1 => None,
        point if point < -EXPONENT_MAX => Some(Decimal { negative, ..Decimal::default() }),
        _ => Some(Decimal { negative, infinite: false, digits, point }),
    }
}

/// The digit at a place: 1 is the first behind the point, 0 the one before it.
fn digit(number: &Decimal, place: i32) -> u8 {
    usize::try_from(place - 1 + number.point).ok().and_then(|at| number.digits.get(at)).copied().unwrap_or(0)
}

/// The sum of two decimal fractions, as text: rounded to 17 digits behind the point, half away from zero, without an
/// exponent and without zeros at the end. Both may have an exponent.
///
/// # Errors
/// [`WriteError::NotANumber`]: one of them is none. [`WriteError::Overflow`]: one of them is infinite.
pub fn add_fractions(a: &[u8], b: &[u8]) -> Result<String, WriteError> {
    let (Some(a), Some(b)) = (parse(a), parse(b)) else { return Err(WriteError::NotANumber) };
    if a.infinite || b.infinite {
        return Err(WriteError::Overflow);
    }
    let last = |number: &Decimal| number.digits.len() as i32 - number.point;
    let first = 1 - a.point.max(b.point).max(0) - 1;
    // One digit more than is shown decides how it is rounded.
    let end = last(&a).max(last(&b)).clamp(0, SHOWN as i32 + 1);
    let signed = |number: &Decimal, place| {
        let digit = i32::from(digit(number, place));
        if number.negative {
            -digit
        } else {
            digit
        }
    };
    // From the last place to the first; places are signed until it is known which sign the sum has.
    let mut places: Vec<i32> = (first..=end).map(|place| signed(&a, place) + signed(&b, place)).collect();
    let negative = places.iter().find(|digit| **digit != 0).is_some_and(|digit| *digit < 0);
    if negative {
        places.iter_mut().for_each(|digit| *digit = -*digit);
    }
    if end as usize > SHOWN {
        let up = places.pop().is_some_and(|digit| digit >= 5);
        if let Some(digit) = places.last_mut() {
            *digit += i32::from(up);
        }
    }
    let mut carry = 0;
    for digit in places.iter_mut().rev() {
        let sum = *digit + carry;
        (*digit, carry) = (sum.rem_euclid(10), sum.div_euclid(10));
    }
    Ok(text(&places, end.min(SHOWN as i32) as usize, negative))
}

/// The shortest text of a number; `what` says which one is refused.
fn text_of(number: f64, what: &'static str) -> Result<String, WriteError> {
    match number.is_finite() {
        true => Ok(number.to_string()),
        false => Err(WriteError::InvalidState(what)),
    }
}

/// What a value and a step come to: the text and the number next to it.
fn sum(value: &[u8], step: &[u8]) -> Result<(String, f64), WriteError> {
    let text = add_fractions(value, step)?;
    // Every text of a sum is one of a number.
    let number: f64 = text.parse().map_err(|_| WriteError::NotANumber)?;
    if number.is_infinite() {
        return Err(WriteError::Overflow);
    }
    Ok((text, number))
}

/// What `incr_float` adds to a counter, and what an absent one becomes.
#[derive(Clone, Debug)]
pub struct FractionStep {
    by: String,
    initial: Option<(String, f64)>,
}

impl FractionStep {
    /// Adds the shortest text of `by`; an absent counter becomes `initial`, or stays absent.
    ///
    /// # Errors
    /// [`WriteError::InvalidState`]: one of them is NaN or infinite.
    pub fn new(by: f64, initial: Option<f64>) -> Result<FractionStep, WriteError> {
        let by = text_of(by, "a floating-point step is NaN or infinite; give a finite one")?;
        let initial = initial.map(|initial| {
            let text = text_of(initial, "the initial value of a counter is NaN or infinite; give a finite one")?;
            sum(b"0", text.as_bytes())
        });
        Ok(FractionStep { by, initial: initial.transpose()? })
    }

    /// What follows a value: its text, and the number next to that. `None`: the key is absent, and stays so.
    ///
    /// # Errors
    /// [`WriteError::NotANumber`]; [`WriteError::Overflow`]: the sum is beyond the numbers of an `f64`.
    pub fn next(&self, value: Option<&[u8]>) -> Result<Option<(String, f64)>, WriteError> {
        match value {
            Some(value) => sum(value, self.by.as_bytes()).map(Some),
            None => Ok(self.initial.clone()),
        }
    }
}

/// Digits as text; this many of them are behind the point.
fn text(places: &[i32], behind: usize, negative: bool) -> String {
    let digits: String = places.iter().map(|digit| char::from(b'0' + *digit as u8)).collect();
    let (whole, fraction) = digits.split_at(digits.len() - behind);
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if negative && !(whole == "0" && fraction.is_empty()) { "-" } else { "" };
    match fraction {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums() {
        for (a, b, sum) in [
            ("10.5", "0.1", "10.6"),
            ("0", "0", "0"),
            ("5.0e3", "2.0e2", "5200"),
            ("3", "-5", "-2"),
            ("0.1", "0.2", "0.3"),
            ("-0.5", "0.5", "0"),
            ("1e-17", "0", "0.00000000000000001"),
            ("1e-18", "0", "0"),
            ("5e-18", "0", "0.00000000000000001"),
            ("99.99", "0.01", "100"),
            ("-99.99", "-0.01", "-100"),
            ("1", "-1e-1", "0.9"),
            ("-1", "0.25", "-0.75"),
            (".5", "5.", "5.5"),
            ("+1.50", "0", "1.5"),
            ("1e20", "1", "100000000000000000001"),
            ("-0", "0", "0"),
            ("1e-9000", "2", "2"),
        ] {
            assert_eq!(add_fractions(a.as_bytes(), b.as_bytes()).unwrap(), sum, "{a} + {b}");
            assert_eq!(add_fractions(b.as_bytes(), a.as_bytes()).unwrap(), sum, "{b} + {a}");
        }
        for bad in ["", "x", " 1", "1 ", "1e", "e1", ".", "--1", "1.2.3", "nan", "1e9999"] {
            assert!(matches!(add_fractions(bad.as_bytes(), b"1"), Err(WriteError::NotANumber)), "{bad}");
            assert!(matches!(add_fractions(b"1", bad.as_bytes()), Err(WriteError::NotANumber)), "{bad}");
        }
        assert!(matches!(add_fractions(b"inf", b"1"), Err(WriteError::Overflow)));
    }
}
