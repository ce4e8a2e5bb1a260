//! What happens to one key: whichever side wrote it last has it, and the other gets it.

use super::sidecar::{Entry, Name, Stamp};
use super::Side;
use crate::error::{At, ReplicaError};
use hashmere::{Attributes, CasOutcome, Change, Expected, Item, Ttl, Version};

/// How often a key is looked at again that was changed or expired in between. What was written comes as an event again.
const ROUNDS: usize = 4;

/// A key on one side.
struct Found {
    item: Option<Item>,
    stamp: Stamp,
}

fn find(side: &Side, name: &Name) -> Result<Found, ReplicaError> {
    let item = side.store.get_item(name.key()).at(&side.store)?;
    let entry = side.sidecar.get(name)?.unwrap_or_default();
    let stamp = match &item {
        Some(item) if item.metadata.version.0 == entry.applied && !entry.is_tombstone => entry.stamp,
        Some(item) => Stamp { version: item.metadata.version.0, site: side.site },
        None if entry.is_tombstone => entry.stamp,
        None => Stamp::default(),
    };
    Ok(Found { item, stamp })
}

/// Makes a key what it is on the side that wrote it last. `touch`: where its expiry was changed.
pub(super) fn merge(sides: &[Side; 2], name: &Name, touch: [bool; 2]) -> Result<(), ReplicaError> {
    for _ in 0..ROUNDS {
        let found = [find(&sides[0], name)?, find(&sides[1], name)?];
        let winner = match found[0].stamp.cmp(&found[1].stamp) {
            std::cmp::Ordering::Greater => 0,
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => match touched(&found, touch) {
                Some(winner) => winner,
                None => return Ok(()),
            },
        };
        let (from, to) = (&found[winner], &found[1 - winner]);
        let expected = to.item.as_ref().map(|item| item.metadata.version);
        let is_done = match &from.item {
            Some(item) => apply(&sides[1 - winner], name, item, from.stamp, expected)?,
            None => mark_dead(&sides[1 - winner], name, from.stamp, expected)?,
        };
        if is_done {
            return Ok(());
        }
    }
    Ok(())
}

/// Deletes a key that one side had when it was cleared on the other side too.
pub(super) fn clear(cleared: &Side, other: &Side, name: &Name) -> Result<(), ReplicaError> {
    if cleared.store.metadata(name.key()).at(&cleared.store)?.is_some() {
        // Written again since: the merge finds which one is later.
        return Ok(());
    }
    let found = find(other, name)?;
    let Some(item) = &found.item else { return Ok(()) };
    let entry = cleared.sidecar.get(name)?.unwrap_or_default();
    let was_there = found.stamp.site == cleared.site || entry.stamp == found.stamp && !entry.is_tombstone;
    if was_there {
        // Above what it deletes, and below what is written at the cleared side from now on.
        let stamp = Stamp { version: found.stamp.version + 1, site: 0 };
        mark_dead(other, name, stamp, Some(item.metadata.version))?;
    }
    Ok(())
}

/// Of one value with two expiries: the side that changed it; of both, the later one.
fn touched(found: &[Found; 2], touch: [bool; 2]) -> Option<usize> {
    let [Some(a), Some(b)] = [&found[0].item, &found[1].item] else { return None };
    let (a, b) = (a.metadata.expires_at_ms, b.metadata.expires_at_ms);
    match touch {
        _ if a == b => None,
        [true, false] => Some(0),
        [false, true] => Some(1),
        _ => Some(usize::from(a.unwrap_or(u64::MAX) < b.unwrap_or(u64::MAX))),
    }
}

fn least(stamp: Stamp) -> Version {
    Version(stamp.version.min(Version::MIN_VERSION_MAX.0))
}

/// Stores what the other side has. `false`: the key is not as expected any more.
fn apply(side: &Side, name: &Name, item: &Item, stamp: Stamp, expected: Option<Version>) -> Result<bool, ReplicaError> {
    let ttl = item.metadata.expires_at_ms.map_or(Ttl::Never, Ttl::At);
    let attributes = Attributes { flags: item.metadata.flags, ttl, min_version: least(stamp) };
    write(side, name, Change::SetWith(&item.value, attributes), (stamp, false), expected)
}

/// Deletes what the other side has deleted. A value that has expired replaces it: for readers the key is gone at that
/// moment, and its versions here go on above that of the delete.
pub(super) fn mark_dead(
    side: &Side,
    name: &Name,
    stamp: Stamp,
    expected: Option<Version>,
) -> Result<bool, ReplicaError> {
    let attributes = Attributes { flags: 0, ttl: Ttl::At(1), min_version: least(stamp) };
    write(side, name, Change::SetWith(b"", attributes), (stamp, true), expected)
}

fn write(
    side: &Side,
    name: &Name,
    change: Change<'_>,
    (stamp, is_tombstone): (Stamp, bool),
    expected: Option<Version>,
) -> Result<bool, ReplicaError> {
    let before = side.sidecar.get(name)?.unwrap_or_default();
    // Said first: what is found at this key after a kill is what was applied, if the feed says that we wrote it.
    let pending = Entry { pending: stamp, is_pending_tombstone: is_tombstone, ..before };
    side.sidecar.put(name, &pending)?;
    let expected = expected.map_or(Expected::Absent, Expected::Version);
    let outcome = side.store.cas(name.key(), expected, change).at(&side.store)?;
    let position = hashmere_feed::info(&side.store).map_or(0, |info| info.position);
    let after = match outcome {
        CasOutcome::Stored(stored) => {
            Entry { stamp, applied: stored.version.0, is_tombstone, position, ..Entry::default() }
        }
        _ => before,
    };
    side.sidecar.put(name, &after)?;
    Ok(matches!(outcome, CasOutcome::Stored(_)))
}
