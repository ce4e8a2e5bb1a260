//! Files that appear complete or not at all, and files opened only if they are what they seem.

use crate::sys::{c_path, check, effective_user, retry};
use std::error::Error;
use std::ffi::{CStr, OsStr};
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The environment variable that names the namespace folder.
pub const DIR_VARIABLE: &str = "HASHMERE_DIR";

/// A file under construction, which has no name that a program would open. Dropped unpublished, it
/// vanishes.
#[derive(Debug)]
pub struct Unpublished {
    file: File,
    /// Its provisional name, where the file system knows no files without one.
    provisional: Option<PathBuf>,
}

/// Creates a file for reading and writing in the file system of `dir`, without a name.
///
/// Its permission bits are exactly `mode`; the umask does not apply. Where the file system has no
/// `O_TMPFILE` it gets a provisional name, which begins with `.hashmere-` and ends with
/// random digits; a process killed before [`publish`] leaves that name behind.
///
/// # Errors
/// Those of `open`: `NotFound`, `PermissionDenied`, `ReadOnlyFilesystem`, `StorageFull`, ...
pub fn create_unnamed(dir: &Path, mode: u32) -> io::Result<Unpublished> {
    let path = c_path(dir)?;
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that outlives the call; the mode is the one variadic argument.
    let opened = retry(|| unsafe { libc::open(path.as_ptr(), flags, mode) });
    let unpublished = match opened {
        Ok(fd) => Unpublished {
            // SAFETY: the descriptor is new, and has no other owner.
            file: unsafe { File::from_raw_fd(fd) },
            provisional: None,
        },
        // What kernels and file systems without O_TMPFILE answer. EISDIR: they saw only
        // O_DIRECTORY.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            create_provisional(dir, mode)?
        }
        Err(error) => return Err(error),
    };
    unpublished.file.set_permissions(Permissions::from_mode(mode))?;
    Ok(unpublished)
}

fn create_provisional(dir: &Path, mode: u32) -> io::Result<Unpublished> {
    loop {
        let path = provisional_name(dir)?;
        let created = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(&path);
        match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
            Ok(file) => return Ok(Unpublished { file, provisional: Some(path) }),
        }
    }
}

fn provisional_name(dir: &Path) -> io::Result<PathBuf> {
    Ok(dir.join(format!(".hashmere-{:016x}", crate::random::random_u64()?)))
}

/// Gives the file its name, in one step: a process that opens `path` sees the complete file or none.
///
/// An existing file is never replaced. `path` must lie in the file system of the folder given to
/// [`create_unnamed`]. The name is durable only after [`sync_dir`] of its folder.
///
/// # Errors
/// - `AlreadyExists`: the name is taken, so another process was faster; open its file. Our file is gone.
/// - Those of `link`. Our file is gone.
pub fn publish(unpublished: Unpublished, path: &Path) -> io::Result<File> {
    let target = c_path(path)?;
    match &unpublished.provisional {
        Some(name) => fs::hard_link(name, path)?,
        None => {
            let name = c_path(Path::new(&format!("/proc/self/fd/{}", unpublished.file.as_raw_fd())))?;
            let through_proc = link(libc::AT_FDCWD, &name, &target, libc::AT_SYMLINK_FOLLOW);
            match through_proc {
                // Without a mounted /proc. Older kernels want a capability for this one.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                    let fd = unpublished.file.as_raw_fd();
                    link(fd, c"", &target, libc::AT_EMPTY_PATH).map_err(|_| error)?;
                }
                outcome => outcome?,
            }
        }
    }
    unpublished.file.try_clone()
}

/// Like [`publish`], but a file that has the name `path` already is replaced in the same step.
///
/// The new file gets a provisional name first (as [`create_unnamed`] gives them); a process killed before the step
/// leaves that name behind.
///
/// # Errors
/// Those of `link` and `rename`. Our file is gone.
pub fn publish_over(mut unpublished: Unpublished, path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = match unpublished.provisional.take() {
        Some(name) => name,
        None => {
            let name = provisional_name(folder)?;
            publish(Unpublished { file: unpublished.file.try_clone()?, provisional: None }, &name)?;
            name
        }
    };
    fs::rename(&name, path).inspect_err(|_| {
        let _ = fs::remove_file(&name);
    })
}

