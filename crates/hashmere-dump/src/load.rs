//! From a file into a store.

use crate::{Format, LoadError, Record};
use hashmere::{Options, Store};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Records of one bulk call: at most this many, and no more once this many bytes are together.
const BATCH_RECORDS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// Loads a file into the store of a name or path, opened, and created if the options allow it, for this call: see
/// [`Records::load`](crate::Records::load). A file that cannot be opened creates no store.
///
/// # Errors
/// See [`LoadError`].
pub fn load(
    name_or_path: impl AsRef<Path>,
    options: &Options,
    path: impl AsRef<Path>,
    format: Option<Format>,
) -> Result<u64, LoadError> {
    let input = Input::open(path.as_ref())?;
    load_from(&options.open(name_or_path)?, input, format, &mut |_| ())
}

/// Lines to be loaded.
pub struct Input {
    lines: Box<dyn BufRead>,
    name: String,
    format: Format,
    len: Option<u64>,
}

impl Input {
    /// Those of a file.
    ///
    /// # Errors
    /// [`LoadError::Io`].
    pub fn open(path: &Path) -> Result<Input, LoadError> {
        let name = path.display().to_string();
        let failed = |source| LoadError::Io { action: format!("open {name}"), source, loaded: 0 };
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        let lines = Box::new(BufReader::with_capacity(256 << 10, file));
        Ok(Input { lines, name, format: Format::of(path), len })
    }

    /// Those of something else, with what it is called in messages.
    pub fn new(lines: impl BufRead + 'static, name: &str) -> Input {
        Input { lines: Box::new(lines), name: name.into(), format: Format::of(&PathBuf::new()), len: None }
    }

    /// How many bytes there are, if that is known.
    pub fn len(&self) -> Option<u64> {
        self.len
    }

    /// Whether it is known that there are none.
    pub fn is_empty(&self) -> bool {
        self.len == Some(0)
    }
}

/// Stores all records of an input; returns how many there are. `each` is called with the bytes of each line.
///
/// # Errors
/// See [`LoadError`].
pub fn load_from(
    store: &Store,
    mut input: Input,
    format: Option<Format>,
    each: &mut dyn FnMut(u64),
) -> Result<u64, LoadError> {
    let format = format.unwrap_or(input.format);
    let mut loader = Loader { store, batch: Vec::new(), bytes: 0, loaded: 0 };
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let bytes = match input.lines.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(bytes) => bytes as u64,
            Err(source) => {
                loader.flush()?;
                return Err(LoadError::Io { action: format!("read {}", input.name), source, loaded: loader.loaded });
            }
        };
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        match format.parse(text) {
            Ok(record) => loader.push(record)?,
            Err(reason) => {
                loader.flush()?;
                return Err(LoadError::Malformed { file: input.name, line: number, reason, loaded: loader.loaded });
            }
        }
        each(bytes);
    }
    loader.flush()?;
    Ok(loader.loaded)
}

/// Collects records for bulk calls. Every line is a record, so what is loaded is always the lines from the first on.
struct Loader<'a> {
    store: &'a Store,
    batch: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    loaded: u64,
}

impl Loader<'_> {
    fn push(&mut self, record: Record) -> Result<(), LoadError> {
        if let Some(attributes) = record.attributes() {
            // The bulk call attaches nothing. What came before goes first: the last line of a key must win.
            self.flush()?;
            let stored = self.store.set_with(&record.key, &record.value, attributes);
            stored.map_err(|error| LoadError::store(error, self.loaded, self.loaded))?;
            self.loaded += 1;
            return Ok(());
        }
        self.bytes += record.key.len() + record.value.len();
        self.batch.push((record.key, record.value));
        if self.batch.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        let tried = self.loaded + self.batch.len() as u64;
        self.store.set_many(&self.batch).map_err(|error| LoadError::store(error, self.loaded, tried))?;
        self.loaded = tried;
        self.batch.clear();
        self.bytes = 0;
        Ok(())
    }
}
