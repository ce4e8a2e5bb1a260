//! What tests look at from outside a store: sizes, contents, folders, and small file systems.

use hashmere_format::header::at;
use nix::mount::{mount, umount2, MntFlags, MsFlags};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Apparent size of a file in bytes.
pub fn apparent(path: &Path) -> u64 {
    fs::metadata(path).expect("look at the store file").len()
}

/// Bytes that the file really occupies.
pub fn allocated(path: &Path) -> u64 {
    fs::metadata(path).expect("look at the store file").blocks() * 512
}

/// Makes a file that a test filled pass for the one that its bytes were read from, which was in use: a store knows its
/// copies.
pub fn adopt(file: &fs::File) {
    let identity = hashmere_os::file::identity(file).expect("look at the store file");
    file.write_all_at(&identity.to_le_bytes(), at::FILE).expect("write into the store file");
}

/// Writes to standard error past the test harness's capture.
pub(crate) fn write_stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Name of the mount point of a [`SmallDisk`].
const DISK: &str = "disk";

/// A small file system in memory of its own, gone when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one of this many bytes on a new folder in `parent`. `None`, with the reason printed, where this user
    /// may not mount.
    pub fn mount(parent: &Path, bytes: u64) -> Option<SmallDisk> {
        let path = parent.join(DISK);
        fs::create_dir(&path).expect("make a mount point");
        let options = format!("size={bytes},mode=700");
        if let Err(reason) = mount(Some("tmpfs"), &path, Some("tmpfs"), MsFlags::empty(), Some(options.as_str())) {
            println!("skipped: cannot mount a small tmpfs here ({reason})");
            return None;
        }
        Some(SmallDisk { path })
    }

    /// The same, but ext4 on a file of this many bytes: a file system that keeps what it had already allocated of a
    /// request that it refuses. `None`, with the reason printed, where this user or this machine cannot.
    pub fn ext4(parent: &Path, bytes: u64) -> Option<SmallDisk> {
        let (image, path) = (parent.join("disk.ext4"), parent.join(DISK));
        fs::create_dir(&path).expect("make a mount point");
        let sized = fs::File::create(&image).and_then(|file| file.set_len(bytes));
        sized.expect("make an image");
        let run = |program: &str, arguments: &[&str]| {
            let done = Command::new(program).args(arguments).arg(&image).stdin(Stdio::null()).output();
            done.map_err(|error| error.to_string()).and_then(|done| match done.status.success() {
                true => Ok(()),
                false => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
            })
        };
        let target = path.display().to_string();
        let made = run("mkfs.ext4", &["-q", "-F", "-m", "0"]);
        let mounted = made.and_then(|()| run("mount", &["-o", "loop", "--target", &target, "--source"]));
        if let Err(reason) = mounted {
            println!("skipped: cannot mount a small ext4 here ({reason})");
            return None;
        }
        Some(SmallDisk { path })
    }

    /// Its root folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.path);
    }
}

/// Unmounts what is mounted in the place of a [`SmallDisk`] of this folder, if anything does.
pub(crate) fn unmount_in(parent: &Path) {
    unmount(&parent.join(DISK));
}

fn unmount(path: &Path) {
    // This works while something still maps a file of it.
    let _ = umount2(path, MntFlags::MNT_DETACH);
}
