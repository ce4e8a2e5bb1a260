//! Who computes the value of a key: a lock of the kernel's on a byte behind the end of the file, which goes with its
//! process.

use crate::key::PlainKey;
use crate::store::StoreBase;
use hashmere_os::ByteLocks;
use pyo3::prelude::*;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// The locks for keys are numbered from here on; those of the engine are far below. Mentioned in
/// docs/internals/format.md.
const FIRST: u64 = 1 << 40;

/// FNV-1a: the number has to be the same in every process and version.
fn number(key: &[u8]) -> u64 {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    FIRST + (hash & (FIRST - 1))
}

/// The right to compute the value of a key: one holder at a time on the machine. It ends with ``release`` or with the
/// process.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct KeyLock {
    locks: ByteLocks,
    number: u64,
}

#[pymethods]
impl StoreBase {
    /// A lock for a key, not yet taken.
    #[pyo3(signature = (key, /))]
    fn key_lock(&self, py: Python<'_>, key: PlainKey<'_>) -> PyResult<KeyLock> {
        let path: PathBuf = self.enter(py)?.path().into();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
        Ok(KeyLock { locks: ByteLocks::new(file.as_fd())?, number: number(key.0) })
    }
}

#[pymethods]
impl KeyLock {
    /// Takes it, unless it is held. Never waits.
    fn acquire(&self) -> PyResult<bool> {
        Ok(self.locks.try_exclusive(self.number)?)
    }

    /// Gives it back. In a forked child, where it is not held, this does nothing.
    fn release(&self) -> PyResult<()> {
        if self.locks.is_stale() {
            return Ok(());
        }
        Ok(self.locks.unlock(self.number)?)
    }
}
