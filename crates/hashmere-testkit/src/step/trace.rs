//! A child process that is executed one machine instruction at a time.

use crate::forked::wait;
use nix::sched::{sched_getcpu, sched_setaffinity, CpuSet};
use nix::sys::personality::{self, Persona};
use nix::sys::ptrace;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use std::io;
#[cfg(target_arch = "x86_64")]
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The signal with which a traced process says that the operation begins, and that it is over. It ignores it otherwise.
pub const MARKER: Signal = Signal::SIGUSR1;

/// The instruction that stops a traced process.
#[cfg(target_arch = "x86_64")]
const BREAKPOINT: u8 = 0xcc;

/// Where a traced process stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Behind the instruction.
    Stepped,
    /// At a marker.
    Marker,
}

/// A traced process, stopped. Dropping it kills it.
#[derive(Debug)]
pub struct Tracee {
    pid: Pid,
}

impl Tracee {
    /// Starts a program that marks the begin and the end of an operation; it is stopped at the begin.
    ///
    /// # Panics
    /// If this machine does not allow that, or the program ends before.
    #[allow(clippy::zombie_processes, reason = "reaped when dropped")]
    pub fn start(program: &str, arguments: &[&str], path: &Path) -> Tracee {
        let mut command = Command::new(program);
        command.args(arguments).arg(path).stdin(Stdio::null());
        // SAFETY: only system calls between fork and exec.
        unsafe { command.pre_exec(be_traced) };
        let child = command.spawn().expect("start the program that is to be traced");
        let tracee = Tracee { pid: Pid::from_raw(child.id() as i32) };
        assert_eq!(tracee.wait(), Signal::SIGTRAP, "the stop at exec");
        // Without it, the end of this process would let the tracee go on.
        ptrace::setoptions(tracee.pid, ptrace::Options::PTRACE_O_EXITKILL).expect("set the option");
        tracee.go_on();
        assert_eq!(tracee.wait(), MARKER, "the begin of the operation");
        tracee
    }

    /// Executes up to `count` instructions, fewer if the end of the operation comes before: how many, and its next
    /// instruction.
    pub fn steps(&self, count: u64) -> (u64, Stop) {
        for done in 0..count {
            if self.step() == Stop::Marker {
                return (done, Stop::Marker);
            }
        }
        (count, Stop::Stepped)
    }

    fn step(&self) -> Stop {
        ptrace::step(self.pid, None).expect("step");
        match self.wait() {
            Signal::SIGTRAP => Stop::Stepped,
            MARKER => Stop::Marker,
            signal => panic!("the operation was stopped by signal {signal}"),
        }
    }

    /// The address of the next instruction; `None` where this is not known how to ask for.
    pub(super) fn address(&self) -> Option<u64> {
        #[cfg(target_arch = "x86_64")]
        return Some(self.registers().rip);
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Runs at full speed until it is before the instruction at an address, or at a marker. `None`: no breakpoint can
    /// be set there, and nothing was executed.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn run_to(&self, address: u64) -> Option<Stop> {
        let memory = std::fs::File::options().read(true).write(true).open(format!("/proc/{}/mem", self.pid)).ok()?;
        let mut byte = [0];
        memory.read_exact_at(&mut byte, address).ok()?;
        memory.write_all_at(&[BREAKPOINT], address).ok()?;
        self.go_on();
        let signal = self.wait();
        memory.write_all_at(&byte, address).expect("take the breakpoint away");
        match signal {
            Signal::SIGTRAP => {
                let mut registers = self.registers();
                registers.rip = address;
                ptrace::setregs(self.pid, registers).expect("go back to the instruction");
                Some(Stop::Stepped)
            }
            MARKER => Some(Stop::Marker),
            signal => panic!("the operation was stopped by signal {signal}"),
        }
    }

    /// The same.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn run_to(&self, _address: u64) -> Option<Stop> {
        None
    }

    #[cfg(target_arch = "x86_64")]
    fn registers(&self) -> nix::libc::user_regs_struct {
        ptrace::getregs(self.pid).expect("read the registers")
    }

    /// Lets go of it in such a way that it stays stopped as any stopped process does. It is to be reaped by the caller.
    pub fn leave_stopped(self) -> Stopped {
        ptrace::detach(self.pid, Signal::SIGSTOP).expect("let go");
        let stopped = Stopped { pid: self.pid };
        std::mem::forget(self);
        stopped
    }

    fn go_on(&self) {
        ptrace::cont(self.pid, None).expect("let it go on");
    }

    fn wait(&self) -> Signal {
        match waitpid(self.pid, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::Stopped(_, signal)) => signal,
            other => panic!("the traced process ended by itself: {other:?}"),
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        kill_and_reap(self.pid);
    }
}

/// A process that is stopped and not traced. Dropping it kills it.
#[derive(Debug)]
pub struct Stopped {
    pid: Pid,
}

impl Stopped {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw() as u32
    }

    /// Lets it go on, to its end.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn finish(self) {
        // It is our child and not reaped yet.
        kill(self.pid, Signal::SIGCONT).expect("let it go on");
        wait(self.pid);
        std::mem::forget(self);
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_and_reap(self.pid);
    }
}

/// Of a child that was not reaped yet.
fn kill_and_reap(pid: Pid) {
    let _ = kill(pid, Signal::SIGKILL);
    while let Ok(status) = waitpid(pid, Some(WaitPidFlag::__WALL)) {
        if matches!(status, WaitStatus::Signaled(..)) {
            break;
        }
    }
}

/// Runs in the child before exec. Addresses are the same in every run, so that the instructions are, too.
fn be_traced() -> io::Result<()> {
    // Some containers forbid it.
    let _ = personality::set(Persona::ADDR_NO_RANDOMIZE);
    Ok(ptrace::traceme()?)
}

/// Whether processes may be traced here; says so if not.
pub fn is_allowed() -> bool {
    let mut command = Command::new("true");
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(be_traced) };
    match command.spawn() {
        Ok(mut child) => {
            let killed = child.kill().and_then(|()| child.wait());
            killed.is_ok()
        }
        Err(error) => {
            println!("skipped: processes may not be traced here ({error})");
            false
        }
    }
}

/// Keeps this process and those that it starts on one processor: a step is two changes of process, and on two
/// processors each of them would have to be woken up.
pub fn stay_on_one_processor() {
    let mut one = CpuSet::new();
    let chosen = sched_getcpu().and_then(|processor| one.set(processor));
    // It is slower if that fails.
    let _ = chosen.and_then(|()| sched_setaffinity(Pid::from_raw(0), &one));
}
