//! What the unit tests share: a scratch folder that goes away, and code run in a forked child.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A folder of its own under the temporary folder, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let folder = format!("hashmere-os-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A new empty file, open for reading and writing.
    pub(crate) fn file(&self, name: &str) -> File {
        File::options().read(true).write(true).create_new(true).open(self.path(name)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Held by a test that maps a thousand files, and by those that need the room that these leave to none: the tests of
/// this process share its addresses.
pub(crate) fn most_addresses() -> MutexGuard<'static, ()> {
    static MOST: Mutex<()> = Mutex::new(());
    MOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether it is so before long. What this process closes stays open in a child that another test has just forked,
/// until that gets a processor and closes it as well.
pub(crate) fn eventually(mut so: impl FnMut() -> bool) -> bool {
    let begin = std::time::Instant::now();
    while !so() {
        if begin.elapsed() > std::time::Duration::from_secs(120) {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    true
}

/// Forks, runs `body` in the child, and returns the child's process id.
///
/// The test harness has other threads, so `body` must not allocate much nor panic: its
/// result is the exit status, and `_exit` keeps destructors of the parent from running.
pub(crate) fn spawn(body: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the child only runs `body` and `_exit`s.
    match unsafe { libc::fork() } {
        // SAFETY: ends this child process at once.
        0 => unsafe { libc::_exit(body()) },
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        child => child,
    }
}

/// Waits for a child: its exit status, or 1000 + the signal that ended it.
pub(crate) fn wait(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: the pointer is to an int.
    while unsafe { libc::waitpid(child, &mut status, 0) } == -1 {}
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        1000 + libc::WTERMSIG(status)
    }
}

/// [`spawn`] and [`wait`] in one.
pub(crate) fn child(body: impl FnOnce() -> i32) -> i32 {
    wait(spawn(body))
}
