//! Numbers as people read them.

use bytesize::ByteSize;
use indicatif::HumanCount;

/// A number with its digits in groups of three: `1,234,567`.
pub fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// `1 line`, `2 lines`.
pub fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A number of bytes: `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    ByteSize(bytes).display().iec().to_string()
}

/// A rate: the number of a second.
pub fn per_second(number: u64, seconds: f64) -> String {
    grouped((number as f64 / seconds.max(0.001)) as u64)
}
