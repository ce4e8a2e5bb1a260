//! A record, and its two text forms.

use crate::{json, tsv};
use hashmere::{Attributes, Pair, Ttl};
use std::path::Path;

/// One key with all that a dump keeps of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The caller's flags.
    pub flags: u32,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
}

impl Record {
    /// The attributes to store it with; `None` if it has none.
    pub fn attributes(&self) -> Option<Attributes> {
        let ttl = self.expires_at_ms.map_or(Ttl::Never, Ttl::At);
        (self.flags != 0 || ttl != Ttl::Never).then_some(Attributes { flags: self.flags, ttl, ..Attributes::NONE })
    }
}

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
