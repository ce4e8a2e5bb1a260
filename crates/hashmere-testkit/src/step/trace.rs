//! A child process that is executed one machine instruction at a time.

use std::io;
#[cfg(target_arch = "x86_64")]
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The signal with which a traced process says that the operation begins, and that it is over. It ignores it otherwise.
pub const MARKER: i32 = libc::SIGUSR1;

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
    pid: i32,
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
        let tracee = Tracee { pid: child.id() as i32 };
        assert_eq!(tracee.wait(), libc::SIGTRAP, "the stop at exec");
        // Without it, the end of this process would let the tracee go on.
        tracee.request(libc::PTRACE_SETOPTIONS, libc::PTRACE_O_EXITKILL as usize);
        tracee.request(libc::PTRACE_CONT, 0);
        assert_eq!(tracee.wait(), MARKER, "the begin of the operation");
        tracee
    }

    /// Executes up to `count` instructions, fewer if the end of the operation comes before: how many, and its next instruction.
    pub fn steps(&self, count: u64) -> (u64, Stop) {
        for done in 0..count {
            if self.step() == Stop::Marker {
                return (done, Stop::Marker);
            }
        }
        (count, Stop::Stepped)
    }

    fn step(&self) -> Stop {
        self.request(libc::PTRACE_SINGLESTEP, 0);
        match self.wait() {
            libc::SIGTRAP => Stop::Stepped,
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
        self.request(libc::PTRACE_CONT, 0);
        let signal = self.wait();
        memory.write_all_at(&byte, address).expect("take the breakpoint away");
        match signal {
            libc::SIGTRAP => {
                let mut registers = self.registers();
                registers.rip = address;
                self.request_at(libc::PTRACE_SETREGS, (&raw mut registers).cast());
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
    fn registers(&self) -> libc::user_regs_struct {
        // SAFETY: numbers only, which may all be zero.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        self.request_at(libc::PTRACE_GETREGS, (&raw mut registers).cast());
        registers
    }

    #[cfg(target_arch = "x86_64")]
    fn request_at(&self, request: libc::c_uint, registers: *mut libc::c_void) {
        // SAFETY: the only requests used here read or fill a `user_regs_struct`, which is what the pointer leads to.
        let result = unsafe { libc::ptrace(request, self.pid, 0usize, registers) };
        assert_eq!(result, 0, "ptrace request {request}: {}", io::Error::last_os_error());
    }

    /// Lets go of it in such a way that it stays stopped as any stopped process does. It is to be reaped by the caller.
    pub fn leave_stopped(self) -> Stopped {
        self.request(libc::PTRACE_DETACH, libc::SIGSTOP as usize);
        let stopped = Stopped { pid: self.pid };
        std::mem::forget(self);
        stopped
    }

    fn wait(&self) -> i32 {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        let pid = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) };
        assert_eq!(pid, self.pid, "waitpid: {}", io::Error::last_os_error());
        assert!(libc::WIFSTOPPED(status), "the traced process ended by itself: status {status:#x}");
        libc::WSTOPSIG(status)
    }

    fn request(&self, request: libc::c_uint, data: usize) {
        // SAFETY: none of the requests used here writes to memory of this process.
        let result = unsafe { libc::ptrace(request, self.pid, 0usize, data) };
        assert_eq!(result, 0, "ptrace request {request}: {}", io::Error::last_os_error());
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
    pid: i32,
}

impl Stopped {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// Lets it go on, to its end.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn finish(self) {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result; the process is our child and not reaped yet.
        let reaped = unsafe {
            libc::kill(self.pid, libc::SIGCONT);
            libc::waitpid(self.pid, &mut status, 0)
        };
        assert_eq!((reaped, status), (self.pid, 0), "it ended with status {status:#x} after it was stopped");
        std::mem::forget(self);
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_and_reap(self.pid);
    }
}

fn kill_and_reap(pid: i32) {
    let mut status = 0;
    // SAFETY: the process is our child and was not reaped yet; `status` is a valid place for the result.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        while libc::waitpid(pid, &mut status, libc::__WALL) == pid && !libc::WIFSIGNALED(status) {}
    }
}

/// Runs in the child before exec. Addresses are the same in every run, so that the instructions are, too.
fn be_traced() -> io::Result<()> {
    // SAFETY: no memory is involved.
    let results = unsafe {
        libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0usize, 0usize)
    };
    if results == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
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

/// Keeps this process and those that it starts on one processor: a step is two changes of process, and on two processors
/// each of them would have to be woken up.
pub fn stay_on_one_processor() {
    // SAFETY: a cpu_set_t may be all zero; the calls read and write only that.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let processor = libc::sched_getcpu().max(0) as usize;
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}
