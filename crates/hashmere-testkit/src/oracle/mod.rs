//! The model that a store is compared with: a `HashMap`, every operation of the API on it, a generator of random
//! operations, and a driver that does each on both and compares what comes back, and regularly everything.

mod driver;
mod generate;
mod model;
mod perform;
mod whole;

pub use driver::{Driver, Plan};

use hashmere::{Attributes, Counter, Ttl, Update};

/// An operation on one key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Get,
    GetInto,
    GetItem,
    View,
    Exists,
    ValueLen,
    Ttl,
    Set(Vec<u8>),
    SetWith(Vec<u8>, Attributes),
    Add(Vec<u8>, Attributes),
    Replace(Vec<u8>, Attributes),
    Append(Vec<u8>),
    Prepend(Vec<u8>),
    /// Reserve, fill in place; commit (with the attributes) or abandon.
    Reserve(Vec<u8>, Option<Attributes>),
    Delete,
    Take,
    Cas(Want, To),
    /// What the visitor returns.
    Update(Update),
    /// The visitor returns what it sees with these bytes after it.
    Edit(Vec<u8>),
    Incr(u64, Counter),
    Decr(u64, Counter),
    IncrBy(i64, Counter),
    IncrSigned(i64, Counter<i64>),
    IncRef(u64),
    DecRef(u64),
    Touch(Ttl),
    GetAndTouch(Ttl),
    At(Numbered),
    Hashed(Hashed),
}

/// What a compare-and-set expects, in words; the driver looks up what that is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Want {
    Absent,
    ThisVersion,
    OldVersion,
    ThisValue,
    Value(Vec<u8>),
}

/// What a compare-and-set changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum To {
    Set(Vec<u8>),
    SetWith(Vec<u8>, Attributes),
    Remove,
}

/// Operations by number; the number of the key is looked up first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Numbered {
    GetByUid,
    GetById,
    GetInto,
    Set(Vec<u8>),
    Update(Update),
    Delete,
    /// Delete the key, then use the handle that it had.
    GetStale,
    SetStale(Vec<u8>),
}

/// Operations with a caller-supplied hash, on keys of their own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Hashed {
    Get,
    GetInto,
    Exists,
    Set(Vec<u8>),
    Add(Vec<u8>),
    Delete,
    Incr(u64, Counter),
    Edit(Vec<u8>),
    SetByUid(Vec<u8>),
    DeleteByUid,
    /// Look for the key with another hash: not there.
    OtherHash,
}

/// An operation on many keys or on the whole store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Whole {
    GetMany(Vec<Vec<u8>>),
    GetManyWith(Vec<Vec<u8>>),
    SetMany(Vec<(Vec<u8>, Vec<u8>)>),
    DeleteMany(Vec<Vec<u8>>),
    ScanPrefix(Vec<u8>),
    ScanGlob(Vec<u8>),
    Random,
    Clear,
    Maintain,
    Reopen,
    /// Close every handle, then open again.
    CloseAndOpen,
}

/// What came back, without the numbers that only the store chooses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Not there.
    Absent,
    Value(Vec<u8>),
    Item(Vec<u8>, u32),
    Length(u64),
    Flag(bool),
    Stored {
        created: bool,
    },
    /// add: it was present.
    Present,
    Number(u64),
    Signed(i64),
    Mismatch,
    Removed,
    Kept,
    Abandoned,
    NotANumber,
    Overflow,
    Stale,
    /// Whether it expires.
    Expires(bool),
}

/// The hash that goes with a key of the family with caller-supplied hashes: few, so that they collide.
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    let sum: u64 = key.iter().map(|&byte| u64::from(byte)).sum();
    match sum % 3 {
        0 => 0,
        1 => (sum % 8) << 60,
        _ => u64::MAX - sum % 5,
    }
}