fn link(dir: libc::c_int, from: &CStr, to: &CStr, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: both paths are C strings that outlive the call.
    check(unsafe { libc::linkat(dir, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), flags) }).map(drop)
}

impl Unpublished {
    /// The file, to be filled.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        // Published or not, the provisional name has served its purpose.
        if let Some(name) = &self.provisional {
            let _ = fs::remove_file(name);
        }
    }
}

/// Makes the names in a folder durable: those of files created or removed so far survive a loss of
/// power.
///
/// # Errors
/// Those of opening the folder and of `fsync`.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Why [`open_checked`] refused a path.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenRefusal {
    /// The last component is a symbolic link, which another user may point elsewhere at any time.
    Symlink,
    /// It is a folder.
    Directory,
    /// It is a named pipe.
    Fifo,
    /// It is a character or block device.
    Device,
    /// It is a socket.
    Socket,
    /// It belongs to another user, who is not root.
    ForeignOwner {
        /// That user.
        uid: u32,
    },
    /// The system call failed: `NotFound`, `PermissionDenied`, ...
    Io(io::Error),
}

impl fmt::Display for OpenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symlink => f.write_str("the path is a symbolic link"),
            Self::Directory => f.write_str("the path is a directory"),
            Self::Fifo => f.write_str("the path is a named pipe"),
            Self::Device => f.write_str("the path is a device"),
            Self::Socket => f.write_str("the path is a socket"),
            Self::ForeignOwner { uid } => write!(f, "the file belongs to another user (uid {uid})"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl Error for OpenRefusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Opens an existing regular file for reading, and for writing unless `read_only`.
///
/// It must not be a symbolic link (links in the folders leading to it are followed), and it must
/// belong to us or to root unless `allow_foreign_owner`. Its mode bits are not judged: a user who set
/// them wider shares it on purpose. All checks are made on the opened file, so no user
/// can exchange it in between; opening never blocks and never creates anything.
///
/// # Errors
/// One variant of [`OpenRefusal`] per reason.
pub fn open_checked(path: &Path, read_only: bool, allow_foreign_owner: bool) -> Result<File, OpenRefusal> {
    let file = OpenOptions::new()
        .read(true)
        .write(!read_only)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| explain(path, error))?;
    let metadata = file.metadata().map_err(OpenRefusal::Io)?;
    if let Some(refusal) = wrong_kind(metadata.file_type()) {
        return Err(refusal);
    }
    let uid = metadata.uid();
    if !(allow_foreign_owner || trusted(uid)) {
        return Err(OpenRefusal::ForeignOwner { uid });
    }
    Ok(file)
}

