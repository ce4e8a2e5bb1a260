//! Who a process is, for messages. Nothing may be decided by it: ids are reused, and differ between
//! namespaces.

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

/// Name and state of a process; `None` if there is none of that id, or `/proc` does not show it.
pub fn describe(pid: u32) -> Option<Description> {
    // In a PID namespace that still sees the `/proc` of another, our number is somebody else's there.
    let name = if pid == self::pid() { "self".to_owned() } else { pid.to_string() };
    let stat = std::fs::read(format!("/proc/{name}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
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
    use crate::testing::{spawn, wait};

    #[test]
    fn names_with_anything_in_them() {
        let found = parse("12 (a ) (b) T 1 2 (3").unwrap();
        assert_eq!((found.name.as_str(), found.state), ("a ) (b", 'T'));
        for bad in ["", "12", "12 (a", "12 (a)"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn ourselves_and_nobody() {
        assert!(!describe(pid()).unwrap().name.is_empty());
        assert_eq!(describe(u32::MAX), None);
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
