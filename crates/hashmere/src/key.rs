//! What names a key in a call.

use hashmere_engine::{Address, EntryId, FileEngine, KeyHash, Uid};

/// What names a key in a call: its bytes, its bytes with a hash of the caller's, or a number by which a present key is
/// found.
///
/// Calls take `impl Into<Key>`: anything that refers to bytes (`&[u8]`, `b"key"`, `"key"`, `&vec`), an [`EntryId`], a
/// [`Uid`], or [`Key::with_hash`].
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("hashmere-key-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// use hashmere::{Key, Store};
///
/// let store = Store::open(dir.join("keys.mere"))?;
/// store.set("name", b"Ada")?;
/// let id = store.id_of("name")?.ok_or("there is no such key")?;
/// assert_eq!(store.get(id)?.as_deref(), Some(&b"Ada"[..]));
///
/// store.set(Key::with_hash(b"name", 7), b"another key")?;
/// assert_eq!(store.len(), 2);
/// # drop(store);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **By number** ([`Id`](Key::Id), [`Uid`](Key::Uid)) a call finds the key without hashing or comparing it. It acts on
/// that very entry: never on another key, and never does it create the key again. Where the entry is gone, a call that
/// does nothing for an absent key does nothing and says so (`None`, `false`), and one that would create the key fails
/// with [`WriteError::Stale`](crate::WriteError::Stale).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// The key.
    Bytes(&'a [u8]),
    /// The key, and a hash that the caller has already.
    ///
    /// A key stored with a hash is found with the same hash only; the same bytes stored without one, or with another,
    /// are another key. Equal hashes of different keys are handled, but many of them cost time. Such a record takes
    /// eight bytes more.
    Hashed(&'a [u8], u64),
    /// An entry that is noticed to be gone.
    Id(EntryId),
    /// An entry; after its key was deleted the UID may come to mean another key.
    Uid(Uid),
}

impl<'a> Key<'a> {
    /// A key with the caller's hash: see [`Key::Hashed`].
    pub fn with_hash(key: &'a (impl AsRef<[u8]> + ?Sized), hash: u64) -> Key<'a> {
        Key::Hashed(key.as_ref(), hash)
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> From<&'a T> for Key<'a> {
    #[inline(always)]
    fn from(bytes: &'a T) -> Key<'a> {
        Key::Bytes(bytes.as_ref())
    }
}

impl From<EntryId> for Key<'_> {
    fn from(id: EntryId) -> Self {
        Key::Id(id)
    }
}

impl From<Uid> for Key<'_> {
    fn from(uid: Uid) -> Self {
        Key::Uid(uid)
    }
}

/// How a call reaches its key. Not reachable from other crates.
pub enum Name<'a> {
    /// By its bytes and its hash.
    Key(&'a [u8], KeyHash),
    /// By the number of its entry.
    At(Address),
}

impl<'a> Name<'a> {
    /// The name of a key. For bytes nothing is left of this in the compiled call.
    #[inline(always)]
    pub(crate) fn of(engine: &FileEngine, key: impl Into<Key<'a>>) -> Name<'a> {
        match key.into() {
            Key::Bytes(key) => Name::Key(key, engine.hash(key)),
            Key::Hashed(key, hash) => Name::Key(key, engine.supplied(hash)),
            Key::Id(id) => Name::At(id.into()),
            Key::Uid(uid) => Name::At(uid.into()),
        }
    }
}
