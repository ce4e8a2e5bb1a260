//! The calls of a store, on a bare engine: what the public handle does on a real file.

use crate::engine::{Engine, Fetched, Found, KeyHash, Showing, Signed, Tick, Unsigned, When};
use crate::error::{ReadError, WriteError};
use crate::types::{Attributes, Counter, Item, Stored, Ttl, Update, Updated};
use hashmere_format::uid::Scan;
use hashmere_mem::{Host, Mem};

/// A key with its value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// The hash with which keys that begin with `#` are stored: all the same, so that they collide.
const COLLIDING: u64 = 42;

impl<M: Mem, H: Host> Engine<M, H> {
    /// The hash of a key of a test.
    pub(super) fn t_hash(&self, key: &[u8]) -> KeyHash {
        if key.starts_with(b"#") {
            self.supplied(COLLIDING)
        } else {
            self.hash(key)
        }
    }

    pub(super) fn t_item(&self, key: &[u8], kh: KeyHash) -> Result<Option<Item>, ReadError> {
        let mut value = Vec::new();
        match self.fetch(key, kh, &mut value, |found| self.meta_of_found(found))? {
            None => Ok(None),
            Some(Fetched::Copied(metadata)) => Ok(Some(Item { value, metadata })),
            Some(Fetched::Long) => self.t_view(key, kh),
        }
    }

    /// Reads a value under a pin.
    pub(super) fn t_view(&self, key: &[u8], kh: KeyHash) -> Result<Option<Item>, ReadError> {
        match self.show_key(key, kh) {
            Showing::Pinned(found, pin, _) => {
                let item = self.t_copy(&found);
                self.unpin(pin);
                return Ok(Some(item));
            }
            Showing::Copied(found, epoch) => {
                let item = self.t_copy(&found);
                if self.validate(&found, epoch) {
                    return Ok(Some(item));
                }
            }
            Showing::Absent => return Ok(None),
            Showing::Unsure => {}
        }
        let mut exhausted = self.access.read_only;
        loop {
            let root = self.root_word();
            let Some(found) = self.read(key, kh, |found| Ok(*found))? else { return Ok(None) };
            if exhausted || found.header.is_value_first() {
                return self.read(key, kh, |found| Ok(self.t_copy(found)));
            }
            if let Some(pin) = self.pin(found.slot_offset, found.slot, root, &mut exhausted) {
                let item = self.look_again(&found, key, kh).map(|found| self.t_copy(&found));
                self.unpin(pin);
                if item.is_some() {
                    return Ok(item);
                }
            }
        }
    }

    fn t_copy(&self, found: &Found) -> Item {
        let mut value = Vec::new();
        self.mem.append_to(found.value(), found.value_len(), &mut value);
        self.visit(found);
        Item { value, metadata: self.meta_of_found(found) }
    }

