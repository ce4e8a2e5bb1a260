//! Arguments that several commands share: which store, how it is created, keys and values, attributes.

use crate::failure::Failure;
use crate::text;
use clap::{Args, ValueEnum, ValueHint};
use hashmere::{Attributes, Mode, Options, Store, Ttl};
use hashmere_dump::Format;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

const STORE_HEADING: &str = "Store options";

/// The store of a command.
#[derive(Args, Debug)]
pub struct StoreArgs {
    /// Name of the store; or its path, if it has a slash or ends in .mere
    #[arg(value_name = "STORE", value_hint = ValueHint::AnyPath)]
    pub store: PathBuf,
    /// Open a file that another user owns
    #[arg(long, help_heading = STORE_HEADING)]
    pub allow_foreign_owner: bool,
}

impl StoreArgs {
    fn options(&self) -> Options {
        let options = Options::new().on_recovery(show_rebuild);
        if self.allow_foreign_owner {
            options.allow_foreign_owner()
        } else {
            options
        }
    }

    /// Opens the existing store read-only.
    pub fn reader(&self) -> Result<Store, Failure> {
        Ok(self.options().read_only().open(&self.store)?)
    }

    /// Opens the existing store for reading and writing.
    pub fn writer(&self) -> Result<Store, Failure> {
        Ok(self.options().create(false).open(&self.store)?)
    }
}

/// The store of a command that writes, but never creates one.
#[derive(Args, Debug)]
pub struct WriterArgs {
    /// Which.
    #[command(flatten)]
    pub store: StoreArgs,
    /// How long to wait for a key that another process holds, for example 500ms (default 5s)
    #[arg(long, value_name = "TIME", value_parser = text::parse_duration, help_heading = STORE_HEADING)]
    pub busy_timeout: Option<Duration>,
}

impl WriterArgs {
    fn options(&self) -> Options {
        let options = self.store.options();
        match self.busy_timeout {
            Some(timeout) => options.busy_timeout(timeout),
            None => options,
        }
    }

    /// Opens the existing store for reading and writing.
    pub fn writer(&self) -> Result<Store, Failure> {
        Ok(self.options().create(false).open(&self.store.store)?)
    }
}

/// `--mode`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ModeArg {
    /// A full store refuses writes
    Strict,
    /// A full store drops what has expired or has not been used (needs --max-bytes)
    Cache,
}

/// `--format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FormatArg {
    /// key TAB value [TAB flags [TAB expires_at_ms]], escaped with \\ \t \n \r \xNN
    Tsv,
    /// One JSON object a line: key, value, flags, expires_at_ms (key_base64, value_base64 if not UTF-8)
    Jsonl,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Format {
        match format {
            FormatArg::Tsv => Format::Tsv,
            FormatArg::Jsonl => Format::Jsonl,
        }
    }
}

/// How a store is created.
#[derive(Args, Debug)]
pub struct CreateOptions {
    /// Memory that the file may take, for example 64M; an existing store gets this maximum if its data fit, a cache
    /// evicts
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size, help_heading = STORE_HEADING)]
    pub max_bytes: Option<u64>,
    /// What a store does when it is full
    #[arg(long, value_enum, help_heading = STORE_HEADING)]
    pub mode: Option<ModeArg>,
    /// Create the index large enough for this many items
    #[arg(long, value_name = "N", help_heading = STORE_HEADING)]
    pub expected_items: Option<u64>,
    /// Every key has exactly this many bytes
    #[arg(long, value_name = "BYTES", help_heading = STORE_HEADING)]
    pub fixed_key_len: Option<u32>,
    /// Every value has exactly this many bytes
    #[arg(long, value_name = "BYTES", help_heading = STORE_HEADING)]
    pub fixed_value_len: Option<u32>,
    /// What `sync` has returned for survives a power cut (a file on a disk; 8 bytes more a record)
    #[arg(long, help_heading = STORE_HEADING)]
    pub durable: bool,
    /// Permissions of the created file, octal (default 600)
    #[arg(long, value_name = "OCTAL", value_parser = parse_octal, help_heading = STORE_HEADING)]
    pub permissions: Option<u32>,
    /// Bytes of a segment, the unit of cleaning and giving back: a power of two from 4K to 64M (default 256K)
    #[arg(long, value_name = "SIZE", value_parser = parse_size_u32, help_heading = STORE_HEADING, hide_short_help = true)]
    pub segment_bytes: Option<u32>,
    /// Bytes of a leaf of the index, the unit of growth: a power of two from 256 to 32K (the default)
    #[arg(long, value_name = "SIZE", value_parser = parse_size_u32, help_heading = STORE_HEADING, hide_short_help = true)]
    pub leaf_bytes: Option<u32>,
    /// Keep about this many bytes of changes for consumers, for example 64M; a feed that is there stays as it is
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size, help_heading = STORE_HEADING)]
    pub feed: Option<u64>,
    /// Changes are kept with their values
    #[arg(long, requires = "feed", help_heading = STORE_HEADING)]
    pub feed_values: bool,
}

