//! Does an action on a store, and says what came back in the model's terms.

use super::{hash_of, Action, Hashed, Numbered, Outcome, To, Want};
use hashmere::{
    Attributes, CasOutcome, Change, Counter, Expected, Item, Key, Store, Stored, Update, Updated, Version, WriteError,
};

/// The outcome, and what the store says of a value that it stored.
pub(crate) type Done = (Outcome, Option<Stored>);

/// What the model knows of the key that the store must be told in a compare-and-set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub value: Vec<u8>,
    pub version: u64,
}

/// Does it.
///
/// # Errors
/// Those that have no outcome of their own.
pub(crate) fn perform(store: &Store, key: &[u8], action: &Action, known: &Known) -> Result<Done, WriteError> {
    Ok(match action {
        Action::Get => plain(value(store.get(key)?)),
        Action::GetInto => {
            let mut buffer = b"what was there before".to_vec();
            let found = store.get_into(key, &mut buffer)?;
            plain(value(found.map(|_| buffer)))
        }
        Action::GetItem => plain(item(store.get_item(key)?)),
        Action::View => plain(value(store.view(key)?.map(|view| view.to_vec()))),
        Action::Exists => plain(Outcome::Flag(store.contains_key(key)?)),
        Action::ValueLen => plain(store.metadata(key)?.map_or(Outcome::Absent, |meta| Outcome::Length(meta.value_len))),
        Action::Ttl => plain(match store.ttl(key)? {
            None => Outcome::Absent,
            Some(expiry) => Outcome::Expires(expiry.remaining.is_some()),
        }),
        Action::Set(bytes) => stored(store.set(key, bytes)?),
        Action::SetWith(bytes, attributes) => stored(store.set_with(key, bytes, *attributes)?),
        Action::Add(bytes, attributes) => store.add(key, bytes, *attributes)?.map_or((Outcome::Present, None), stored),
        Action::Replace(bytes, attributes) => or_absent(store.replace(key, bytes, *attributes)?),
        Action::Append(tail) => or_absent(store.append(key, tail)?),
        Action::Prepend(head) => or_absent(store.prepend(key, head)?),
        Action::Reserve(bytes, commit) => reserve(store, key, bytes, *commit)?,
        Action::Delete => plain(Outcome::Flag(store.delete(key)?)),
        Action::Take => plain(value(store.take(key)?)),
        Action::Cas(want, to) => cas(store.cas(key, expected(want, known), change(to))?),
        Action::Update(update) => updated(store.update_with(key, |_| update.clone())?),
        Action::Edit(tail) => updated(store.update_with(key, |item| edited(item, tail))?),
        Action::Incr(by, counter) => plain(number(store.incr(key, *by, *counter))?),
        Action::Decr(by, counter) => plain(number(store.decr(key, *by, *counter))?),
        Action::IncrBy(by, counter) => plain(number(store.incr_by(key, *by, *counter))?),
        Action::IncrSigned(by, counter) => plain(counted(store.incr_signed(key, *by, *counter), Outcome::Signed)?),
        Action::IncRef(by) => plain(number(store.inc_ref(key, *by).map(Some))?),
        Action::DecRef(by) => plain(number(store.dec_ref(key, *by))?),
        Action::Touch(ttl) => plain(Outcome::Flag(store.touch(key, *ttl)?)),
        Action::GetAndTouch(ttl) => plain(item(store.get_and_touch(key, *ttl)?)),
        Action::At(action) => numbered(store, key, action)?,
        Action::Hashed(action) => hashed(store, key, action)?,
    })
}

fn plain(outcome: Outcome) -> Done {
    (outcome, None)
}

fn stored(stored: Stored) -> Done {
    (Outcome::Stored { created: stored.created }, Some(stored))
}

fn or_absent(result: Option<Stored>) -> Done {
    result.map_or((Outcome::Absent, None), stored)
}

fn value(value: Option<Vec<u8>>) -> Outcome {
    value.map_or(Outcome::Absent, Outcome::Value)
}

fn item(item: Option<Item>) -> Outcome {
    item.map_or(Outcome::Absent, |item| {
        assert_eq!(item.metadata.value_len, item.value.len() as u64, "an item's length is not its value's");
        Outcome::Item(item.value, item.metadata.flags)
    })
}

fn number(result: Result<Option<u64>, WriteError>) -> Result<Outcome, WriteError> {
    counted(result, Outcome::Number)
}

fn counted<N>(result: Result<Option<N>, WriteError>, outcome: fn(N) -> Outcome) -> Result<Outcome, WriteError> {
    match result {
        Ok(number) => Ok(number.map_or(Outcome::Absent, outcome)),
        Err(WriteError::NotANumber) => Ok(Outcome::NotANumber),
        Err(WriteError::Overflow) => Ok(Outcome::Overflow),
        Err(error) => Err(error),
    }
}

fn edited(item: Option<&Item>, tail: &[u8]) -> Update {
    let mut value = item.map(|item| item.value.clone()).unwrap_or_default();
    value.extend_from_slice(tail);
    Update::Set(value)
}

