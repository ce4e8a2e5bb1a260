//! Who looks at a store after a death or beside a stop.

use super::trace::Stopped;
use super::verify::Frame;
use hashmere::Store;
use std::path::Path;

/// What must hold after a death or beside a stop; and who looks.
pub(super) trait Judge {
    /// A client that is there all the time.
    type Survivor;

    /// Lets a client with this handle take part, before the operation begins.
    fn attend(&self, store: Store) -> Result<Self::Survivor, String>;

    /// Looks at the file from a client that was there all the time, and from one that opens a copy. `returned`: the
    /// operation was over, so it must be there. The longest wait of a survivor, in nanoseconds.
    fn verify(&self, survivor: &mut Self::Survivor, copy: &Path, returned: bool) -> Result<u64, String>;

    /// Looks at a copy of the file, to which every client of the file is dead.
    fn verify_copy(&self, path: &Path, copy: &Path) -> Result<u64, String>;

    /// Looks while the process is stopped, lets it go on to its end, and looks again. How long the others took, in
    /// nanoseconds.
    fn verify_beside(&self, survivor: &mut Self::Survivor, stopped: Stopped) -> Result<u64, String>;
}

impl Judge for Frame {
    type Survivor = Store;

    fn attend(&self, store: Store) -> Result<Store, String> {
        Ok(store)
    }

    fn verify(&self, survivor: &mut Store, copy: &Path, returned: bool) -> Result<u64, String> {
        self.verify_live(survivor, copy, returned)
    }

    fn verify_copy(&self, path: &Path, copy: &Path) -> Result<u64, String> {
        self.verify_copied(path, copy)
    }

    fn verify_beside(&self, survivor: &mut Store, stopped: Stopped) -> Result<u64, String> {
        self.verify_stopped(survivor, stopped)
    }
}
