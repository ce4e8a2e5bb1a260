//! Which of two writes of a key is the later one.

use std::fmt;
use std::str::FromStr;

/// Who wrote a key last: the larger one wins. The default one is none: every other one wins against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The version that the key had where it was written.
    pub version: u64,
    /// The store where that was: the first word of its UUID. 0: of a clear.
    pub site: u64,
}

impl Stamp {
    /// Between this one and what is written next at either site: for what a clear took.
    pub(super) fn cleared(self) -> Stamp {
        Stamp { version: self.version + 1, site: 0 }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:016x}", self.version, self.site)
    }
}

/// A text that is no stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadStamp;

impl FromStr for Stamp {
    type Err = BadStamp;

    /// Version and site, as `Display` writes them.
    fn from_str(text: &str) -> Result<Stamp, BadStamp> {
        let (version, site) = text.split_once(' ').ok_or(BadStamp)?;
        let is_decimal = version.bytes().all(|byte| byte.is_ascii_digit());
        let is_hex = site.len() == 16 && site.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_decimal || !is_hex {
            return Err(BadStamp);
        }
        let version = version.parse().ok().filter(|version| *version < 1 << 42).ok_or(BadStamp)?;
        Ok(Stamp { version, site: u64::from_str_radix(site, 16).map_err(|_| BadStamp)? })
    }
}
