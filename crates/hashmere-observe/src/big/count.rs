//! How many keys, and how large.

/// Keys, and the bytes of them and their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub keys: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

impl Count {
    /// One more key.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.keys += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// What is left of this without another one that is a part of it.
    pub(crate) fn without(self, part: Count) -> Count {
        Count { keys: self.keys - part.keys, bytes: self.bytes - part.bytes }
    }
}