    pub(super) fn t_get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.t_item(key, self.t_hash(key))?.map(|item| item.value))
    }

    /// Reads several keys, looked up ahead.
    pub(super) fn t_get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, ReadError> {
        let all = self.look_ahead(keys.iter().copied());
        let get = |(key, ahead): (&&[u8], &_)| {
            let mut value = b"what was there".to_vec();
            let start = value.len();
            if self.fetch_ahead(key, (&all, ahead), &mut value) {
                return Ok(Some(value.split_off(start)));
            }
            assert_eq!(value, b"what was there");
            self.t_get(key)
        };
        keys.iter().zip(all.each()).map(get).collect()
    }

    pub(super) fn t_put(
        &self,
        key: &[u8],
        value: &[u8],
        with: Attributes,
        when: When,
    ) -> Result<Option<Stored>, WriteError> {
        let mut writer = self.writer()?;
        let stored = self.store(&mut writer, (key, self.t_hash(key)), value, with, when)?;
        Ok(stored.then_some(writer.stored))
    }

    pub(super) fn t_set(&self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        self.t_put(key, value, Attributes::NONE, When::Always).map(|stored| assert!(stored.is_some()))
    }

    pub(super) fn t_del(&self, key: &[u8]) -> Result<bool, WriteError> {
        let mut writer = self.writer()?;
        self.remove(&mut writer, key, self.t_hash(key), None)
    }

    pub(super) fn t_incr(&self, key: &[u8], by: u64, initial: Option<u64>) -> Result<Option<u64>, WriteError> {
        let mut writer = self.writer()?;
        let counter = Counter { initial, attributes: Attributes::NONE };
        self.tick(&mut writer, (key, self.t_hash(key)), &Unsigned, counter, |n| Ok(Tick::Set(n.wrapping_add(by))))
    }

    pub(super) fn t_incr_signed(&self, key: &[u8], by: i64, initial: Option<i64>) -> Result<Option<i64>, WriteError> {
        let counter = Counter { initial, attributes: Attributes::NONE };
        let add = |n: i64| n.checked_add(by).map(Tick::Set).ok_or(WriteError::Overflow);
        self.tick(&mut *self.writer()?, (key, self.t_hash(key)), &Signed, counter, add)
    }

    pub(super) fn t_append(&self, key: &[u8], tail: &[u8]) -> Result<Updated, WriteError> {
        let kh = self.t_hash(key);
        self.update(key, kh, &mut || self.t_item(key, kh), &mut |item| {
            Ok(item.map_or(Update::Keep, |item| Update::Set([&item.value, tail].concat())))
        })
    }

    /// Sets an expiry, in place if the record has a word for it. `false`: the key is absent.
    pub(super) fn t_touch(&self, key: &[u8], ttl: Ttl) -> Result<bool, WriteError> {
        let kh = self.t_hash(key);
        loop {
            let done = self.touch_in_place(&mut *self.writer()?, key, kh, self.deadline(ttl), None)?;
            if let Some(present) = done {
                return Ok(present);
            }
            let Some(item) = self.t_item(key, kh)? else { return Ok(false) };
            if self.refresh(&mut *self.writer()?, key, kh, &item, self.deadline(ttl))? {
                return Ok(true);
            }
        }
    }

    pub(super) fn t_clear(&self) -> Result<(), WriteError> {
        let mut writer = self.writer()?;
        self.clear(&mut writer)
    }

    pub(super) fn t_compact(&self) -> Result<u64, WriteError> {
        let mut writer = self.writer()?;
        self.compact(&mut writer)
    }

    /// Every pair, as a scan returns them.
    pub(super) fn t_scan(&self) -> Result<Vec<Pair>, ReadError> {
        let mut pairs = Vec::new();
        let mut at = Scan::START;
        while at.tree < 2 {
            let (next, pair) = self.t_scan_step(at)?;
            at = next;
            pairs.extend(pair);
        }
        Ok(pairs)
    }

    /// One step of a scan, with the pair that it met.
    pub(super) fn t_scan_step(&self, at: Scan) -> Result<(Scan, Option<Pair>), ReadError> {
        let root = self.root_word();
        let step = self.scan_step(root, at, &mut { usize::MAX })?;
        let mut pair = None;
        let mut entry = step.entry;
        while let Some((uid, slot_offset, slot)) = entry {
            let read = self.read_slot(root, uid, slot_offset, slot, |found| {
                let mut key = Vec::new();
                self.mem.append_to(found.key(), found.key_len(), &mut key);
                Ok((!self.has_expired(found)).then(|| (key, self.t_copy(found).value)))
            })?;
            if let Some(read) = read {
                pair = read;
                break;
            }
            // It moved or was overwritten: look at what the place holds now.
            let now = self.slot_of_uid(root, uid)?.filter(|_| self.root_word() == root);
            entry = now.map(|(slot_offset, slot)| (uid, slot_offset, slot));
        }
        Ok((step.next, pair))
    }
}
