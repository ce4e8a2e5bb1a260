//! The small values that calls take and return.

use std::time::Duration;

/// The version of a key's value.
///
/// Every change of a key gives it a version larger than any it had before, also across deletion and
/// re-creation. Versions of different keys are not related. Zero is never a version of a present key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The largest version that a write may [ask for](Attributes::min_version): 2^41. Versions have 42 bits, so at
    /// least 2^41 writes are left to every key whatever is asked for. Milliseconds since 1970 fit until 2039.
    pub const MIN_VERSION_MAX: Version = Version(1 << 41);
}

/// The stable 32-bit identifier of a present key.
///
/// It stays the same as long as the key exists: through overwriting, growth and cleaning. After the
/// key is deleted the number may come to mean another key; use an [`EntryId`] where that must be noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u32);

/// A [`Uid`] with a 32-bit fingerprint of its key: access through a stale id is reported, not
/// answered with another key's value (up to a chance of one in 2^32 for each foreign key met).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

impl EntryId {
    /// The UID in the id.
    pub fn uid(self) -> Uid {
        Uid(self.0 as u32)
    }
    pub(crate) fn new(uid: Uid, fingerprint: u32) -> EntryId {
        EntryId(u64::from(uid.0) | u64::from(fingerprint) << 32)
    }
    pub(crate) fn fingerprint(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A present key by number: a plain [`Uid`], or an [`EntryId`] that notices when it is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The UID.
    pub uid: Uid,
    pub(crate) fingerprint: Option<u32>,
}

impl From<Uid> for Address {
    fn from(uid: Uid) -> Address {
        Address { uid, fingerprint: None }
    }
}

impl From<EntryId> for Address {
    fn from(id: EntryId) -> Address {
        Address { uid: id.uid(), fingerprint: Some(id.fingerprint()) }
    }
}

/// When a record expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ttl {
    /// Never.
    #[default]
    Never,
    /// This long from now (millisecond resolution; zero expires at once).
    After(Duration),
    /// At this wall-clock time, in milliseconds since 1970 (below 2^48).
    At(u64),
}

/// How long a present key still lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The time left; `None`: the key does not expire.
    pub remaining: Option<Duration>,
}

/// What a write attaches to its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// 32 bits for the caller, stored and returned untouched.
    pub flags: u32,
    /// When the record expires.
    pub ttl: Ttl,
    /// The version that the write gives the key is this or a larger one: the larger of this and the key's next.
    ///
    /// For callers with versions of their own: a time in milliseconds, the number of a change in a log, the version in
    /// another store. It applies to counters also when they exist. At most [`Version::MIN_VERSION_MAX`]; zero asks for
    /// nothing.
    pub min_version: Version,
}

impl Attributes {
    /// No flags, never expires.
    pub const NONE: Attributes = Attributes { flags: 0, ttl: Ttl::Never, min_version: Version(0) };
    /// These flags.
    pub fn flags(mut self, flags: u32) -> Attributes {
        self.flags = flags;
        self
    }
    /// This expiry.
    pub fn ttl(mut self, ttl: Ttl) -> Attributes {
        self.ttl = ttl;
        self
    }
    /// A version of at least this.
    pub fn min_version(mut self, version: Version) -> Attributes {
        self.min_version = version;
        self
    }
}

/// Everything about a present key except its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Length of the value in bytes.
    pub value_len: u64,
    /// The caller's flags.
    pub flags: u32,
    /// Marks: 32 bits that a front end sets on this value of the key (memcached's meta commands); any write of the key
    /// clears them.
    pub marks: u32,
    /// Version of this value.
    pub version: Version,
    /// Wall-clock expiry in milliseconds since 1970, if any.
    pub expires_at_ms: Option<u64>,
    /// The key's UID.
    pub uid: Uid,
}

impl Metadata {
    /// Whether two looks at a key found the same record, except that it may have been touched between them.
    pub(crate) fn is_same_but_expiry(&self, other: &Metadata) -> bool {
        (self.version, self.marks) == (other.version, other.marks)
    }
}

/// A value with what is attached to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// Everything else.
    pub metadata: Metadata,
}

/// A key with its value, from a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key.
    pub key: Vec<u8>,
    /// The value; empty when the scan was asked for keys only.
    pub value: Vec<u8>,
    /// Everything else.
    pub metadata: Metadata,
    /// The hash that the key was stored with, if the caller supplied one.
    pub supplied_hash: Option<u64>,
}

/// A key that a cache dropped to make room: see [`Engine::record_evictions`](crate::Engine::record_evictions).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evicted {
    /// The key.
    pub key: Vec<u8>,
    /// Length of its value in bytes.
    pub value_len: u64,
    /// When it would have expired, in milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
    /// The UID that it had.
    pub uid: Uid,
}

/// A write that took place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The key's UID.
    pub uid: Uid,
    /// The version that the write gave the key.
    pub version: Version,
    /// Whether the key was absent before.
    pub created: bool,
}

/// What `cas` expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected<'a> {
    /// No such key.
    Absent,
    /// The key at this version. Version 0 means "absent" where a value is to be stored, as in every language.
    Version(Version),
    /// The key with exactly this value.
    Value(&'a [u8]),
}

/// What `cas` does when it finds what it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Stores this value with no attributes.
    Set(&'a [u8]),
    /// Stores this value with these attributes.
    SetWith(&'a [u8], Attributes),
    /// Removes the key.
    Remove,
}

/// The outcome of `cas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// It was as expected, and the value was stored.
    Stored(Stored),
    /// It was as expected, and the key was removed (or was absent and to be removed).
    Removed,
    /// The key is there, but not as expected; this is its version now.
    Mismatch(Version),
    /// The key is not there.
    Absent,
}

/// What a visitor wants done with the key that it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Leave it as it is.
    Keep,
    /// Store this value, keeping the flags and the expiry that the key has (none for a new key).
    Set(Vec<u8>),
    /// The same, with a version of [at least](Attributes::min_version) this.
    SetMinVersion(Vec<u8>, Version),
    /// Store this value with these attributes.
    SetWith(Vec<u8>, Attributes),
    /// Remove it (nothing happens if it is absent).
    Remove,
}

/// What `update_with` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    /// Nothing.
    Unchanged,
    /// Stored a value.
    Stored(Stored),
    /// Removed the key.
    Removed,
}

/// How a counter call treats a missing key, and what it attaches.
///
/// `N` is what the call counts with: `u64`, `i64` or `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter<N = u64> {
    /// The value that a missing key is created with (the delta is *not* applied to it, as in memcached);
    /// `None`: a missing key is left missing.
    pub initial: Option<N>,
    /// Attached when the key is created; an existing key keeps its own.
    pub attributes: Attributes,
}

impl<N> Counter<N> {
    /// A missing counter is created with this value.
    pub const fn or_create(initial: N) -> Counter<N>
    where
        N: Copy,
    {
        Counter { initial: Some(initial), attributes: Attributes::NONE }
    }
    /// A missing counter is left missing.
    pub const EXISTING: Counter<N> = Counter { initial: None, attributes: Attributes::NONE };
}

impl<N> Default for Counter<N> {
    fn default() -> Counter<N> {
        Counter::EXISTING
    }
}

/// How a wait for a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The key has this version now.
    Changed(Version),
    /// The key is absent now.
    Removed,
    /// The key did not change within the time.
    TimedOut,
}

/// How a wait for one of several keys ended. The index is that of the first key in order that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitAnyOutcome {
    /// The key of this index has this version now.
    Changed(usize, Version),
    /// The key of this index is absent now.
    Removed(usize),
    /// No key changed within the time.
    TimedOut,
}
