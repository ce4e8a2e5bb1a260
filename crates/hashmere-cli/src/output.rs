//! Standard output: buffered, with a reader that may go away.

use crate::failure::Failure;
use crate::text;
use hashmere::{Pair, Stored};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{BufWriter, IsTerminal, StdoutLock, Write};

/// Buffered standard output.
pub struct Output {
    stream: BufWriter<StdoutLock<'static>>,
    scratch: Vec<u8>,
}

impl Output {
    /// Takes standard output.
    pub fn new() -> Output {
        Output { stream: BufWriter::with_capacity(64 << 10, std::io::stdout().lock()), scratch: Vec::new() }
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).map_err(|e| Failure::output(&e))
    }

    /// Writes a line of text.
    pub fn line(&mut self, text: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.raw(text.as_ref())?;
        self.raw(b"\n")
    }

    /// Writes bytes in escaped form.
    pub fn escaped(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.scratch.clear();
        text::escape_into(bytes, &mut self.scratch);
        self.stream.write_all(&self.scratch).map_err(|e| Failure::output(&e))
    }

    /// Writes a value: as it is or escaped, and a newline if one was asked for or the reader is a terminal.
    pub fn value(&mut self, value: &[u8], escape: bool, newline: bool) -> Result<(), Failure> {
        if escape {
            self.escaped(value)?;
        } else {
            self.raw(value)?;
        }
        if newline || std::io::stdout().is_terminal() {
            self.raw(b"\n")?;
        }
        Ok(())
    }

    /// Writes a line `key TAB value`, escaped.
    pub fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.escaped(key)?;
        self.raw(b"\t")?;
        self.escaped(value)?;
        self.raw(b"\n")
    }

    /// Writes what a write did as a line of JSON.
    pub fn stored(&mut self, stored: &Stored) -> Result<(), Failure> {
        let json = serde_json::json!({
            "version": stored.version.0, "uid": stored.uid.0, "created": stored.created,
        });
        self.line(json.to_string())
    }

    /// Writes a pair in the form of a scan: JSON, only the key, or `key TAB value`.
    pub fn found(&mut self, pair: &Pair, json: bool, keys_only: bool) -> Result<(), Failure> {
        if json {
            let mut line = Vec::new();
            hashmere_dump::json::write_pair(pair, !keys_only, &mut line);
            self.raw(&line)
        } else if keys_only {
            self.escaped(&pair.key)?;
            self.raw(b"\n")
        } else {
            self.pair(&pair.key, &pair.value)
        }
    }

    /// Sends what is buffered, so that it is seen now.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.stream.flush().map_err(|e| Failure::output(&e))
    }

    /// Sends what is buffered. Must be called at the end: what is left unsent when the value is dropped may be lost.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()
    }
}

/// Prints one line and is done.
pub fn print_line(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut output = Output::new();
    output.line(text)?;
    output.finish()
}

/// A bar on standard error, drawn only if that is a terminal.
pub fn progress_bar(records: u64, quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(records), target);
    let style = "{wide_bar:.cyan/blue} {human_pos}/{human_len} records, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}
