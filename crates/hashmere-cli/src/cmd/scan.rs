//! `scan`, `random`, `len`.

use super::{not_found, Outcome};
use crate::args::{Escape, StoreArgs};
use crate::failure::Failure;
use crate::output::{print_line, Output};
use clap::Args;
use hashmere::{Cursor, Filter};
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which keys.
#[derive(Args, Debug)]
pub struct FilterArgs {
    /// Only keys that start with this
    #[arg(short, long, value_name = "TEXT")]
    prefix: Option<OsString>,
    /// Only keys that match this pattern: * ? [a-z] [!a-z] and \ in front of a character meant as it is
    #[arg(short, long, value_name = "PATTERN")]
    glob: Option<OsString>,
    /// Only keys in which this regular expression is found; ^ and $ tie it to the ends of the key
    #[arg(short, long, value_name = "REGEX")]
    regex: Option<String>,
    /// Only keys of one of N parts, numbered from 0, such as 0/4: processes with a part each share a scan
    #[arg(long, value_name = "I/N", value_parser = parse_part)]
    part: Option<(u32, u32)>,
}

impl FilterArgs {
    /// As the engine wants it. A backslash in the pattern belongs to the pattern, so only the prefix is unescaped.
    pub fn filter(&self, escape: Escape) -> Result<Filter, Failure> {
        let mut filter = Filter::all();
        if let Some(prefix) = &self.prefix {
            filter = filter.prefix(escape.bytes("--prefix", prefix)?);
        }
        if let Some(glob) = &self.glob {
            let glob = std::os::unix::ffi::OsStrExt::as_bytes(glob.as_os_str());
            filter = filter.glob(glob).map_err(|error| Failure::Usage(format!("--glob: {error}")))?;
        }
        if let Some(regex) = &self.regex {
            filter = filter.regex(regex).map_err(|error| Failure::Usage(format!("--regex: {error}")))?;
        }
        if let Some((index, count)) = self.part {
            filter = filter.part(index, count).map_err(|error| Failure::Usage(format!("--part: {error}")))?;
        }
        Ok(filter)
    }

    /// Whether every key is meant.
    pub fn is_all(&self) -> bool {
        self.prefix.is_none() && self.glob.is_none() && self.regex.is_none() && self.part.is_none()
    }
}

/// Reads `I/N`.
fn parse_part(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    numbers.ok_or_else(|| "write for example 0/4, 1/4, 2/4 and 3/4 for the four parts".into())
}

/// List keys and values: lines of key TAB value, escaped as by `dump`.
///
/// The order is the store's own. A key that exists during the whole scan is listed exactly once, whatever others
/// write. When --limit ends the listing, a line `next: --cursor N` on standard error says how to go on.
#[derive(Args, Debug)]
pub struct Scan {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// At most this many
    #[arg(short, long, value_name = "N")]
    limit: Option<u64>,
    /// Only the keys
    #[arg(short, long)]
    keys_only: bool,
    /// Go on where an earlier scan stopped
    #[arg(short, long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    cursor: u64,
    /// Begin with this key, and leave out those that are before it in the store's own order
    #[arg(long, value_name = "KEY", conflicts_with = "cursor")]
    from_key: Option<OsString>,
    /// Only keys that --distance edits (insertions, deletions, substitutions of a character) make of this text
    #[arg(long, value_name = "TEXT")]
    similar: Option<OsString>,
    /// See --similar
    #[arg(long, value_name = "N", default_value_t = 1, requires = "similar")]
    distance: usize,
    /// JSON lines with key, value, flags, expiry, version and UID
    #[arg(short, long)]
    json: bool,
    #[command(flatten)]
    escape: Escape,
}

impl Scan {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        let mut filter = self.filter.filter(self.escape)?;
        if self.keys_only {
            filter = filter.keys_only();
        }
        let similar = self.similar.as_ref().map(|text| self.escape.bytes("--similar", text)).transpose()?;
        let store = self.store.reader()?;
        let cursor = match &self.from_key {
            Some(key) => {
                let key = self.escape.key(key)?;
                store.cursor_of(&key)?.ok_or_else(|| not_found(&key))?
            }
            None => Cursor(self.cursor),
        };
        let mut output = Output::new();
        let mut left = self.limit.unwrap_or(u64::MAX);
        let mut scan = store.scan(cursor, filter);
        while left > 0 {
            let Some(pair) = scan.next().transpose()? else { break };
            if similar.as_ref().is_none_or(|text| is_similar(text, &pair.key, self.distance)) {
                output.found(&pair, self.json, self.keys_only)?;
                left -= 1;
            }
        }
        output.finish()?;
        // After the last pair there is no cursor.
        if let (Some(next), false) = (scan.cursor(), quiet) {
            eprintln!("next: --cursor {}", next.0);
        }
        Ok(())
    }
}

/// Whether `distance` edits make one of the other: of characters if both are text, else of bytes.
fn is_similar(one: &[u8], other: &[u8], distance: usize) -> bool {
    let within = |lengths: usize, edits: &dyn Fn() -> usize| lengths <= distance && edits() <= distance;
    match (std::str::from_utf8(one), std::str::from_utf8(other)) {
        (Ok(one), Ok(other)) => {
            within(one.chars().count().abs_diff(other.chars().count()), &|| strsim::levenshtein(one, other))
        }
        _ => within(one.len().abs_diff(other.len()), &|| strsim::generic_levenshtein(&Bytes(one), &Bytes(other))),
    }
}

/// Bytes in the form in which the library takes them.
struct Bytes<'a>(&'a [u8]);

impl<'a> IntoIterator for &'a Bytes<'_> {
    type Item = &'a u8;
    type IntoIter = std::slice::Iter<'a, u8>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Print a random key and its value; if the store is empty the exit status is 1.
#[derive(Args, Debug)]
pub struct Random {
    #[command(flatten)]
    store: StoreArgs,
    /// Only the key
    #[arg(short, long)]
    keys_only: bool,
    /// A line of JSON with key, value, flags, expiry, version and UID
    #[arg(short, long)]
    json: bool,
}

impl Random {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let pair = self.store.reader()?.random()?.ok_or_else(|| Failure::NotMet("the store is empty".into()))?;
        let mut output = Output::new();
        output.found(&pair, self.json, self.keys_only)?;
        output.finish()
    }
}

/// Print the number of keys.
///
/// Keys that have expired count until they are compacted away. With --exact, or with a filter, which count those that
/// match, every key is looked at, and what has expired does not count.
#[derive(Args, Debug)]
pub struct Len {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// Leave out what has expired
    #[arg(long)]
    exact: bool,
    /// Threads that look, with a filter or --exact
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    #[command(flatten)]
    escape: Escape,
}

impl Len {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let store = self.store.reader()?;
        if self.filter.is_all() && !self.exact {
            return print_line(store.len().to_string());
        }
        let filter = self.filter.filter(self.escape)?.keys_only();
        let matching = AtomicU64::new(0);
        store.parallel_scan(usize::from(self.threads), &filter, |_| {
            matching.fetch_add(1, Ordering::Relaxed);
        })?;
        print_line(matching.into_inner().to_string())
    }
}
