//! `-d`: the server in the background. The command starts itself again, waits until that one listens, and ends.

use crate::cmd::Outcome;
use crate::failure::{code, Failure};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const CHILD: &str = "HASHMERE_SERVE_CHILD";

/// Whether this is the one in the background.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Starts the one in the background.
pub fn start() -> Outcome {
    let failed = |error: std::io::Error| Failure::io("start the server in the background", &error);
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(std::env::args_os().skip(1)).env(CHILD, "1").process_group(0);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut said = [0; 1];
    let ready = child.stdout.take().map(|mut out| out.read(&mut said));
    match ready {
        Some(Ok(1)) => Ok(()),
        _ => {
            // It ended, and has said why.
            let _ = child.wait();
            Err(Failure::error(code::SERVE, "the server did not start"))
        }
    }
}

/// Tells the command that waits, if there is one, that the server listens.
pub fn tell_parent() {
    if is_child() {
        let mut out = std::io::stdout();
        // The command may have been interrupted; the server goes on.
        let _ = out.write_all(b"\n").and_then(|()| out.flush());
    }
}
