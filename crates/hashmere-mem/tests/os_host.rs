//! The real host: claims exclude, die with their process, and are not inherited.

#![cfg(not(miri))]
#![allow(clippy::unwrap_used)]

use hashmere_mem::{Host, OsHost};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

fn unnamed() -> File {
    let made = hashmere_os::file::create_unnamed(Path::new("/dev/shm"), 0o600).unwrap();
    made.file().try_clone().unwrap()
}

/// Runs `body` in a forked child and returns that child's id.
fn spawn(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `body` only, and ends without running any destructor of ours.
    match unsafe { libc::fork() } {
        // SAFETY: ends the child.
        0 => unsafe { libc::_exit(body()) },
        child => child,
    }
}

fn exit_status(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the pointer is to an int.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    libc::WEXITSTATUS(status)
}

#[test]
fn claims_exclude() {
    let file = unnamed();
    let (a, b) = (OsHost::new(file.try_clone().unwrap()).unwrap(), OsHost::new(file.try_clone().unwrap()).unwrap());
    drop(file);
    assert!(!a.is_claimed(3).unwrap());
    assert!(a.try_claim(3).unwrap());
    assert!(!a.try_claim(3).unwrap(), "held by this very handle");
    assert!(!b.try_claim(3).unwrap());
    assert!(a.is_claimed(3).unwrap() && b.is_claimed(3).unwrap());
    b.release(3);
    assert!(a.is_claimed(3).unwrap() && !b.try_claim(3).unwrap());
    a.release(3);
    assert!(b.try_claim(3).unwrap() && b.try_claim(OsHost::SLOTS - 1).unwrap());
    drop(b);
    // A child that another test has just forked closes what it inherited of `b` when it gets a processor.
    let begin = Instant::now();
    while !a.try_claim(3).unwrap() {
        assert!(begin.elapsed() < Duration::from_secs(120), "no process has it any more");
    }
    assert_eq!(a.try_claim(OsHost::SLOTS).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn read_only_files_can_be_looked_at() {
    let made = hashmere_os::file::create_unnamed(Path::new("/dev/shm"), 0o600).unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(made.file()));
    let writer = OsHost::new(made.file().try_clone().unwrap()).unwrap();
    let reader = OsHost::new(File::open(path).unwrap()).unwrap();
    assert!(writer.try_claim(1).unwrap());
    assert!(reader.is_claimed(1).unwrap() && !reader.is_claimed(2).unwrap());
    assert_eq!(reader.try_claim(2).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert!(!writer.is_claimed(2).unwrap());
}

#[test]
fn one_thread_of_many_gets_a_slot() {
    let host = OsHost::new(unnamed()).unwrap();
    for slot in 0..100 {
        let won: usize = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..4).map(|_| scope.spawn(|| host.try_claim(slot).unwrap())).collect();
            tries.into_iter().map(|one| usize::from(one.join().unwrap())).sum()
        });
        assert_eq!(won, 1);
    }
}

#[test]
fn a_child_starts_without_claims_and_the_parent_keeps_its_claims() {
    let file = unnamed();
    let (host, other) =
        (OsHost::new(file.try_clone().unwrap()).unwrap(), OsHost::new(file.try_clone().unwrap()).unwrap());
    assert!(host.try_claim(1).unwrap());
    let child = spawn(|| {
        let claim = |slot| host.try_claim(slot).ok();
        host.release(1); // not ours to release
        if claim(1) != Some(false) || host.is_claimed(1).ok() != Some(true) {
            return 1;
        }
        if claim(2) != Some(true) || claim(2) != Some(false) {
            return 2;
        }
        // And so for the child's child.
        let grandchild = spawn(|| {
            let claim = |slot| host.try_claim(slot).ok();
            i32::from([claim(1), claim(2), claim(3)] != [Some(false), Some(false), Some(true)])
        });
        3 * exit_status(grandchild)
    });
    assert_eq!(exit_status(child), 0);
    assert!(other.is_claimed(1).unwrap());
    assert!(other.try_claim(2).unwrap() && other.try_claim(3).unwrap(), "both died");
    assert!(!host.try_claim(2).unwrap());
}

#[test]
fn a_surviving_child_does_not_keep_the_claims_of_its_parent() {
    let file = unnamed();
    let host = OsHost::new(file.try_clone().unwrap()).unwrap();
    let (mut hold, mut release) = UnixStream::pair().unwrap();
    let parent = spawn(|| {
        let Ok(own) = OsHost::new(file.try_clone().unwrap()) else {
            return 1;
        };
        if !own.try_claim(9).unwrap_or(false) {
            return 2;
        }
        spawn(|| {
            let _ = hold.write(b"r");
            // SAFETY: closes this process's copy of the other end, or the read would never end.
            unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(&release)) };
            let _ = hold.read(&mut [0]);
            0
        });
        0
    });
    assert_eq!(exit_status(parent), 0);
    // What the grandchild inherited is closed by the time that it runs.
    release.read_exact(&mut [0]).unwrap();
    assert!(host.try_claim(9).unwrap());
    drop(release);
}

#[test]
fn describes_ourselves() {
    let host = OsHost::new(unnamed()).unwrap();
    let info = host.describe(host.pid());
    assert_eq!(info.pid, std::process::id());
    assert!(info.name.is_some() && info.state.is_some());
    assert_eq!(host.describe(u32::MAX).name, None);
    assert!(host.now_ms() > 1_600_000_000_000);
    assert!(host.monotonic() <= host.monotonic());
}
