//! Reading into memory that the caller provides, without a `Vec`: for other languages, and for callers that allocate nothing.
//!
//! Each call copies the value if it fits, and says how long it is in any case. If it does not fit, what the buffer holds is
//! not defined.

use crate::hashed::Hashed;
use crate::{Address, Metadata, ReadError, Store, View};
use hashmere_engine::{FileEngine, Found};

impl Store {
    /// Copies the value of a key to the start of `buffer` and returns its length. If that is more than the buffer has, nothing
    /// useful was copied. `None`: no such key.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[inline]
    pub fn copy_to(&self, key: &[u8], buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let engine = self.engine();
        self.shared.copy_hashed(engine, key, engine.hash(key), buffer, |_, found| found.value_len(), |view| view.len())
    }

    /// The same, with everything else about the key; [`Metadata::value_len`] is the length.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[inline]
    pub fn copy_item_to(&self, key: &[u8], buffer: &mut [u8]) -> Result<Option<Metadata>, ReadError> {
        let engine = self.engine();
        self.shared.copy_hashed(engine, key, engine.hash(key), buffer, FileEngine::meta_of_found, View::metadata)
    }

    /// The value of what a UID or entry id names: as [`copy_item_to`](Self::copy_item_to).
    ///
    /// # Errors
    /// As [`get_at`](Self::get_at).
    pub fn copy_at_to(&self, at: impl Into<Address>, buffer: &mut [u8]) -> Result<Metadata, ReadError> {
        let engine = self.engine();
        self.shared.read_at(at.into(), |found| {
            if engine.copy_value(found, buffer) {
                engine.visit(found);
            }
            Ok(engine.meta_of_found(found))
        })
    }

    /// Copies the key that a UID or entry id names to the start of `buffer` and returns its length: as
    /// [`copy_to`](Self::copy_to).
    ///
    /// # Errors
    /// As [`get_at`](Self::get_at).
    pub fn copy_key_to(&self, at: impl Into<Address>, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let engine = self.engine();
        self.shared.read_at(at.into(), |found| {
            engine.copy_key(found, buffer);
            Ok(found.key_len())
        })
    }
}

impl Hashed<'_> {
    /// As [`Store::copy_to`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn copy_to(&self, key: &[u8], hash: u64, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let (store, engine) = (self.store(), self.store().engine());
        let length = |_: &FileEngine, found: &Found| found.value_len();
        store.shared.copy_hashed(engine, key, engine.supplied(hash), buffer, length, |view| view.len())
    }

    /// As [`Store::copy_item_to`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn copy_item_to(&self, key: &[u8], hash: u64, buffer: &mut [u8]) -> Result<Option<Metadata>, ReadError> {
        let (store, engine) = (self.store(), self.store().engine());
        store.shared.copy_hashed(engine, key, engine.supplied(hash), buffer, FileEngine::meta_of_found, View::metadata)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, Store};

    fn store(name: &str) -> Store {
        let path = std::env::temp_dir().join(format!("hashmere-copy-{name}-{}.mere", std::process::id()));
        Options::new().create_new(true).remove_on_last_close(true).open(path).expect("a new store")
    }

    #[test]
    fn a_value_is_copied_if_it_fits_and_its_length_is_told_in_any_case() {
        let store = store("lengths");
        for len in [0usize, 1, 7, 8, 63, 511, 512, 5000, 32 << 10, 32 << 10 | 1, 200_000, 1 << 20] {
            let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
            store.set(b"key", &value).unwrap();
            store.hashed().set(b"key", 77, &value).unwrap();
            let handle = store.id_of(b"key").unwrap().unwrap();
            for room in [0, len.saturating_sub(1), len, len + 5] {
                let mut buffer = vec![0xee; room];
                let fits = room >= len;
                let holds = |found: usize, buffer: &mut [u8]| {
                    assert_eq!(found, len);
                    assert!(!fits || buffer[..len] == value && buffer[len..].iter().all(|b| *b == 0xee));
                    buffer.fill(0xee);
                };
                holds(store.copy_to(b"key", &mut buffer).unwrap().unwrap(), &mut buffer);
                let meta = store.copy_item_to(b"key", &mut buffer).unwrap().unwrap();
                assert_eq!(Some(meta), store.metadata(b"key").unwrap());
                holds(meta.value_len as usize, &mut buffer);
                holds(store.copy_at_to(handle, &mut buffer).unwrap().value_len as usize, &mut buffer);
                holds(store.copy_at_to(handle.uid(), &mut buffer).unwrap().value_len as usize, &mut buffer);
                holds(store.hashed().copy_to(b"key", 77, &mut buffer).unwrap().unwrap(), &mut buffer);
                let meta = store.hashed().copy_item_to(b"key", 77, &mut buffer).unwrap().unwrap();
                holds(meta.value_len as usize, &mut buffer);
            }
        }
    }

    #[test]
    fn absent_keys_and_keys_of_numbers() {
        let store = store("absent");
        let mut buffer = [0; 16];
        assert_eq!(store.copy_to(b"no", &mut buffer).unwrap(), None);
        assert_eq!(store.copy_item_to(b"no", &mut buffer).unwrap(), None);
        assert_eq!(store.hashed().copy_to(b"no", 1, &mut buffer).unwrap(), None);
        store.set(b"long key", b"").unwrap();
        let handle = store.id_of(b"long key").unwrap().unwrap();
        assert_eq!(store.copy_key_to(handle, &mut buffer[..3]).unwrap(), 8);
        assert_eq!(store.copy_key_to(handle, &mut buffer).unwrap(), 8);
        assert_eq!(&buffer[..8], b"long key");
        store.delete(b"long key").unwrap();
        assert_eq!(store.copy_key_to(handle, &mut buffer).unwrap_err().code(), 21);
        assert_eq!(store.copy_at_to(handle, &mut buffer).unwrap_err().code(), 21);
    }
}
