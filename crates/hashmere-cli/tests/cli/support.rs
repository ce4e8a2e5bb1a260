//! What the tests share: a scratch folder, and running the command in it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A folder for stores and files, removed at the end.
pub struct Scratch(hashmere_testkit::scratch::Scratch);

impl Scratch {
    pub fn new() -> Scratch {
        Scratch(hashmere_testkit::scratch::Scratch::new("cli"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The command, not started yet: the one that was built with this test, or what `HASHMERE_COMMAND` names
    /// (`scripts/cross`).
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let named = std::env::var_os("HASHMERE_COMMAND");
        let mut command = Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_hashmere").into()));
        command
            .args(arguments)
            .env("HASHMERE_DIR", self.path().join("ns"))
            .env("NO_COLOR", "1")
            .current_dir(self.path());
        command
    }

    /// Runs the command with nothing on standard input.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ran {
        self.run_with(arguments, b"")
    }

    /// Runs the command with this on standard input.
    pub fn run_with<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // The command may end without reading.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran(output)
    }

    /// Runs it with a line of words.
    pub fn sh(&self, line: &str) -> Ran {
        self.run(line.split_whitespace())
    }
}

/// What a run came to.
pub struct Ran(pub Output);

impl Ran {
    pub fn code(&self) -> i32 {
        self.0.status.code().unwrap_or_else(|| panic!("ended by {}", self.0.status))
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Demands exit status 0 and gives the standard output.
    #[track_caller]
    pub fn bytes(self) -> Vec<u8> {
        assert_eq!(self.code(), 0, "{}", self.err());
        self.0.stdout
    }

    /// The same, as text.
    #[track_caller]
    pub fn text(self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    /// Demands this exit status, nothing on standard output, and this within standard error.
    #[track_caller]
    pub fn fails(self, code: i32, with: &str) {
        assert_eq!(self.code(), code, "{}", self.err());
        assert!(self.err().contains(with), "`{with}` is not in: {}", self.err());
        assert!(self.0.stdout.is_empty());
    }
}
