//! The two text forms of a record.

use crate::{json, tsv, Record};
use hashmere::Pair;
use std::path::Path;

/// The text form of a record, one on each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `key TAB value [TAB flags [TAB expires_at_ms]]`, escaped with `\\`, `\t`, `\n`, `\r` and `\xNN`.
    Tsv,
    /// A JSON object: `key`, `value`, `flags`, `expires_at_ms`; `key_base64`, `value_base64` for bytes that are not
    /// UTF-8.
    Jsonl,
}

impl Format {
    /// The format that the name of a file suggests: [`Jsonl`](Format::Jsonl) if it ends in `.jsonl`, `.ndjson` or
    /// `.json`, else [`Tsv`](Format::Tsv).
    pub fn of(file: &Path) -> Format {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("jsonl" | "ndjson" | "json") => Format::Jsonl,
            _ => Format::Tsv,
        }
    }

    /// Appends the line of a pair, with its newline.
    pub fn write(self, pair: &Pair, out: &mut Vec<u8>) {
        match self {
            Format::Tsv => tsv::write(pair, out),
            Format::Jsonl => json::write_record(pair, out),
        }
    }

    /// Reads a line (without its newline).
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(self, line: &[u8]) -> Result<Record, String> {
        match self {
            Format::Tsv => tsv::parse(line),
            Format::Jsonl => json::parse(line),
        }
    }
}
