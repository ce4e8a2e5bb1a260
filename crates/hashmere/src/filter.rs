//! Where a scan starts, and which keys it returns.

use crate::{glob, ReadError};
use std::ops::Range;

/// The most parts that a scan is divided into.
const PARTS_MAX: u32 = 65_536;

/// What a call that takes a [`Cursor`] needs to continue: a plain number, valid in any process and
/// after any pause. Zero starts a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cursor(pub u64);

impl Cursor {
    /// Where a scan starts.
    pub const START: Cursor = Cursor(0);
}

/// Which keys a scan returns, and whether it reads their values. A key has to pass all that is set.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    prefix: Vec<u8>,
    glob: Option<Vec<u8>>,
    #[cfg(feature = "regex")]
    regex: Option<regex::bytes::Regex>,
    part: Option<Part>,
    pub(crate) keys_only: bool,
}

impl Filter {
    /// Every key, with values.
    pub fn all() -> Filter {
        Filter::default()
    }
    /// Only keys that start with these bytes.
    pub fn prefix(mut self, prefix: impl Into<Vec<u8>>) -> Filter {
        self.prefix = prefix.into();
        self
    }
    /// Only keys that match this pattern: `*` any bytes, `?` one byte, `[a-z]` and `[!a-z]` a set, `\` takes the
    /// next byte as it is.
    ///
    /// # Errors
    /// [`ReadError::BadPattern`]: a `[` without its `]`, a range that goes down (`[z-a]`), or a `\` at the end.
    pub fn glob(mut self, pattern: impl Into<Vec<u8>>) -> Result<Filter, ReadError> {
        let pattern = pattern.into();
        if let Err(reason) = glob::check(&pattern) {
            return Err(ReadError::BadPattern {
                pattern: String::from_utf8_lossy(&pattern).into(),
                reason: reason.into(),
            });
        }
        self.glob = Some(pattern);
        Ok(self)
    }
    /// Only keys in which this regular expression is found, in the syntax of the crate `regex`: `^` and `$` tie it to
    /// the ends of the key, `(?i)` ignores case, `(?-u)` takes the key as bytes and not as UTF-8. There are no
    /// back-references and no look-around, so the time that a key takes is linear in its length, whatever the
    /// expression. With the feature `regex`, which is off by default.
    ///
    /// # Errors
    /// [`ReadError::BadPattern`]: the text says what is wrong, or that the expression takes more than 10 MiB.
    #[cfg(feature = "regex")]
    pub fn regex(mut self, pattern: impl AsRef<str>) -> Result<Filter, ReadError> {
        let pattern = pattern.as_ref();
        let regex = regex::bytes::Regex::new(pattern).map_err(|error| {
            // A drawing of the place is in the lines before.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let reason = format!("an error: {}", last.strip_prefix("error: ").unwrap_or(last));
            ReadError::BadPattern { pattern: pattern.into(), reason: reason.into() }
        })?;
        self.regex = Some(regex);
        Ok(self)
    }
    /// Only keys of one of `count` parts, numbered from 0, into which the hashes are divided evenly: so several
    /// processes share a scan, each with a part and a cursor of its own. A key that exists while all the parts are
    /// scanned is returned by exactly one of them, once. Passing the keys of other parts costs nothing, except at the
    /// edges of a part.
    ///
    /// # Errors
    /// [`ReadError::BadPart`]: `index` is not below `count`, or `count` is more than 65,536.
    pub fn part(mut self, index: u32, count: u32) -> Result<Filter, ReadError> {
        if index >= count || count > PARTS_MAX {
            return Err(ReadError::BadPart { index, count, limit: PARTS_MAX });
        }
        self.part = Some(Part { index: index.into(), count: count.into() });
        Ok(self)
    }
    /// Leave the values out.
    pub fn keys_only(mut self) -> Filter {
        self.keys_only = true;
        self
    }

    /// Whether a key passes, but for its hash.
    pub(crate) fn passes(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix)
            && self.glob.as_ref().is_none_or(|pattern| glob::matches(pattern, key))
            && self.finds(key)
    }

    #[cfg(feature = "regex")]
    fn finds(&self, key: &[u8]) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(key))
    }

    #[cfg(not(feature = "regex"))]
    fn finds(&self, _: &[u8]) -> bool {
        true
    }

    /// One of `count` parts of what this filter lets pass.
    pub(crate) fn subdivided(&self, index: u64, count: u64) -> Filter {
        let whole = self.part.unwrap_or(Part { index: 0, count: 1 });
        let part = Part { index: whole.index * count + index, count: whole.count * count };
        Filter { part: Some(part), ..self.clone() }
    }

    /// The reversed hash bits that pass, of `bits` of them.
    pub(crate) fn range(&self, bits: u32) -> Range<u32> {
        let Some(part) = self.part else { return 0..1 << bits };
        let bound = |n: u64| ((n << bits) / part.count) as u32;
        bound(part.index)..bound(part.index + 1)
    }
}

/// A part of all hashes: a range of them, not of leaves, which may split while scans of two parts are at their edges.
#[derive(Clone, Copy, Debug)]
struct Part {
    index: u64,
    count: u64,
}
