//! Who a process is, for messages. Nothing may be decided by it: ids are reused, and differ between
//! namespaces. And what a server asks of its own: time used, limits, user, sockets handed over.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What `/proc` shows of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its command name: at most 15 bytes, chosen by itself.
    pub name: String,
    /// Its state letter: `R` running, `S` sleeping, `D` in the kernel, `T` stopped, `t` traced, `Z`
    /// dead but not reaped.
    pub state: char,
}

/// This process's id in its own PID namespace.
pub fn pid() -> u32 {
    std::process::id()
}

/// Time that this process has had on a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// In its own code.
    pub user: Duration,
    /// In the kernel for it.
    pub system: Duration,
}

/// How much time this process has had on a core, all threads together.
pub fn usage() -> Usage {
    let mut raw = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `raw` has room for what the call writes; zeroes are a value of that type should it fail.
    let raw = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, raw.as_mut_ptr());
        raw.assume_init()
    };
    let time = |time: libc::timeval| {
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_usec).unwrap_or(0) * 1000)
    };
    Usage { user: time(raw.ru_utime), system: time(raw.ru_stime) }
}

/// Raises the number of files that this process may open to at least `wanted`, as far as the hard limit allows; returns
/// what it is then.
///
/// # Errors
/// What the system says.
pub fn raise_file_limit(wanted: u64) -> io::Result<u64> {
    let limit = file_limit()?;
    if limit.rlim_cur < wanted {
        // Who may raise the hard limit does.
        let higher = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
        let within = libc::rlimit { rlim_cur: wanted.min(limit.rlim_max), rlim_max: limit.rlim_max };
        // SAFETY: both are whole structures of that type.
        let raised = unsafe {
            libc::setrlimit(libc::RLIMIT_NOFILE, &higher) == 0 || libc::setrlimit(libc::RLIMIT_NOFILE, &within) == 0
        };
        if !raised {
            return Err(io::Error::last_os_error());
        }
    }
    file_limit().map(|limit| limit.rlim_cur)
}

fn file_limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is what the call fills.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Keeps what this process has in memory now from being paged out. (What it maps later is not meant: of a store, far
/// more is reserved than there is.)
///
/// # Errors
/// What the system says: it is a matter of rights, and of the limit on locked memory.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: locking changes no content.
    match unsafe { libc::mlockall(libc::MCL_CURRENT) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Becomes another user for good: groups, group, user.
///
/// # Errors
/// There is no such user, or the system refuses.
pub fn become_user(name: &str) -> io::Result<()> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name ends in a zero; the result is looked at before anything could replace it.
    let (uid, gid) = unsafe {
        let entry = libc::getpwnam(name.as_ptr());
        if entry.is_null() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such user"));
        }
        ((*entry).pw_uid, (*entry).pw_gid)
    };
    // SAFETY: plain calls; in this order each is still allowed.
    let done = unsafe { libc::initgroups(name.as_ptr(), gid) == 0 && libc::setgid(gid) == 0 && libc::setuid(uid) == 0 };
    if done {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The listening sockets that a service manager hands over (`LISTEN_PID`, `LISTEN_FDS`): none if they are not for us.
/// May be called once; must be called before other threads open files.
pub fn handed_sockets() -> Vec<OwnedFd> {
    const FIRST: i32 = 3;
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let ours = number("LISTEN_PID") == Some(pid());
    let count = number("LISTEN_FDS").filter(|count| *count <= 64).unwrap_or(0) as i32;
    if !ours || TAKEN.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    let is_open = |fd: &i32| {
        // SAFETY: asks about a number; marks it not to be inherited further.
        unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) == 0 }
    };
    // SAFETY: by the protocol these descriptors are open and were given to this process alone; they are taken once.
    (FIRST..FIRST + count).filter(is_open).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect()
}

/// Has something done when this process exits in order (not when it is killed, nor in `_exit`). It may not unwind.
pub fn at_exit(act: extern "C" fn()) {
    // SAFETY: a function that lives as long as the program. Without room for it nothing is done at the exit.
    unsafe { libc::atexit(act) };
}

static STOP: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT and SIGTERM do not end this process, but make [`is_asked_to_stop`] true and interrupt its sleeps.
/// A second one ends it.
pub fn catch_stop() {
    extern "C" fn note(signal: libc::c_int) {
        if STOP.swap(true, Ordering::Relaxed) {
            // SAFETY: may be called in a handler.
            unsafe { libc::_exit(128 + signal) };
        }
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler touches an atomic only; the structure is zero but for what is set here, and outlives the
        // call.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Whether a signal has asked this process to stop, after [`catch_stop`].
pub fn is_asked_to_stop() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Name and state of a process; `None` if there is none of that id, or `/proc` does not show it.
pub fn describe(pid: u32) -> Option<Description> {
    // In a PID namespace that still sees the `/proc` of another, our number is that of another process there.
    let name = if pid == self::pid() { "self".to_owned() } else { pid.to_string() };
    let stat = std::fs::read(format!("/proc/{name}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
}

/// The command line of a process, its arguments separated by spaces, control characters left out; `None` as in
/// [`describe`], or if it shows none (a kernel thread, a process that is not reaped).
pub fn command_line(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let arguments = line.split(|byte| *byte == 0).filter(|argument| !argument.is_empty());
    let text: Vec<_> = arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    let text = text.join(" ").replace(char::is_control, "");
    (!text.is_empty()).then_some(text)
}

/// The line is `pid (name) state ...`, and the name may hold spaces and parentheses: it ends at the
/// *last* `)`.
fn parse(stat: &str) -> Option<Description> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    Some(Description { name: name.to_owned(), state: after.trim_start().chars().next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::{spawn, wait};

    #[test]
    fn names_with_anything_in_them() {
        let found = parse("12 (a ) (b) T 1 2 (3").unwrap();
        assert_eq!((found.name.as_str(), found.state), ("a ) (b", 'T'));
        for bad in ["", "12", "12 (a", "12 (a)"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn time_used_grows_and_the_file_limit_does_not_shrink() {
        let before = usage();
        let mut sum = 0u64;
        while usage().user <= before.user {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let now = raise_file_limit(0).unwrap();
        assert!(raise_file_limit(now).unwrap() >= now);
        assert!(become_user("no such user").is_err() && handed_sockets().is_empty());
    }

    #[test]
    fn ourselves_and_no_process() {
        assert!(!describe(pid()).unwrap().name.is_empty());
        assert_eq!(describe(u32::MAX), None);
        let program = std::env::args().next().unwrap();
        assert!(command_line(pid()).unwrap().starts_with(&program));
        assert_eq!(command_line(u32::MAX), None);
    }

    #[test]
    fn a_stopped_process_shows() {
        let child = spawn(|| loop {
            // SAFETY: sleeps until a signal comes.
            unsafe { libc::pause() };
        });
        let mut status = 0;
        // SAFETY: stops the child forked above and waits until it has stopped.
        unsafe {
            libc::kill(child, libc::SIGSTOP);
            libc::waitpid(child, &mut status, libc::WUNTRACED);
        }
        assert_eq!(describe(child as u32).unwrap().state, 'T');
        // SAFETY: ends that child.
        unsafe { libc::kill(child, libc::SIGKILL) };
        assert_eq!(wait(child), 1000 + libc::SIGKILL);
    }
}
