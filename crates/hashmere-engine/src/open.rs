//! From a name and options to an open file: which file that is, who creates it, whether it is fit to be used.

mod create;
mod fit;

pub(crate) use create::{folder_of, format};
pub(crate) use fit::boot_words;

use crate::engine::{Access, Engine, Refusal, Resized, Writer};
use crate::error::{Error, OpenError, WriteError};
use crate::lease_set::Leases;
use crate::left_over::{self, is_file_of, PRESENCE};
use crate::options::{Create, Mode, Options};
use create::{check_items, check_max, check_options, create};
use hashmere_format::header::{at, flag};
use hashmere_mem::{MapMem, OsHost};
use hashmere_os::file::{self, NamespaceError, OpenRefusal};
use hashmere_os::{clock, space, AddressLimit, ByteLocks, Map};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The engine on a real file.
pub type FileEngine = Engine<MapMem, OsHost>;

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An engine with what keeps its file open.
pub(crate) struct Opened {
    pub(crate) engine: FileEngine,
    pub(crate) presence: Arc<ByteLocks>,
    pub(crate) leases: Leases,
}

impl Opened {
    /// Lets go of the store, and says whether no other process has it open. Let go before asking to be alone: of two
    /// that close at once, one must find itself the last.
    pub(crate) fn is_last(&self) -> bool {
        self.presence.unlock(PRESENCE).and_then(|()| self.presence.try_exclusive(PRESENCE)).unwrap_or(false)
    }

