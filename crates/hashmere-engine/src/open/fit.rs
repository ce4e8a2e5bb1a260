//! Whether an existing file is fit to be used: closed in order or in use since, in this boot and as this file, which a
//! copy is not. A durable store that is not is made so.

use super::{open_io, open_write, Opened};
use crate::error::{OpenError, WriteError};
use crate::left_over::PRESENCE;
use crate::options::Options;
use hashmere_format::header::flag;
use hashmere_os::{boot, clock, file};
use std::io;
use std::path::Path;
use std::time::Duration;

/// The byte lock of a durable store that is held while one process makes it fit to be opened, and rebuilds it if need
/// be.
const REBUILD: u64 = PRESENCE + 1;
/// Longest wait for a process that rebuilds: it may have terabytes to read.
const REBUILD_TIMEOUT: Duration = Duration::from_secs(3600);

impl Opened {
    /// Notes in which boot, and as which file, the store is open for writing. Before the mark that it was closed in
    /// order goes: after a death in between it is still there.
    pub(super) fn claim_file(&self) -> io::Result<()> {
        if !self.is_whole()? {
            self.engine.forget_sampling();
        }
        let identity = file::identity(self.engine.mem.file())?;
        self.engine.set_boot(boot_words());
        self.engine.set_file_identity(identity);
        Ok(())
    }

    /// Whether this is the file that the store was last opened as, and not a copy of it.
    fn is_same_file(&self) -> io::Result<bool> {
        Ok(file::identity(self.engine.mem.file())? == self.engine.file_identity())
    }

    /// Whether all that was written is in the file: it was in use in this boot, and as this file.
    fn is_whole(&self) -> io::Result<bool> {
        Ok(self.engine.boot() == boot_words() && self.is_same_file()?)
    }

    /// A volatile store may be torn if the machine went down while it was open, or if it is a copy.
    pub(super) fn check_boot(&self, path: &Path) -> Result<(), OpenError> {
        let io = |source| open_io(path, "look at", source);
        if self.engine.status() & flag::CLEAN != 0 || self.is_whole().map_err(io)? {
            return Ok(());
        }
        let copied = !self.is_same_file().map_err(io)?;
        Err(OpenError::NotCleanlyClosed { path: path.into(), durable: self.engine.layout.is_durable(), copied })
    }

    /// A durable store: one opener at a time looks whether the machine went down while it was open, or whether it is a
    /// copy, rebuilds it then, and says on the medium that it is open, before any client writes.
    pub(super) fn make_fit(&self, path: &Path, options: &Options) -> Result<(), OpenError> {
        if self.engine.access.read_only {
            return self.check_boot(path);
        }
        let io = |source| open_io(path, "lock", source);
        let start = clock::monotonic();
        loop {
            // Nearly always it is fit. Shared locks do not wait for each other, however many processes open at once.
            if self.presence.try_shared(REBUILD).map_err(io)? {
                let fit = self.is_fit();
                self.presence.unlock(REBUILD).map_err(io)?;
                if fit.map_err(io)? {
                    return Ok(());
                }
            }
            if self.presence.try_exclusive(REBUILD).map_err(io)? {
                let fit = self.make_fit_locked(options).map_err(|error| open_write(path, error));
                self.presence.unlock(REBUILD).map_err(io)?;
                return fit;
            }
            if clock::monotonic() - start > REBUILD_TIMEOUT {
                return Err(io(io::Error::other("another process has been rebuilding it for an hour")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether others have it open, or died with it, and have said so on the medium.
    fn is_fit(&self) -> io::Result<bool> {
        Ok(self.engine.status() & flag::CLEAN == 0 && self.is_whole()?)
    }

    fn make_fit_locked(&self, options: &Options) -> Result<(), WriteError> {
        let engine = &self.engine;
        let io = |source| WriteError::Io { action: "look at the file", source };
        if self.is_fit().map_err(io)? {
            return Ok(());
        }
        if engine.status() & flag::CLEAN == 0 {
            let len = engine.mem.file_len().map_err(|source| WriteError::Io { action: "measure", source })?;
            let progress = |done, of| options.on_recovery.iter().for_each(|told| (told.0)(done, of));
            engine.rebuild(len, &mut { progress })?;
        }
        self.claim_file().map_err(io)?;
        engine.change_status(0, flag::CLEAN);
        engine.flush()
    }
}

pub(crate) fn boot_words() -> [u64; 2] {
    let id = boot::boot_id().unwrap_or_default();
    let word = |half: &[u8]| half.iter().rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
    [word(&id[..8]), word(&id[8..])]
}
