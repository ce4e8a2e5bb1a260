//! The names of those who hold a readers-writer lock or permits of a semaphore, in the value of its key: who holds it,
//! and who died with it. Who holds it is decided by leases, not by these names.

use crate::error::QueueError;
use crate::mutex::Holder;
use hashmere_engine::{ClientId, SharedEngine, Update, Version};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Words of a holder in the value.
const WORDS: usize = 3;

/// Why a semaphore is refused.
const OTHER_PERMITS: QueueError =
    QueueError::Broken("there is a semaphore of another number of permits under this key, with holders");

/// Tells holders of this process apart. Relaxed: only its value matters.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// One holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    client: u64,
    /// Tells those of one client apart.
    number: u64,
    /// What it holds: [`READ`], [`WRITE`], or the index of a permit.
    pub(crate) holds: u64,
}

/// What a reader and a writer hold.
pub(crate) const READ: u64 = 0;
pub(crate) const WRITE: u64 = 1;

/// The first word of the value: what it is the key of.
pub(crate) const RWLOCK: u64 = 1;
/// Of a semaphore, with how many permits.
pub(crate) const fn semaphore(permits: u32) -> u64 {
    2 | (permits as u64) << 32
}

/// The holders that a key names.
#[derive(Clone, Debug)]
pub(crate) struct Holders {
    pub(crate) store: Arc<SharedEngine>,
    pub(crate) key: Vec<u8>,
    pub(crate) head: u64,
}

fn encode(head: u64, names: &[Name]) -> Vec<u8> {
    let list = names.iter().flat_map(|name| [name.client, name.number, name.holds]);
    [head].into_iter().chain(list).flat_map(u64::to_le_bytes).collect()
}

/// The first word of a value, and the names. Semaphores may differ in their permits.
fn decode(head: u64, value: &[u8]) -> Result<(u64, Vec<Name>), QueueError> {
    let word = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let words: Vec<u64> = value.chunks_exact(8).map(word).collect();
    match words.split_first() {
        Some((&found, list)) if value.len() % 8 == 0 && list.len() % WORDS == 0 && found as u32 == head as u32 => {
            Ok((found, list.chunks_exact(WORDS).map(|w| Name { client: w[0], number: w[1], holds: w[2] }).collect()))
        }
        _ => Err(QueueError::Broken("the key of a readers-writer lock or semaphore holds something else")),
    }
}

impl Holders {
    /// Who is named, and in which version of the key.
    pub(crate) fn read(&self) -> Result<(Option<Version>, Vec<Name>), QueueError> {
        let Some(item) = self.store.get_item(&self.key)? else { return Ok((None, Vec::new())) };
        let (found, names) = decode(self.head, &item.value)?;
        if found != self.head {
            for name in &names {
                if !self.is_gone(name)? {
                    return Err(OTHER_PERMITS);
                }
            }
        }
        Ok((Some(item.metadata.version), names))
    }

    /// Whether the client of a name is dead or has closed the store.
    fn is_gone(&self, name: &Name) -> Result<bool, QueueError> {
        let client = ClientId::unpack(name.client);
        Ok(client.map_or(Ok(true), |client| self.store.is_gone(client))?)
    }

    /// Names this client as a holder. Those whose client is gone are taken off, but for those that `stays` says to
    /// keep; returns what those who are gone held.
    pub(crate) fn add(&self, holds: u64, stays: impl Fn(&Name) -> bool) -> Result<(Name, Vec<u64>), QueueError> {
        let client = self.store.client()?.pack();
        let mine = Name { client, number: NUMBER.fetch_add(1, Ordering::Relaxed), holds };
        let mut dead = Vec::new();
        for name in self.read()?.1 {
            if self.is_gone(&name)? {
                dead.push(name);
            }
        }
        let mut gone = Vec::new();
        // One that dies from here on is noticed by the next one.
        self.change(|names| {
            gone = names.iter().filter(|name| dead.contains(name)).map(|name| name.holds).collect();
            names.retain(|name| stays(name) || !dead.contains(name));
            names.push(mine);
        })?;
        Ok((mine, gone))
    }

    /// Takes a name off. A name that went with the key is none.
    pub(crate) fn remove(&self, mine: &Name) -> Result<(), QueueError> {
        self.change(|names| names.retain(|name| name != mine))
    }

    fn change(&self, mut act: impl FnMut(&mut Vec<Name>)) -> Result<(), QueueError> {
        let mut outcome = Ok(());
        self.store.update_with(&self.key, |item| {
            let before = item.map_or(Ok((self.head, Vec::new())), |item| decode(self.head, &item.value));
            let (update, result) = match before {
                Ok((found, before)) => self.changed(found, before, &mut act),
                Err(error) => (Update::Keep, Err(error)),
            };
            outcome = result;
            update
        })?;
        outcome
    }

    fn changed(
        &self,
        found: u64,
        before: Vec<Name>,
        act: &mut impl FnMut(&mut Vec<Name>),
    ) -> (Update, Result<(), QueueError>) {
        let mut names = before.clone();
        act(&mut names);
        if names == before {
            return (Update::Keep, Ok(()));
        }
        // Beside those of a semaphore that has another number of permits there is none of this one.
        if found != self.head && names.len() > 1 {
            return (Update::Keep, Err(OTHER_PERMITS));
        }
        (if names.is_empty() { Update::Remove } else { Update::Set(encode(self.head, &names)) }, Ok(()))
    }

    /// The live processes among the holders that `which` says.
    pub(crate) fn named(&self, which: impl Fn(&Name) -> bool) -> Result<Vec<Holder>, QueueError> {
        let mut all = Vec::new();
        let item = self.store.get_item(&self.key)?;
        let names = item.map_or(Ok(Vec::new()), |item| decode(self.head, &item.value).map(|(_, names)| names))?;
        for name in names.iter().filter(|name| which(name)) {
            if self.is_gone(name)? {
                continue;
            }
            let process = ClientId::unpack(name.client).and_then(|client| self.store.process_of(client));
            all.extend(process.map(|(pid, name)| Holder { pid, name }));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_nonsense_is_refused() {
        let names: Vec<Name> = (1..4).map(|i| Name { client: i, number: i * 7, holds: i % 2 }).collect();
        for head in [RWLOCK, semaphore(1), semaphore(1024)] {
            for n in 0..=names.len() {
                assert_eq!(decode(head, &encode(head, &names[..n])).unwrap(), (head, names[..n].to_vec()));
            }
            let whole = encode(head, &names);
            for bad in [&b""[..], b"1234567", &[0; 8], &[0; 32], &whole[1..], &whole[..whole.len() - 8]] {
                assert!(decode(head, bad).is_err(), "{bad:?}");
            }
        }
        for (one, other) in [(RWLOCK, semaphore(1)), (semaphore(1), RWLOCK)] {
            assert!(decode(one, &encode(other, &names)).is_err());
        }
    }
}
