//! Reading a value into a buffer of the caller's.

use crate::key::Name;
use crate::{Key, ReadError, Store};
use hashmere_engine::{FileEngine, Found};

/// Where [`Store::get_into`] copies a value to: a `Vec<u8>`, whose content it replaces, or a slice, at whose start it
/// begins.
pub trait Buffer: sealed::Copy {}

impl Buffer for Vec<u8> {}
impl Buffer for [u8] {}
impl<const N: usize> Buffer for [u8; N] {}

mod sealed {
    use super::{FileEngine, Name, ReadError, Store};

    /// How a value gets into a buffer.
    pub trait Copy {
        fn copy(&mut self, store: &Store, engine: &FileEngine, name: Name<'_>) -> Result<Option<usize>, ReadError>;
    }
}

impl sealed::Copy for Vec<u8> {
    #[inline(always)]
    fn copy(&mut self, store: &Store, engine: &FileEngine, name: Name<'_>) -> Result<Option<usize>, ReadError> {
        self.clear();
        match name {
            Name::Key(key, kh) => {
                let found = store.shared.fetch_bytes(engine, key, kh, self)?;
                Ok(found.then_some(self.len()))
            }
            Name::At(at) => store.shared.use_at(at, |found| {
                self.clear();
                let len = found.value_len();
                self.try_reserve_exact(len).map_err(|_| ReadError::OutOfMemory { bytes: len as u64 })?;
                engine.append_value(found, self);
                Ok(len)
            }),
        }
    }
}

impl sealed::Copy for [u8] {
    #[inline(always)]
    fn copy(&mut self, store: &Store, engine: &FileEngine, name: Name<'_>) -> Result<Option<usize>, ReadError> {
        match name {
            Name::Key(key, kh) => {
                let len = |_: &FileEngine, found: &Found| found.value_len();
                store.shared.copy_hashed(engine, key, kh, self, len, |view| view.len())
            }
            Name::At(at) => store.shared.use_at(at, |found| {
                engine.copy_value(found, self);
                Ok(found.value_len())
            }),
        }
    }
}

impl<const N: usize> sealed::Copy for [u8; N] {
    #[inline(always)]
    fn copy(&mut self, store: &Store, engine: &FileEngine, name: Name<'_>) -> Result<Option<usize>, ReadError> {
        self.as_mut_slice().copy(store, engine, name)
    }
}

impl Store {
    /// Copies the value of a key into a buffer and returns its length; `None`: there is no such key.
    ///
    /// The content of a `Vec` is replaced, and no memory is allocated if it has room; it is empty if the key is absent.
    /// Into a slice the value is copied if it fits; if the length is more than that of the slice, what the slice has
    /// then is not defined.
    ///
    /// # Errors
    /// See [`ReadError`].
    // Always: a call of its own costs 37 instructions of 293 (`bench/budget get`).
    #[inline(always)]
    pub fn get_into<'k, B: Buffer + ?Sized>(
        &self,
        key: impl Into<Key<'k>>,
        buffer: &mut B,
    ) -> Result<Option<usize>, ReadError> {
        // Once: each time it is asked whether this process was forked.
        let engine = self.engine();
        buffer.copy(self, engine, Name::of(engine, key))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Key, Options, Store};

    fn store(name: &str) -> Store {
        let path = std::env::temp_dir().join(format!("hashmere-copy-{name}-{}.mere", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Options::new().create_new(true).remove_on_last_close(true).open(path).expect("a new store")
    }

    #[test]
    fn a_value_is_copied_if_it_fits_and_its_length_is_returned_in_any_case() {
        let store = store("lengths");
        for len in [0usize, 1, 7, 8, 63, 511, 512, 5000, 32 << 10, 32 << 10 | 1, 200_000, 1 << 20] {
            let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
            store.set(b"key", &value).unwrap();
            store.set(Key::with_hash(b"key", 77), &value).unwrap();
            let id = store.id_of(b"key").unwrap().unwrap();
            for key in [Key::from(b"key"), Key::with_hash(b"key", 77), id.into(), id.uid().into()] {
                for room in [0, len.saturating_sub(1), len, len + 5] {
                    let mut buffer = vec![0xee; room];
                    assert_eq!(store.get_into(key, &mut buffer[..]).unwrap(), Some(len));
                    assert!(room < len || buffer[..len] == value && buffer[len..].iter().all(|b| *b == 0xee));
                    assert_eq!(store.get_into(key, &mut buffer).unwrap(), Some(len));
                    assert_eq!(buffer, value);
                }
            }
        }
    }

    #[test]
    fn a_buffer_of_an_absent_key() {
        let store = store("absent");
        let (mut slice, mut vec) = ([7; 4], vec![7; 4]);
        store.set(b"key", b"").unwrap();
        let id = store.id_of(b"key").unwrap().unwrap();
        store.delete(b"key").unwrap();
        for key in [Key::from(b"key"), Key::with_hash(b"key", 1), id.into(), id.uid().into()] {
            assert_eq!(store.get_into(key, &mut slice).unwrap(), None);
            assert_eq!(store.get_into(key, &mut vec).unwrap(), None);
            assert_eq!((slice, &vec[..]), ([7; 4], &[][..]));
        }
    }
}
