//! From a name and options to an open file: which file that is, who creates it, whether it is fit to be used.

use crate::engine::{fits, least_max, leaves_for, Access, Engine, Lane, NewStore, Refusal, Resized};
use crate::error::{Error, OpenError, WriteError};
use crate::last_exit;
use crate::lease::Leases;
use crate::options::{Create, Mode, Options};
use hashmere_format::header::{at, flag, limit, Shape};
use hashmere_mem::{MapMem, OsHost};
use hashmere_os::file::{self, NamespaceError, OpenRefusal, Unpublished};
use hashmere_os::{boot, clock, space, AddressLimit, ByteLocks, Map};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The engine on a real file.
pub(crate) type FileEngine = Engine<MapMem, OsHost>;

/// The byte lock that every open handle holds shared; whoever can have it alone is the last.
pub(crate) const PRESENCE: u64 = 1 << 20;
/// The byte lock of a durable store that is held while one process makes it fit to be opened, and rebuilds it if need be.
const REBUILD: u64 = PRESENCE + 1;
/// Longest wait for a process that rebuilds: it may have terabytes to read.
const REBUILD_TIMEOUT: Duration = Duration::from_secs(3600);
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An engine with what keeps its file open.
pub(crate) struct Opened {
    pub(crate) engine: FileEngine,
    pub(crate) presence: Arc<ByteLocks>,
    pub(crate) leases: Leases,
}

impl Opened {
    /// Brings everything to the medium, being the only one to have the store open.
    pub(crate) fn is_flushed(&self) -> bool {
        if self.engine.is_durable() {
            return self.engine.sweep().and_then(|()| self.engine.sync_alone()).is_ok();
        }
        self.engine.mem.file().sync_all().is_ok()
    }

    /// Gives the client slots back; the last to close a store marks it clean, or removes it if that was asked for.
    pub(crate) fn close(mut self, path: &Path) {
        if !self.engine.read_only {
            self.engine.retire();
        }
        let poisoned = self.engine.life() & flag::POISONED != 0;
        let engine = &self.engine;
        if engine.read_only || !self.is_last() {
            return;
        }
        let life = engine.life();
        if life & flag::DELETE_ON_LAST_EXIT != 0 {
            self.remove(path);
        } else if life & flag::CLEAN == 0 && !poisoned && self.is_flushed() {
            engine.change_life(flag::CLEAN, 0);
            let _ = engine.mem.file().sync_all();
        }
    }
}

