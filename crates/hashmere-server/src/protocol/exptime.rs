//! Expiry as clients write it.

use hashmere::Ttl;
use std::time::Duration;

/// A number up to this is a time from now, above it a point in time.
const RELATIVE_MAX: i64 = 60 * 60 * 24 * 30;

/// 0 is never; below zero is at once; up to 30 days counts from now; the rest is seconds since 1970.
pub fn ttl(exptime: i64) -> Ttl {
    match u64::try_from(exptime) {
        Ok(0) => Ttl::Never,
        Ok(seconds) if exptime <= RELATIVE_MAX => Ttl::After(Duration::from_secs(seconds)),
        Ok(seconds) => Ttl::At(seconds.saturating_mul(1000)),
        Err(_) => Ttl::At(1),
    }
}

/// Seconds that are left of an expiry, rounded up: what begins with 10 shows 10. `None`: it never expires.
pub fn remaining(expires_at_ms: Option<u64>, now_ms: u64) -> Option<u64> {
    expires_at_ms.map(|at| at.saturating_sub(now_ms).div_ceil(1000))
}

/// What an expiry comes to in milliseconds since 1970.
pub fn deadline(ttl: Ttl, now_ms: u64) -> Option<u64> {
    match ttl {
        Ttl::Never => None,
        Ttl::After(time) => Some(now_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))),
        Ttl::At(at) => Some(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_kinds_of_expiry() {
        assert_eq!(ttl(0), Ttl::Never);
        assert_eq!(ttl(-1), Ttl::At(1));
        assert_eq!(ttl(2_592_000), Ttl::After(Duration::from_secs(2_592_000)));
        assert_eq!(ttl(2_592_001), Ttl::At(2_592_001_000));
        assert_eq!(ttl(4_102_444_800), Ttl::At(4_102_444_800_000));
        assert_eq!((remaining(None, 5), remaining(Some(1500), 1000), remaining(Some(5), 9)), (None, Some(1), Some(0)));
    }
}
