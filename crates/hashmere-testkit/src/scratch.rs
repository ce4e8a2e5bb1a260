//! Scratch folders in memory, removed whatever happens.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

/// Where they are made: a file system in memory, as most stores do.
const PARENT: &str = "/dev/shm";
const PREFIX: &str = "hashmere-scratch-";

static NEXT: AtomicU64 = AtomicU64::new(0);
static SWEEP: Once = Once::new();
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder of its own for one test; dropping it (a panic drops it too) removes it with all that is in it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new folder, with the test's name in its own name.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(test: &str) -> Scratch {
        SWEEP.call_once(sweep);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{test}", std::process::id());
        let path = Path::new(PARENT).join(name);
        fs::create_dir(&path).expect("make a scratch folder");
        LIVE.lock().unwrap_or_else(|poison| poison.into_inner()).push(path.clone());
        Scratch { path }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A store file in it; the extension makes `open` take it as a path.
    pub fn store(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.mere"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        LIVE.lock().unwrap_or_else(|poison| poison.into_inner()).retain(|path| *path != self.path);
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes all folders of this process: for the watchdog, which ends the process without unwinding.
pub(crate) fn remove_all() {
    for path in LIVE.lock().unwrap_or_else(|poison| poison.into_inner()).drain(..) {
        remove(&path);
    }
}

/// Removes what test processes left that were killed: also one that had the number of this process, which has made none
/// yet.
fn sweep() {
    for entry in fs::read_dir(PARENT).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.split('-').next());
        let Some(pid) = owner.and_then(|text| text.parse::<u32>().ok()) else { continue };
        if pid == std::process::id() || !Path::new(&format!("/proc/{pid}")).exists() {
            remove(&entry.path());
        }
    }
}

/// Removes a folder whose test did not clean up after itself.
fn remove(path: &Path) {
    crate::files::unmount_in(path);
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_on_drop_and_on_panic() {
        let kept = Scratch::new("drop").path().to_owned();
        assert!(!kept.exists());
        let result = std::panic::catch_unwind(|| {
            let scratch = Scratch::new("panic");
            fs::write(scratch.store("x"), b"x").unwrap();
            std::panic::panic_any(scratch.path().to_owned());
        });
        let path = result.unwrap_err().downcast::<PathBuf>().unwrap();
        assert!(!path.exists());
    }
}