/// The file that a name or path means.
pub(crate) fn resolve(name: &Path) -> Result<PathBuf, OpenError> {
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

fn namespace_error(error: NamespaceError) -> OpenError {
    let reason = error.to_string();
    match error {
        NamespaceError::Io { path, source } => OpenError::Io { path, action: "use the namespace folder", source },
        NamespaceError::Symlink { path }
        | NamespaceError::NotADirectory { path }
        | NamespaceError::ForeignOwner { path, .. }
        | NamespaceError::Exposed { path, .. } => OpenError::Unsafe { path, reason },
        _ => OpenError::Unsafe { path: PathBuf::new(), reason },
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
                    if options.read_only && last_exit::is_left_over(&file).map_err(left_over)? {
                        return Err(OpenError::NotFound { path: path.into() });
                    }
                    if !options.read_only && last_exit::remove_left_over(path, &file).map_err(left_over)? {
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
        .is_ok_and(|file| last_exit::remove_left_over(path, &file).unwrap_or(false))
}

fn refused(path: &Path, refusal: OpenRefusal) -> OpenError {
    let path = path.to_path_buf();
    match refusal {
        OpenRefusal::Io(source) => OpenError::Io { path, action: "open", source },
        OpenRefusal::Symlink | OpenRefusal::ForeignOwner { .. } => {
            OpenError::Unsafe { path, reason: refusal.to_string() }
        }
        other => OpenError::NotAStore { path, reason: other.to_string() },
    }
}

fn check_options(options: &Options) -> Result<(), OpenError> {
    let bad = |option, reason: String| Err(OpenError::BadOption { option, reason });
    let power =
        |bytes: u32, least: u32, most: u32| bytes.is_power_of_two() && (least..=most).contains(&bytes.trailing_zeros());
    let segment = options.segment_bytes.unwrap_or(1 << limit::SEGMENT_SHIFT);
    if !power(segment, limit::SEGMENT_SHIFT_MIN, limit::SEGMENT_SHIFT_MAX) {
        return bad("segment_bytes", format!("{segment} is not a power of two from 4096 to 67108864"));
    }
    let leaf = options.leaf_bytes.unwrap_or((segment / 8).min(1 << limit::LEAF_SHIFT_MAX));
    if !power(leaf, limit::LEAF_SHIFT_MIN, limit::LEAF_SHIFT_MAX) || leaf > segment / 8 {
        return bad(
            "leaf_bytes",
            format!(
                "{leaf} is not a power of two from 256 to 32768 and at most an eighth of a segment ({segment} bytes)"
            ),
        );
    }
    if options.mode == Some(Mode::Cache) && options.max_bytes.is_none() && options.create == Create::Always {
        return bad("mode", "a cache needs max_bytes".into());
    }
    for (option, len) in [("fixed_key_len", options.fixed_key_len), ("fixed_value_len", options.fixed_value_len)] {
        if len == Some(u32::MAX) {
            return bad(option, "it must be below 4294967295".into());
        }
    }
    if options.permissions.is_some_and(|p| p & !0o777 != 0 || p & 0o600 != 0o600) {
        return bad("permissions", "they must be within 0o777 and let the owner read and write".into());
    }
    Ok(())
}

fn create(path: &Path, options: &Options) -> Result<Opened, OpenError> {
    let io = |action: &'static str| move |source: io::Error| open_io(path, action, source);
    if options.mode == Some(Mode::Cache) && options.max_bytes.is_none() {
        return Err(OpenError::BadOption { option: "mode", reason: "a cache needs max_bytes".into() });
    }
    let segment = options.segment_bytes.unwrap_or(1 << limit::SEGMENT_SHIFT);
    let durable = options.durable.unwrap_or(false);
    if durable && options.mode == Some(Mode::Cache) {
        let reason =
            "a cache drops what it likes, at once, and a durable store keeps what it has until a sync; choose one";
        return Err(OpenError::BadOption { option: "durable", reason: reason.into() });
    }
    let leaf = options.leaf_bytes.unwrap_or((segment / 8).min(1 << limit::LEAF_SHIFT_MAX));
    let shape = Shape {
        segment_shift: segment.trailing_zeros(),
        leaf_shift: leaf.trailing_zeros(),
        cache: options.mode == Some(Mode::Cache),
    };
    let fixed = (options.fixed_key_len, options.fixed_value_len);
    if let Err(reason) = fits(shape, fixed, durable) {
        return Err(OpenError::BadOption { option: "fixed_value_len", reason });
    }
    if let Some(max) = options.max_bytes {
        check_max(max, shape, fixed, durable)?;
    }
    check_items(options, shape, options.max_bytes.unwrap_or(0))?;
    let new = NewStore {
        shape,
        fixed,
        max_bytes: options.max_bytes.unwrap_or(0),
        seed: boot::random_u64().map_err(io("draw a random seed"))?,
        uuid: boot::random_uuid().map_err(io("draw a random UUID"))?,
        life: if options.delete_on_last_exit { flag::DELETE_ON_LAST_EXIT } else { 0 },
        boot: boot_words(),
        durable,
    };
    let (unnamed, opened) = format(path, &new, options)?;
    if durable {
        opened.engine.flush().map_err(|error| open_write(path, error))?;
    }
    let folder = folder_of(path);
    match file::publish(unnamed, path) {
        Ok(_) if durable => file::sync_dir(folder).map(|()| opened).map_err(io("write the folder to disk of")),
        Ok(_) => Ok(opened),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(OpenError::AlreadyExists { path: path.into() })
        }
        Err(source) => Err(open_io(path, "name", source)),
    }
}

/// Refuses an index that the format or the maximum size has no room for. Nothing is built then.
fn check_items(options: &Options, shape: Shape, max: u64) -> Result<(), OpenError> {
    let Some(items) = options.expected_items else { return Ok(()) };
    let bad = |reason| Err(OpenError::BadOption { option: "expected_items", reason });
    let Some(leaves) = leaves_for(shape, items) else {
        return bad(format!(
            "{items} items are more than an index with leaves of {} bytes holds",
            1 << shape.leaf_shift
        ));
    };
    let bytes = at::DATA + (leaves << shape.leaf_shift);
    if max != 0 && bytes > max {
        return bad(format!("an index for {items} items takes {bytes} bytes, and the maximum size is {max}"));
    }
    Ok(())
}

/// Refuses a maximum size that no store of this shape and these lengths can have.
fn check_max(max: u64, shape: Shape, fixed: (Option<u32>, Option<u32>), durable: bool) -> Result<(), OpenError> {
    let least = least_max(shape, fixed, durable);
    if max >= least {
        return Ok(());
    }
    let segment = 1u64 << shape.segment_shift;
    let reason = format!(
        "{max} is too small; a store with segments of {segment} bytes and records of these lengths needs at least {least}"
    );
    Err(OpenError::BadOption { option: "max_bytes", reason })
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A new store that nobody can open yet, because it has no name.
pub(crate) fn format(path: &Path, new: &NewStore, options: &Options) -> Result<(Unpublished, Opened), OpenError> {
    let io = |action: &'static str| move |source: io::Error| open_io(path, action, source);
    let unnamed = file::create_unnamed(folder_of(path), options.permissions.unwrap_or(0o600)).map_err(io("create"))?;
    let file = unnamed.file().try_clone().map_err(io("open"))?;
    let (mem, host, presence) = parts(path, file, options)?;
    let engine = Engine::format(mem, host, new, access(options)).map_err(|error| open_write(path, error))?;
    let opened = Opened { engine, presence, leases: Leases::default() };
    opened.prepare(path, options)?;
    Ok((unnamed, opened))
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
    // somebody who was the last closes the store.
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
    if opened.engine.is_durable() {
        // What is refused stays as it was, so this comes first; but only a rebuild finds out what is in a store that was torn.
        if opened.engine.life() & flag::CLEAN != 0 {
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
pub(crate) fn resize(engine: &FileEngine, lane: &mut Lane, path: &Path, asked: u64) -> Result<(), Error> {
    check_max(asked, engine.shape, engine.fixed, engine.is_durable())?;
    let had = engine.max_bytes();
    match engine.set_maximum(lane, asked)? {
        Resized::Done => Ok(()),
        Resized::Needs(bytes) => {
            let has = if had == 0 { "none".to_string() } else { had.to_string() };
            let store = format!("{has} (what is in it needs {bytes})");
            Err(OpenError::Mismatch { path: path.into(), option: "max_bytes", store, asked: asked.to_string() }.into())
        }
    }
}

impl Opened {
    /// Registers this client, repairs what dead ones left, honours the options that may change.
    fn prepare(&self, path: &Path, options: &Options) -> Result<(), OpenError> {
        let engine = &self.engine;
        if engine.read_only {
            return Ok(());
        }
        let was_clean = engine.life() & flag::CLEAN != 0;
        self.claim_file().map_err(|source| open_io(path, "look at", source))?;
        engine.change_life(0, flag::CLEAN);
        if was_clean {
            // The medium must not say that the store is clean when the first write is on it.
            engine.flush().map_err(|error| open_write(path, error))?;
        }
        engine.sweep().map_err(|error| open_write(path, error))?;
        let mut lane = engine.lane().map_err(|error| open_write(path, error))?;
        match options.max_bytes.filter(|asked| *asked != engine.max_bytes()) {
            Some(asked) => resize(engine, &mut lane, path, asked).map_err(|error| open_error(path, error))?,
            // The process that made it smaller may have died over it.
            None => engine.shrink(&mut lane).map_err(|error| open_write(path, error))?,
        }
        if let Some(items) = options.expected_items {
            let leaves = leaves_for(engine.shape, items).unwrap_or(1);
            space::refuse_what_cannot_fit(engine.mem.file().as_fd(), leaves << engine.shape.leaf_shift)
                .map_err(|source| open_io(path, "make the index of", source))?;
            engine.presize(&mut lane, items).map_err(|error| open_write(path, error))?;
        }
        // Last: an open that is refused deletes nothing.
        if options.delete_on_last_exit {
            engine.change_life(flag::DELETE_ON_LAST_EXIT, 0);
        }
        Ok(())
    }

    /// Notes in which boot, and as which file, the store is open for writing. Before the mark that it was closed in order goes: after a
    /// death in between it is still there.
    fn claim_file(&self) -> io::Result<()> {
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
    fn check_boot(&self, path: &Path) -> Result<(), OpenError> {
        let io = |source| open_io(path, "look at", source);
        if self.engine.life() & flag::CLEAN != 0 || self.is_whole().map_err(io)? {
            return Ok(());
        }
        let copied = !self.is_same_file().map_err(io)?;
        Err(OpenError::Unclean { path: path.into(), durable: self.engine.is_durable(), copied })
    }

    /// A durable store: one opener at a time looks whether the machine went down while it was open, or whether it is a copy, rebuilds
    /// it then, and says on the medium that it is open, before anyone writes.
    fn make_fit(&self, path: &Path, options: &Options) -> Result<(), OpenError> {
        if self.engine.read_only {
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
        Ok(self.engine.life() & flag::CLEAN == 0 && self.is_whole()?)
    }

    fn make_fit_locked(&self, options: &Options) -> Result<(), WriteError> {
        let engine = &self.engine;
        let io = |source| WriteError::Io { action: "look at the file", source };
        if self.is_fit().map_err(io)? {
            return Ok(());
        }
        if engine.life() & flag::CLEAN == 0 {
            let len = engine.mem.file_len().map_err(|source| WriteError::Io { action: "measure", source })?;
            let progress = |done, of| options.on_rebuild.iter().for_each(|told| (told.0)(done, of));
            engine.rebuild(len, &mut { progress })?;
        }
        self.claim_file().map_err(io)?;
        engine.change_life(0, flag::CLEAN);
        engine.flush()
    }

    /// Refuses options that the store contradicts.
    fn compare(&self, path: &Path, options: &Options) -> Result<(), OpenError> {
        let engine = &self.engine;
        let mismatch =
            |option, store: String, asked: String| Err(OpenError::Mismatch { path: path.into(), option, store, asked });
        if let Some(asked) = options.durable.filter(|d| *d != engine.is_durable()) {
            return mismatch("durable", engine.is_durable().to_string(), asked.to_string());
        }
        let mode = if engine.shape.cache { Mode::Cache } else { Mode::Strict };
        if let Some(asked) = options.mode.filter(|m| *m != mode) {
            return mismatch("mode", format!("{mode:?}"), format!("{asked:?}"));
        }
        let none = || "none".to_string();
        for (option, has, asked) in [
            ("fixed_key_len", engine.fixed.0, options.fixed_key_len),
            ("fixed_value_len", engine.fixed.1, options.fixed_value_len),
        ] {
            if let Some(asked) = asked.filter(|a| Some(*a) != has) {
                return mismatch(option, has.map_or_else(none, |h| h.to_string()), asked.to_string());
            }
        }
        let (segment, leaf) = (1u32 << engine.shape.segment_shift, 1u32 << engine.shape.leaf_shift);
        for (option, has, asked) in
            [("segment_bytes", segment, options.segment_bytes), ("leaf_bytes", leaf, options.leaf_bytes)]
        {
            if let Some(asked) = asked.filter(|a| *a != has) {
                return mismatch(option, has.to_string(), asked.to_string());
            }
        }
        if engine.read_only {
            return Ok(());
        }
        if let Some(asked) = options.max_bytes {
            check_max(asked, engine.shape, engine.fixed, engine.is_durable())?;
        }
        check_items(options, engine.shape, options.max_bytes.unwrap_or(engine.max_bytes()))
    }

    /// Whether the file lost its name between our finding and our locking it.
    fn is_removed(&self, path: &Path) -> bool {
        self.engine.life() & flag::REMOVED != 0 && !is_file_of(self.engine.mem.file(), path)
    }
}

/// Whether a path leads to this file.
pub(crate) fn is_file_of(file: &File, path: &Path) -> bool {
    let same = |ours: std::fs::Metadata| {
        std::fs::symlink_metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == (ours.dev(), ours.ino()))
    };
    file.metadata().is_ok_and(same)
}

pub(crate) fn boot_words() -> [u64; 2] {
    let id = boot::boot_id().unwrap_or_default();
    let word = |half: &[u8]| half.iter().rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
    [word(&id[..8]), word(&id[8..])]
}