/// What distinguishes a file from every copy of it: inode number and time of birth. It stays the same under every name
/// and mount, after a rename and after a reboot, and a file that was restored, copied, or moved to another file system
/// has another. Never zero.
///
/// A file system that knows no time of birth (ext3, tmpfs before Linux 6.0) has the number of its device instead.
/// Snapshots of a whole file system or block device keep both.
///
/// # Errors
/// Those of looking at the file.
pub fn identity(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    let born = metadata.created().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let born = born.map_or(metadata.dev(), |since| since.as_nanos() as u64);
    // Each step is a bijection, so two files that share one of the two numbers never come out alike.
    let mix = |word: u64| (word ^ word >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    Ok(mix(mix(metadata.ino()) ^ born).max(1))
}

/// What lies behind a failed `open`, if it is the kind of the file.
fn explain(path: &Path, error: io::Error) -> OpenRefusal {
    // A link is ELOOP, a folder opened for writing EISDIR, a socket or an absent device ENXIO.
    let telling = [libc::ELOOP, libc::EISDIR, libc::ENXIO];
    if !error.raw_os_error().is_some_and(|code| telling.contains(&code)) {
        return OpenRefusal::Io(error);
    }
    fs::symlink_metadata(path)
        .ok()
        .and_then(|metadata| wrong_kind(metadata.file_type()))
        .unwrap_or(OpenRefusal::Io(error))
}

fn wrong_kind(kind: fs::FileType) -> Option<OpenRefusal> {
    if kind.is_file() {
        None
    } else if kind.is_symlink() {
        Some(OpenRefusal::Symlink)
    } else if kind.is_dir() {
        Some(OpenRefusal::Directory)
    } else if kind.is_fifo() {
        Some(OpenRefusal::Fifo)
    } else if kind.is_socket() {
        Some(OpenRefusal::Socket)
    } else {
        Some(OpenRefusal::Device)
    }
}

/// We trust ourselves, and root, who needs no trick to harm us.
fn trusted(uid: u32) -> bool {
    uid == effective_user() || uid == 0
}

/// Why [`namespace_dir`] refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The path is a symbolic link, which another user may point elsewhere at any time.
    Symlink {
        /// The folder that was refused.
        path: PathBuf,
    },
    /// The path is something else than a folder.
    NotADirectory {
        /// The path that was refused.
        path: PathBuf,
    },
    /// The folder belongs to another user, who is not root.
    ForeignOwner {
        /// The folder that was refused.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// The default folder is open to the group or to all users.
    Exposed {
        /// The folder that was refused.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A system call failed.
    Io {
        /// The folder in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symlink { path } => write!(f, "{} is a symbolic link", path.display()),
            Self::NotADirectory { path } => write!(f, "{} is not a directory", path.display()),
            Self::ForeignOwner { path, uid } => {
                write!(f, "{} belongs to another user (uid {uid})", path.display())
            }
            Self::Exposed { path, mode } => {
                write!(f, "{} is accessible to others (mode {mode:04o}, wanted 0700)", path.display())
            }
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl Error for NamespaceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The folder where stores opened by a bare name live: [`DIR_VARIABLE`] if set and not empty, else
/// `/dev/shm/hashmere-<effective uid>`.
///
/// A missing folder is created with mode 0700, though never its parents. It must be a real folder
/// of ours or of root's. The default one must be closed to all others; one that
/// the variable names may be shared, since the user chose it.
///
/// # Errors
/// One variant of [`NamespaceError`] per reason, each naming the folder.
pub fn namespace_dir() -> Result<PathBuf, NamespaceError> {
    let chosen = std::env::var_os(DIR_VARIABLE);
    namespace_dir_from(chosen.as_deref(), Path::new("/dev/shm"))
}

fn namespace_dir_from(chosen: Option<&OsStr>, default: &Path) -> Result<PathBuf, NamespaceError> {
    match chosen {
        Some(dir) if !dir.is_empty() => checked_dir(PathBuf::from(dir), true),
        _ => checked_dir(default.join(format!("hashmere-{}", effective_user())), false),
    }
}

/// Creates the folder if it is missing and judges it.
///
/// Judging by name is enough: once it is a folder of ours, the sticky bit of `/dev/shm` keeps
/// others from renaming it.
fn checked_dir(path: PathBuf, may_be_shared: bool) -> Result<PathBuf, NamespaceError> {
    let made = DirBuilder::new().mode(0o700).create(&path);
    let found = match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::symlink_metadata(&path),
    };
    let metadata = match found {
        Ok(metadata) => metadata,
        Err(source) => return Err(NamespaceError::Io { path, source }),
    };
    let (kind, uid, mode) = (metadata.file_type(), metadata.uid(), metadata.mode() & 0o7777);
    if kind.is_symlink() {
        Err(NamespaceError::Symlink { path })
    } else if !kind.is_dir() {
        Err(NamespaceError::NotADirectory { path })
    } else if !trusted(uid) {
        Err(NamespaceError::ForeignOwner { path, uid })
    } else if !may_be_shared && mode & 0o077 != 0 {
        Err(NamespaceError::Exposed { path, mode })
    } else {
        Ok(path)
    }
}

#[cfg(test)]
mod tests;