fn reserve(store: &Store, key: &[u8], bytes: &[u8], commit: Option<Attributes>) -> Result<Done, WriteError> {
    let attributes = commit.unwrap_or_default();
    let mut reservation = store.reserve(key, bytes.len() as u64, attributes)?;
    assert_eq!(reservation.len(), bytes.len(), "a reservation of another length than asked");
    reservation.copy_from_slice(bytes);
    Ok(match commit {
        None => plain(Outcome::Abandoned),
        Some(_) => stored(reservation.commit()?),
    })
}

fn expected<'a>(want: &'a Want, known: &'a Known) -> Expected<'a> {
    match want {
        Want::Absent => Expected::Absent,
        Want::ThisVersion => Expected::Version(Version(known.version)),
        Want::OldVersion => Expected::Version(Version(known.version.wrapping_sub(1))),
        Want::ThisValue => Expected::Value(&known.value),
        Want::Value(value) => Expected::Value(value),
    }
}

fn change(to: &To) -> Change<'_> {
    match to {
        To::Set(value) => Change::Set(value),
        To::SetWith(value, attributes) => Change::SetWith(value, *attributes),
        To::Remove => Change::Remove,
    }
}

fn cas(result: CasOutcome) -> Done {
    match result {
        CasOutcome::Stored(done) => stored(done),
        CasOutcome::Removed => plain(Outcome::Removed),
        CasOutcome::Mismatch(_) => plain(Outcome::Mismatch),
        CasOutcome::Absent => plain(Outcome::Absent),
    }
}

fn updated(result: Updated) -> Done {
    match result {
        Updated::Unchanged => plain(Outcome::Kept),
        Updated::Stored(done) => stored(done),
        Updated::Removed => plain(Outcome::Removed),
    }
}

fn numbered(store: &Store, key: &[u8], action: &Numbered) -> Result<Done, WriteError> {
    let (Some(meta), Some(id)) = (store.metadata(key)?, store.id_of(key)?) else {
        return Ok(plain(Outcome::Absent));
    };
    let uid = meta.uid;
    assert_eq!((id.uid(), store.id_of(uid)?), (uid, Some(id)), "the id's UID");
    let by = |at: Key<'_>| -> Result<Outcome, WriteError> {
        let found = store.key_of(at)?;
        assert!(found.is_none_or(|found| found == key), "another key under this number");
        Ok(item(store.get_item(at)?))
    };
    Ok(match action {
        Numbered::GetByUid => plain(by(uid.into())?),
        Numbered::GetById => plain(by(id.into())?),
        Numbered::GetInto => {
            let mut buffer = b"before".to_vec();
            let found = store.get_into(id, &mut buffer)?;
            plain(value(found.map(|_| buffer)))
        }
        Numbered::Set(bytes) => stored(store.set(id, bytes)?),
        Numbered::Update(update) => updated(store.update_with(uid, |_| update.clone())?),
        Numbered::Delete => plain(if store.delete(id)? { Outcome::Removed } else { Outcome::Absent }),
        Numbered::GetStale => {
            assert!(store.delete(key)?);
            plain(by(id.into())?)
        }
        Numbered::SetStale(bytes) => {
            assert!(store.delete(uid)? && !store.delete(id)?);
            match store.set(id, bytes) {
                Err(WriteError::Stale) => plain(Outcome::Stale),
                other => panic!("a write through a stale entry id returned {other:?}"),
            }
        }
    })
}

fn hashed(store: &Store, key: &[u8], action: &Hashed) -> Result<Done, WriteError> {
    let named = Key::with_hash(key, hash_of(key));
    let none = Attributes::NONE;
    Ok(match action {
        Hashed::Get => plain(value(store.get(named)?)),
        Hashed::GetInto => {
            let mut buffer = b"before".to_vec();
            let found = store.get_into(named, &mut buffer)?;
            plain(value(found.map(|_| buffer)))
        }
        Hashed::Exists => plain(Outcome::Flag(store.contains_key(named)?)),
        Hashed::Set(bytes) => stored(store.set(named, bytes)?),
        Hashed::Add(bytes) => store.add(named, bytes, none)?.map_or((Outcome::Present, None), stored),
        Hashed::Delete => plain(Outcome::Flag(store.delete(named)?)),
        Hashed::Incr(by, counter) => plain(number(store.incr(named, *by, *counter))?),
        Hashed::Edit(tail) => updated(store.update_with(named, |item| edited(item, tail))?),
        Hashed::SetByUid(bytes) => match store.metadata(named)?.map(|meta| meta.uid) {
            Some(uid) => stored(store.set(uid, bytes)?),
            None => plain(Outcome::Absent),
        },
        Hashed::DeleteByUid => match store.metadata(named)?.map(|meta| meta.uid) {
            Some(uid) => plain(if store.delete(uid)? { Outcome::Removed } else { Outcome::Absent }),
            None => plain(Outcome::Absent),
        },
        Hashed::OtherHash => plain(value(store.get(Key::with_hash(key, hash_of(key) ^ 0x0123_4567_89ab_cdef))?)),
    })
}

/// The counters that an action may create a key with, for the generator.
pub(crate) fn counter(initial: Option<u64>, attributes: Attributes) -> Counter {
    Counter { initial, attributes }
}