/// The store of a command that writes, and creates it if it is missing.
#[derive(Args, Debug)]
pub struct CreatorArgs {
    /// Which.
    #[command(flatten)]
    pub writer: WriterArgs,
    /// How.
    #[command(flatten)]
    pub create: CreateOptions,
}

impl CreatorArgs {
    /// The options as given.
    pub fn options(&self) -> Options {
        self.create.added_to(self.writer.options())
    }

    /// Opens the store, creating it unless `existing`.
    pub fn open(&self, no_create: bool) -> Result<Store, Failure> {
        let options = if no_create { self.options().create(false) } else { self.options() };
        Ok(options.open(&self.writer.store.store)?)
    }
}

impl CreateOptions {
    /// These options, and others.
    pub fn added_to(&self, mut options: Options) -> Options {
        let create = self;
        if let Some(bytes) = create.max_bytes {
            options = options.max_bytes(bytes);
        }
        if let Some(mode) = create.mode {
            options = options.mode(match mode {
                ModeArg::Strict => Mode::Strict,
                ModeArg::Cache => Mode::Cache,
            });
        }
        if let Some(items) = create.expected_items {
            options = options.expected_items(items);
        }
        if let Some(bytes) = create.fixed_key_len {
            options = options.fixed_key_len(bytes);
        }
        if let Some(bytes) = create.fixed_value_len {
            options = options.fixed_value_len(bytes);
        }
        if create.durable {
            options = options.durable();
        }
        if let Some(mode) = create.permissions {
            options = options.permissions(mode);
        }
        if let Some(bytes) = create.segment_bytes {
            options = options.segment_bytes(bytes);
        }
        if let Some(bytes) = create.leaf_bytes {
            options = options.leaf_bytes(bytes);
        }
        if let Some(bytes) = create.feed {
            options = options.feed(bytes).feed_values(create.feed_values);
        }
        options
    }
}

/// Whether keys and values are escaped text.
#[derive(Args, Debug, Clone, Copy)]
pub struct Escape {
    /// Keys and values are text with the escapes \xNN \\ \t \n \r \0 (also those printed)
    #[arg(short, long)]
    pub escape: bool,
}

impl Escape {
    /// The bytes that an argument means.
    pub fn bytes(self, what: &str, argument: &OsStr) -> Result<Vec<u8>, Failure> {
        if !self.escape {
            return Ok(argument.as_bytes().to_vec());
        }
        text::unescape(argument.as_bytes()).map_err(|e| Failure::Usage(format!("in {what}: {e}")))
    }

    /// The bytes of a KEY.
    pub fn key(self, argument: &OsStr) -> Result<Vec<u8>, Failure> {
        self.bytes("KEY", argument)
    }

    /// The bytes of a VALUE: standard input if it is missing or `-`.
    pub fn value(self, argument: Option<&OsString>) -> Result<Vec<u8>, Failure> {
        match argument {
            Some(argument) if argument != "-" => self.bytes("VALUE", argument),
            _ => {
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes).map_err(|e| Failure::io("read standard input", &e))?;
                if self.escape {
                    bytes = text::unescape(&bytes).map_err(|e| Failure::Usage(format!("in standard input: {e}")))?;
                }
                Ok(bytes)
            }
        }
    }
}

/// `--ttl` and `--expires-at`.
#[derive(Args, Debug, Clone, Copy)]
pub struct TtlArgs {
    /// Expires this long from now: 250ms, 5s, 1m30s, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = text::parse_duration, conflicts_with = "expires_at")]
    pub ttl: Option<Duration>,
    /// Expires at this time, in milliseconds since 1970
    #[arg(long, value_name = "MS")]
    pub expires_at: Option<u64>,
}

impl TtlArgs {
    /// The expiry asked for.
    pub fn ttl(self) -> Ttl {
        match (self.ttl, self.expires_at) {
            (Some(time), _) => Ttl::After(time),
            (_, Some(at)) => Ttl::At(at),
            _ => Ttl::Never,
        }
    }
}

/// What a write attaches to its value.
#[derive(Args, Debug, Clone, Copy)]
pub struct AttributeArgs {
    /// When it expires.
    #[command(flatten)]
    pub ttl: TtlArgs,
    /// 32 bits that are stored with the value
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub flags: u32,
}

impl AttributeArgs {
    /// As the engine wants it.
    pub fn attributes(self) -> Attributes {
        Attributes { flags: self.flags, ttl: self.ttl.ttl(), ..Attributes::NONE }
    }
}

/// Says on standard error how far the rebuild of a durable store is, one line for each tenth, if it takes a while.
pub fn show_rebuild(done: u64, of: u64) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SHOWN: AtomicU64 = AtomicU64::new(0);
    const LONG: u64 = 1000;
    let tenth = (done * 10).checked_div(of).unwrap_or(10);
    if of >= LONG && SHOWN.swap(tenth, Ordering::Relaxed) < tenth {
        eprintln!("hashmere: the machine went down while the store was open; rebuilding it: {} %", tenth * 10);
    }
}

fn parse_octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("expected permissions in octal, such as 600 or 660".into()),
    }
}

fn parse_size_u32(text: &str) -> Result<u32, String> {
    u32::try_from(text::parse_size(text)?).map_err(|_| "too large a size".into())
}
