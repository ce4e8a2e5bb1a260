//! What takes the room: the largest keys, sizes, remaining times, bytes by prefix.

mod count;
mod summary;
mod tree;

use hashmere::{Cursor, Filter, ReadError, Store};
use hashmere_os::clock;

pub use count::Count;
pub use summary::{Large, Summary};
pub use tree::Line;

/// Counts the keys of a store some at a time, in memory that does not grow with their number. Writers are not stopped;
/// keys that come or go during it are counted or not.
#[derive(Debug)]
pub struct BigKeys {
    summary: Summary,
    filter: Filter,
    /// Where it goes on; `None`: all are counted.
    cursor: Option<Cursor>,
}

/// How a [`BigKeys`] counts.
#[derive(Clone, Debug)]
pub struct BigKeysOptions {
    /// How many of the largest keys are kept.
    pub top: usize,
    /// A prefix ends with any of these bytes.
    pub separators: Vec<u8>,
    /// Up to this depth prefixes are distinguished.
    pub depth: usize,
    /// Only keys that begin with this.
    pub prefix: Vec<u8>,
    /// Where to begin.
    pub from: Cursor,
}

impl Default for BigKeysOptions {
    /// The ten largest keys, and prefixes of three levels that end with `:` or `/`.
    fn default() -> BigKeysOptions {
        BigKeysOptions { top: 10, separators: b":/".to_vec(), depth: 3, prefix: Vec::new(), from: Cursor::START }
    }
}

impl BigKeys {
    /// Nothing is counted yet.
    pub fn new(options: &BigKeysOptions) -> BigKeys {
        BigKeys {
            summary: Summary::new(options.top, &options.separators, options.depth, clock::now_ms()),
            filter: Filter::all().keys_only().prefix(options.prefix.clone()),
            cursor: Some(options.from),
        }
    }

    /// Goes on through this many places of the index, and until this many keys are counted in all.
    ///
    /// # Errors
    /// See [`ReadError`]: `BadCursor` of the one to begin at. Nothing more is counted then.
    pub fn step(&mut self, store: &Store, mut places: usize, keys_max: u64) -> Result<(), ReadError> {
        let Some(cursor) = self.cursor else { return Ok(()) };
        let mut scan = store.scan(cursor, self.filter.clone());
        while self.summary.keys() < keys_max {
            let Some(pair) = scan.next_within(&mut places) else { break };
            let pair = pair.inspect_err(|_| self.cursor = None)?;
            self.summary.add(&pair.key, &pair.metadata);
        }
        self.cursor = scan.cursor();
        Ok(())
    }

    /// Where it goes on; `None`: all keys are counted.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// What is counted so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}
