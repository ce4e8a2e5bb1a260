//! Events in pieces that are applied as one, and how that is done.

use hashmere::{Attributes, Key, Store, Ttl, Version, WriteBatch, WriteError};
use hashmere_feed::{Change, Event, Token, Value};
use hashmere_os::clock;

/// Operations and bytes of a piece; a transaction is not divided.
const OPERATIONS: usize = 512;
const BYTES: usize = 1 << 20;

/// Events that are applied as one.
#[derive(Debug)]
pub(crate) struct Piece<'e> {
    pub changes: Vec<&'e Change>,
    /// Behind them.
    pub end: Token,
}

/// What is to be done with events, in order.
#[derive(Debug)]
pub(crate) enum Step<'e> {
    Reset,
    Changes(Piece<'e>),
    Clear(Token),
    Synced(Token),
}

/// Whether a change is the last of its transaction that the feed delivers: its token is behind that.
pub(crate) fn ends_unit(change: &Change) -> bool {
    change.transaction.is_none_or(|part| change.token.position() > part.id)
}

/// The position behind a change, and behind the transaction that it is part of.
fn end_of(change: &Change) -> u64 {
    change.transaction.map_or(change.token.position(), |part| part.id + 1)
}

/// Divides events into steps. Changes up to the position `whole` are one piece, however many there are.
pub(crate) fn steps<'e>(events: &'e [Event], whole: Option<u64>) -> Vec<Step<'e>> {
    let mut steps = Vec::new();
    let mut piece: Option<Piece<'e>> = None;
    let (mut bytes, mut must_end) = (0, false);
    for event in events {
        match event {
            Event::Read(change) | Event::Change(change) => {
                let is_whole = whole.is_some_and(|whole| end_of(change) <= whole);
                if must_end && !is_whole {
                    steps.extend(piece.take().map(Step::Changes));
                }
                let at = piece.get_or_insert_with(|| Piece { changes: Vec::new(), end: change.token });
                if at.changes.is_empty() {
                    bytes = 0;
                }
                bytes += change.key.len() + change.value.bytes().map_or(0, <[u8]>::len);
                at.changes.push(change);
                at.end = change.token;
                must_end = ends_unit(change) && (is_whole || at.changes.len() >= OPERATIONS || bytes >= BYTES);
                continue;
            }
            _ => steps.extend(piece.take().map(Step::Changes)),
        }
        must_end = false;
        match event {
            Event::Reset { .. } => steps.push(Step::Reset),
            Event::Clear { token, .. } => steps.push(Step::Clear(*token)),
            Event::Synced { token } => steps.push(Step::Synced(*token)),
            _ => {}
        }
    }
    steps.extend(piece.take().map(Step::Changes));
    steps
}

impl<'e> Piece<'e> {
    /// Two halves of it; `None`: it is one change, or one transaction.
    pub fn halves(&self) -> Option<[Piece<'e>; 2]> {
        let ends = |at: &usize| ends_unit(self.changes[at - 1]);
        let middle = self.changes.len() / 2;
        let at = (middle..self.changes.len()).find(|at| *at > 0 && ends(at));
        let at = at.or_else(|| (1..middle).rev().find(ends))?;
        let (first, second) = self.changes.split_at(at);
        let end = first.last()?.token;
        Some([Piece { changes: first.to_vec(), end }, Piece { changes: second.to_vec(), end: self.end }])
    }

    /// Applies it in one transaction; keys with hashes of the caller's by themselves.
    pub fn apply(&self, to: &Store, batch: &mut WriteBatch) -> Result<(), WriteError> {
        if let [change] = self.changes[..] {
            return apply_alone(to, change);
        }
        batch.clear();
        for change in &self.changes {
            match (change.supplied_hash, &change.value) {
                (Some(_), _) => apply_alone(to, change)?,
                (None, Value::Absent) => drop(batch.delete(&change.key)),
                (None, Value::Bytes(value)) => drop(batch.set_with(&change.key, value, attributes_of(change))),
                (None, _) if has_expired(change) => drop(batch.delete(&change.key)),
                // A later event has it.
                (None, _) => {}
            }
        }
        to.write_batch(batch).map(drop)
    }

    /// Applies a transaction that the target does not take as one, key by key.
    pub fn apply_singly(&self, to: &Store) -> Result<(), WriteError> {
        self.changes.iter().try_for_each(|change| apply_alone(to, change))
    }
}

/// The version of a target's key must not be below that of the source's.
pub(crate) fn attributes_of(change: &Change) -> Attributes {
    Attributes {
        flags: change.flags,
        ttl: change.expires_at_ms.map_or(Ttl::Never, Ttl::At),
        min_version: Version(change.version.0.min(Version::MIN_VERSION_MAX.0)),
    }
}

fn apply_alone(to: &Store, change: &Change) -> Result<(), WriteError> {
    let key = change.supplied_hash.map_or(Key::Bytes(&change.key), |hash| Key::Hashed(&change.key, hash));
    match &change.value {
        Value::Absent => to.delete(key).map(drop),
        Value::Bytes(value) => to.set_with(key, value, attributes_of(change)).map(drop),
        _ if has_expired(change) => to.delete(key).map(drop),
        _ => Ok(()),
    }
}

/// Of a change whose value could not be read any more: nothing else need have happened to the key.
fn has_expired(change: &Change) -> bool {
    change.expires_at_ms.is_some_and(|at| at <= clock::now_ms())
}