    /// Removes the file, being the last to have it open: a process that found it before it lost its name sees that it
    /// is gone.
    pub(crate) fn remove(&self, path: &Path) {
        self.engine.change_status(flag::REMOVED, 0);
        if is_file_of(self.engine.mem.file(), path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Opened {
    /// Brings everything to the medium, being the only one to have the store open.
    pub(crate) fn is_flushed(&self) -> bool {
        if self.engine.layout.is_durable() {
            return self.engine.sweep().and_then(|()| self.engine.sync_alone()).is_ok();
        }
        self.engine.mem.file().sync_all().is_ok()
    }

    /// Gives the client slots back; the last to close a store marks it clean, or removes it if that was asked for.
    pub(crate) fn close(mut self, path: &Path) {
        if !self.engine.access.read_only {
            self.engine.retire();
        }
        let poisoned = self.engine.status() & flag::POISONED != 0;
        let engine = &self.engine;
        if engine.access.read_only || !self.is_last() {
            return;
        }
        let status = engine.status();
        if status & flag::REMOVE_ON_LAST_CLOSE != 0 {
            self.remove(path);
        } else if status & flag::CLEAN == 0 && !poisoned && self.is_flushed() {
            engine.change_status(flag::CLEAN, 0);
            let _ = engine.mem.file().sync_all();
        }
    }
}

/// The file that a name or path means.
///
/// # Errors
/// [`OpenError::BadName`], or what is wrong with the namespace folder.
pub fn resolve(name: &Path) -> Result<PathBuf, OpenError> {
    let bytes = name.as_os_str().as_bytes();
    let bad = |reason| Err(OpenError::BadName { name: name.to_string_lossy().into_owned(), reason });
    if bytes.contains(&b'/') || bytes.ends_with(b".mere") {
        return Ok(name.to_path_buf());
    }
    if bytes.is_empty() {
        return bad("it is empty; give a name such as `sessions`, or a path");
    }
    if bytes == b"." || bytes == b".." || bytes[0] == b'.' {
        return bad("it begins with a dot; give a name such as `sessions`, or a path with a slash in it");
    }
    if bytes.len() > 200 {
        return bad("it is longer than 200 bytes");
    }
    if bytes.iter().any(|b| *b < 0x20 || *b == 0x7f) {
        return bad("it contains control characters");
    }
    let folder = file::namespace_dir().map_err(namespace_error)?;
    let mut file = OsStr::new(name).to_os_string();
    file.push(".mere");
    Ok(folder.join(file))
}

/// A path that cannot be taken for a name.
pub(crate) fn path_with_slash(path: &Path) -> PathBuf {
    if path.components().count() == 1 {
        Path::new(".").join(path)
    } else {
        path.to_path_buf()
    }
}

fn namespace_error(error: NamespaceError) -> OpenError {
    let reason = error.to_string();
    match error {
        NamespaceError::Io { path, source } => OpenError::Io { path, action: "use the namespace folder", source },
        NamespaceError::Symlink { path }
        | NamespaceError::NotADirectory { path }
        | NamespaceError::ForeignOwner { path, .. }
        | NamespaceError::Exposed { path, .. } => OpenError::InsecurePermissions { path, reason },
        _ => OpenError::InsecurePermissions { path: PathBuf::new(), reason },
    }
}

pub(crate) fn open_path(path: &Path, options: &Options) -> Result<Opened, OpenError> {
    check_options(options)?;
    // Two rounds suffice unless others create and remove all the time.
    for _ in 0..1000 {
        if options.create != Create::Always || options.read_only {
            match file::open_checked(path, options.read_only, options.allow_foreign_owner) {
                Ok(file) => {
                    let left_over = |source| open_io(path, "remove what was left over of", source);
                    if options.read_only && left_over::is_left_over(&file).map_err(left_over)? {
                        return Err(OpenError::NotFound { path: path.into() });
                    }
                    if !options.read_only && left_over::remove_left_over(path, &file).map_err(left_over)? {
                        continue;
                    }
                    match attach(path, file, options)? {
                        opened if opened.is_removed(path) => continue,
                        opened => return Ok(opened),
                    }
                }
                Err(OpenRefusal::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    if options.create == Create::Never || options.read_only {
                        return Err(OpenError::NotFound { path: path.into() });
                    }
                }
                Err(refusal) => return Err(refused(path, refusal)),
            }
        }
        match create(path, options) {
            Err(OpenError::AlreadyExists { .. })
                if options.create == Create::IfMissing || had_left_over(path, options) =>
            {
                continue
            }
            other => return other,
        }
    }
    Err(OpenError::Io {
        path: path.into(),
        action: "open or create",
        source: io::Error::other("it is created and removed all the time"),
    })
}

/// Whether what is in the way of a new store is a left-over, and was removed.
fn had_left_over(path: &Path, options: &Options) -> bool {
    file::open_checked(path, false, options.allow_foreign_owner)
        .is_ok_and(|file| left_over::remove_left_over(path, &file).unwrap_or(false))
}

fn refused(path: &Path, refusal: OpenRefusal) -> OpenError {
    let path = path.to_path_buf();
    match refusal {
        OpenRefusal::Io(source) => OpenError::Io { path, action: "open", source },
        OpenRefusal::Symlink | OpenRefusal::ForeignOwner { .. } => {
            OpenError::InsecurePermissions { path, reason: refusal.to_string() }
        }
        other => OpenError::NotAStore { path, reason: other.to_string() },
    }
}

pub(crate) fn open_io(path: &Path, action: &'static str, source: io::Error) -> OpenError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            OpenError::NoSpace { path: path.into(), source }
        }
        io::ErrorKind::AlreadyExists => OpenError::AlreadyExists { path: path.into() },
        _ => OpenError::Io { path: path.into(), action, source },
    }
}

fn open_write(path: &Path, error: WriteError) -> OpenError {
    let path = path.to_path_buf();
    match error {
        WriteError::NoSpace(source) => OpenError::NoSpace { path, source },
        WriteError::AddressSpace { needed, limit } => OpenError::AddressSpace { path, needed, limit },
        WriteError::TooManyClients { limit } => OpenError::TooManyClients { path, limit },
        WriteError::Io { action, source } => OpenError::Io { path, action, source },
        other => OpenError::NotAStore { path, reason: other.to_string() },
    }
}

fn open_error(path: &Path, error: Error) -> OpenError {
    match error {
        Error::Open(error) => error,
        Error::Write(error) => open_write(path, error),
        other => OpenError::NotAStore { path: path.into(), reason: other.to_string() },
    }
}

fn access(options: &Options) -> Access {
    Access {
        read_only: options.read_only,
        busy_timeout: options.busy_timeout.unwrap_or(BUSY_TIMEOUT),
        sync_every: options.sync_every,
        origin: options.origin,
    }
}

fn parts(path: &Path, file: File, options: &Options) -> Result<(MapMem, OsHost, Arc<ByteLocks>), OpenError> {
    let io = |action: &'static str| move |source: io::Error| open_io(path, action, source);
    let writable = !options.read_only;
    let len = file.metadata().map_err(io("look at"))?.len();
    let least = len.max(FileEngine::least_map()).next_multiple_of(4096);
    let map = Map::open(file.as_fd(), least, writable).map_err(|source| match source.kind() {
        io::ErrorKind::OutOfMemory => {
            OpenError::AddressSpace { path: path.into(), needed: least, limit: AddressLimit::of_refused(least) }
        }
        _ => open_io(path, "map", source),
    })?;
    let file = Arc::new(file);
    let host = OsHost::new(file.clone()).map_err(io("open the liveness locks of"))?;
    let presence = host.locks().map_err(io("open the liveness locks of"))?;
    // Those who cannot write need not be waited for by the last who can. The lock is not to be had at once only while
    // a handle that was the last closes the store.
    let start = clock::monotonic();
    while writable && !presence.try_shared(PRESENCE).map_err(io("note our presence in"))? {
        if clock::monotonic() - start > Duration::from_secs(30) {
            return Err(open_io(path, "open", io::Error::other("another process has been closing it for 30 s")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((MapMem::new(file, map, writable), host, presence))
}

/// Opens an existing file, and puts the options beside what it has.
pub(crate) fn attach(path: &Path, file: File, options: &Options) -> Result<Opened, OpenError> {
    let len = file.metadata().map_err(|source| open_io(path, "look at", source))?.len();
    if len < FileEngine::least_map().min(at::CLIENTS + 4096) {
        let reason = format!("it has {len} bytes, which is too short for a store");
        return Err(OpenError::NotAStore { path: path.into(), reason });
    }
    let (mem, host, presence) = parts(path, file, options)?;
    let length = |mem: &MapMem| mem.file_len().unwrap_or(0);
    let refused = |refusal: Refusal| OpenError::NotAStore { path: path.into(), reason: refusal.0 };
    let engine = Engine::examine(mem, host, length, access(options)).map_err(refused)?;
    let opened = Opened { engine, presence, leases: Leases::default() };
    let fits = || opened.engine.check_extent(length).and_then(|()| opened.engine.check_max()).map_err(refused);
    if opened.engine.layout.is_durable() {
        // What is refused stays as it was, so this comes first; but only a rebuild finds out what is in a store that
        // was torn.
        if opened.engine.status() & flag::CLEAN != 0 {
            fits()?;
        }
        opened.compare(path, options)?;
        opened.make_fit(path, options)?;
        fits()?;
    } else {
        opened.check_boot(path)?;
        fits()?;
        opened.compare(path, options)?;
    }
    opened.engine.check_extent(length).map_err(refused)?;
    opened.compare(path, options)?;
    match opened.prepare(path, options) {
        Ok(()) => Ok(opened),
        Err(error) => {
            // It has been open, so it is closed in order.
            opened.close(path);
            Err(error)
        }
    }
}

/// Gives an open store another maximum size.
pub(crate) fn resize(engine: &FileEngine, writer: &mut Writer, path: &Path, asked: u64) -> Result<(), Error> {
    check_max(asked, &engine.layout)?;
    let had = engine.max_bytes();
    match engine.set_maximum(writer, asked)? {
        Resized::Done => Ok(()),
        Resized::Needs(bytes) => {
            let has = if had == 0 { "none".to_string() } else { had.to_string() };
            let store = format!("{has} (what is in it needs {bytes})");
            Err(OpenError::OptionMismatch { path: path.into(), option: "max_bytes", store, asked: asked.to_string() }
                .into())
        }
    }
}

impl Opened {
    /// Registers this client, repairs what dead ones left, honours the options that may change.
    fn prepare(&self, path: &Path, options: &Options) -> Result<(), OpenError> {
        let engine = &self.engine;
        if engine.access.read_only {
            return Ok(());
        }
        let was_clean = engine.status() & flag::CLEAN != 0;
        self.claim_file().map_err(|source| open_io(path, "look at", source))?;
        engine.change_status(0, flag::CLEAN);
        if was_clean {
            // The medium must not say that the store is clean when the first write is on it.
            engine.flush().map_err(|error| open_write(path, error))?;
        }
        engine.sweep().map_err(|error| open_write(path, error))?;
        let mut writer = engine.writer().map_err(|error| open_write(path, error))?;
        match options.max_bytes.filter(|asked| *asked != engine.max_bytes()) {
            Some(asked) => resize(engine, &mut writer, path, asked).map_err(|error| open_error(path, error))?,
            // The process that made it smaller may have died over it.
            None => engine.shrink(&mut writer).map_err(|error| open_write(path, error))?,
        }
        if let Some(items) = options.expected_items {
            let leaves = engine.layout.leaves_for(items).unwrap_or(1);
            space::refuse_what_cannot_fit(engine.mem.file().as_fd(), leaves * engine.leaf_bytes())
                .map_err(|source| open_io(path, "make the index of", source))?;
            engine.presize(&mut writer, items).map_err(|error| open_write(path, error))?;
        }
        if let Some(bytes) = options.feed {
            engine.enable_feed(&mut writer, bytes, options.feed_values).map_err(|error| open_write(path, error))?;
        }
        // Last: an open that is refused deletes nothing.
        if options.remove_on_last_close {
            engine.change_status(flag::REMOVE_ON_LAST_CLOSE, 0);
        }
        Ok(())
    }

    /// Refuses options that the store contradicts.
    fn compare(&self, path: &Path, options: &Options) -> Result<(), OpenError> {
        let engine = &self.engine;
        let mismatch = |option, store: String, asked: String| {
            Err(OpenError::OptionMismatch { path: path.into(), option, store, asked })
        };
        if let Some(asked) = options.durable.filter(|d| *d != engine.layout.is_durable()) {
            return mismatch("durable", engine.layout.is_durable().to_string(), asked.to_string());
        }
        let mode = if engine.layout.is_cache() { Mode::Cache } else { Mode::Strict };
        if let Some(asked) = options.mode.filter(|m| *m != mode) {
            return mismatch("mode", format!("{mode:?}"), format!("{asked:?}"));
        }
        let none = || "none".to_string();
        for (option, has, asked) in [
            ("fixed_key_len", engine.layout.fixed.0, options.fixed_key_len),
            ("fixed_value_len", engine.layout.fixed.1, options.fixed_value_len),
        ] {
            if let Some(asked) = asked.filter(|a| Some(*a) != has) {
                return mismatch(option, has.map_or_else(none, |h| h.to_string()), asked.to_string());
            }
        }
        let (segment, leaf) = (engine.segment_bytes(), engine.leaf_bytes());
        for (option, has, asked) in
            [("segment_bytes", segment, options.segment_bytes), ("leaf_bytes", leaf, options.leaf_bytes)]
        {
            if let Some(asked) = asked.filter(|a| u64::from(*a) != has) {
                return mismatch(option, has.to_string(), asked.to_string());
            }
        }
        if engine.access.read_only {
            return Ok(());
        }
        if let Some(asked) = options.max_bytes {
            check_max(asked, &engine.layout)?;
        }
        check_items(options, &engine.layout, options.max_bytes.unwrap_or(engine.max_bytes()))
    }

    /// Whether the file lost its name between our finding and our locking it.
    fn is_removed(&self, path: &Path) -> bool {
        self.engine.status() & flag::REMOVED != 0 && !is_file_of(self.engine.mem.file(), path)
    }
}
