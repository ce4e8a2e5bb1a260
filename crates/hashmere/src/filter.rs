//! Where a scan starts, and which keys it returns.

use crate::{glob, ReadError};

/// What a call that takes a [`Cursor`] needs to continue: a plain number, valid in any process and
/// after any pause. Zero starts a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cursor(pub u64);

impl Cursor {
    /// Where a scan starts.
    pub const START: Cursor = Cursor(0);
}

/// Which keys a scan returns, and whether it reads their values.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub(crate) prefix: Vec<u8>,
    pub(crate) glob: Option<Vec<u8>>,
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
            return Err(ReadError::BadPattern { pattern: String::from_utf8_lossy(&pattern).into(), reason });
        }
        self.glob = Some(pattern);
        Ok(self)
    }
    /// Leave the values out.
    pub fn keys_only(mut self) -> Filter {
        self.keys_only = true;
        self
    }
}
