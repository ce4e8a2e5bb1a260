//! A record.

use hashmere::{Attributes, Ttl};

/// One key with all that a dump keeps of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The caller's flags.
    pub flags: u32,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
}

impl Record {
    /// The attributes to store it with; `None` if it has none.
    pub fn attributes(&self) -> Option<Attributes> {
        let ttl = self.expires_at_ms.map_or(Ttl::Never, Ttl::At);
        (self.flags != 0 || ttl != Ttl::Never).then_some(Attributes { flags: self.flags, ttl, ..Attributes::NONE })
    }
}
