//! Worker processes: started, spoken to over pipes, stopped, killed, and always reaped.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// How long a worker may take for anything that has no limit of its own: one that takes longer hangs, however busy the
/// machine is.
pub const LIMIT: Duration = Duration::from_secs(240);

/// A worker process. Everything it writes is read at once by a thread, so it never blocks on a full pipe and
/// nothing that it wrote before its death is lost. Dropping kills and reaps it.
///
/// Start workers from the thread of the test itself: the kernel kills a worker when the *thread* that started
/// it ends.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    role: String,
}

/// How a worker ended, and what it said since it was last listened to.
#[derive(Debug)]
pub struct Ended {
    /// Exit status.
    pub status: ExitStatus,
    /// The lines that were not taken yet.
    pub lines: Vec<String>,
}

impl Ended {
    /// The same, when it ended well.
    ///
    /// # Panics
    /// If it did not.
    pub fn ok(self, what: &str) -> Vec<String> {
        assert!(self.status.success(), "{what}: worker ended with {}: {:?}", self.status, self.tail());
        self.lines
    }

    /// Whether this signal killed it.
    pub fn killed_by(&self, signal: Signal) -> bool {
        self.status.signal() == Some(signal as i32)
    }

    fn tail(&self) -> &[String] {
        &self.lines[self.lines.len().saturating_sub(5)..]
    }
}

impl Worker {
    /// Starts the worker program (see [`worker!`](crate::worker)) in a role with arguments.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(program: &str, role: &str, arguments: &[&dyn ToString]) -> Worker {
        Worker::start_by(Command::new(program), role, arguments)
    }

    /// The same in a PID namespace of its own, where it is process 1; this one is only its parent, and takes it along
    /// when it is killed. To be used where [`namespaces_allowed`] says so.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_in_namespace(program: &str, role: &str, arguments: &[&dyn ToString]) -> Worker {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", program]);
        Worker::start_by(command, role, arguments)
    }

    fn start_by(mut command: Command, role: &str, arguments: &[&dyn ToString]) -> Worker {
        command.arg(role).args(arguments.iter().map(|argument| argument.to_string()));
        command.env("HASHMERE_SEED", crate::rng::run_seed().to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start the worker program");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("a piped stdout");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || read_lines(stdout, &sender));
        Worker { child, stdin, lines, role: role.to_owned() }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process id of the only child that it has.
    ///
    /// # Panics
    /// If it has none or several.
    pub fn only_child(&self) -> Pid {
        let path = format!("/proc/{0}/task/{0}/children", self.pid());
        Pid::from_raw(std::fs::read_to_string(path).expect("its children").trim().parse().expect("one child"))
    }

    /// The next line that it says.
    ///
    /// # Panics
    /// If it says nothing in time, or has ended.
    pub fn hear(&mut self, limit: Duration) -> String {
        match self.lines.recv_timeout(limit) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("worker {} {} said nothing for {limit:?}", self.role, self.pid()),
            Err(RecvTimeoutError::Disconnected) => {
                panic!("worker {} {} ended: {:?}", self.role, self.pid(), self.child.wait())
            }
        }
    }

    /// Waits for this line.
    ///
    /// # Errors
    /// How it ended, or what else it did. Do not use it any more then.
    pub fn answers(&mut self, line: &str, limit: Duration) -> Result<(), String> {
        match self.lines.recv_timeout(limit) {
            Ok(heard) if heard == line => Ok(()),
            Ok(heard) => Err(format!("said {heard:?}")),
            Err(RecvTimeoutError::Timeout) => Err(format!("hung for {limit:?}")),
            Err(RecvTimeoutError::Disconnected) => Err(format!("ended: {:?}", self.child.wait())),
        }
    }

    /// Whether it has said something that was not heard yet; the line, if so.
    pub fn heard(&mut self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// Waits for exactly this line.
    ///
    /// # Panics
    /// If another comes, or none in time.
    pub fn expect(&mut self, line: &str) {
        let heard = self.hear(LIMIT);
        assert_eq!(heard, line, "worker {} {}", self.role, self.pid());
    }

    /// Says a line to it.
    ///
    /// # Panics
    /// If it does not listen any more.
    pub fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("not told to finish before");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("talk to the worker");
    }

    /// Closes its standard input, which the roles take as the wish that they end.
    pub fn no_more(&mut self) {
        self.stdin = None;
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If that fails.
    pub fn signal(&self, signal: Signal) {
        // The child is not reaped yet, so the pid is still its own.
        let sent = kill(Pid::from_raw(self.pid() as i32), signal);
        sent.unwrap_or_else(|error| panic!("{signal} to {}: {error}", self.pid()));
    }

    /// Stops it and returns when it is stopped.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        crate::limits::wait_until("the worker is stopped", LIMIT, || self.state() == 'T');
    }

    /// Lets it go on after [`stop`](Self::stop).
    pub fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Its state as the kernel names it: R, S, D, T, Z ...
    pub fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?')
    }

    /// Kills it with SIGKILL and reaps it.
    pub fn kill(mut self) -> Ended {
        let _ = self.child.kill();
        self.reap()
    }

    /// Closes its standard input and waits until it has ended by itself.
    ///
    /// # Panics
    /// If it has not ended in time.
    pub fn finish(mut self, limit: Duration) -> Ended {
        self.no_more();
        let role = self.role.clone();
        crate::limits::wait_until(&format!("worker {role} ended"), limit, || {
            matches!(self.child.try_wait(), Ok(Some(_)))
        });
        self.reap()
    }

    fn reap(&mut self) -> Ended {
        let status = self.child.wait().expect("reap the worker");
        // A child that the worker forked may hold the pipe open for a moment longer.
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(LIMIT) {
            lines.push(line);
        }
        Ended { status, lines }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this user may make PID namespaces here; says so if not.
pub fn namespaces_allowed() -> bool {
    let made = Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    let allowed = made.is_ok_and(|status| status.success());
    if !allowed {
        println!("skipped: `unshare --pid --fork` is not permitted here");
    }
    allowed
}

/// Passes complete lines on; a last line without its end is what a killed worker did not say.
fn read_lines(pipe: impl Read, sender: &mpsc::Sender<String>) {
    let mut pipe = BufReader::with_capacity(1 << 16, pipe);
    let mut line = String::new();
    while let Ok(1..) = pipe.read_line(&mut line) {
        if line.pop() != Some('\n') || sender.send(std::mem::take(&mut line)).is_err() {
            return;
        }
    }
}

/// Ends this process when the thread that started it ends. To be called first in a worker.
pub fn die_with_parent() {
    set_pdeathsig(Signal::SIGKILL).expect("end with the parent");
}
