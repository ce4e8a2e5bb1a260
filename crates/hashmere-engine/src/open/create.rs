//! A new store: options that cannot be are refused, the file is made without a name, and named when it is whole.

use super::fit::boot_words;
use super::{access, open_io, open_write, parts, Opened};
use crate::engine::{Engine, Layout, NewStore};
use crate::error::OpenError;
use crate::lease_set::Leases;
use crate::options::{Create, Mode, Options};
use hashmere_format::feed;
use hashmere_format::header::{at, flag, limit, Shape};
use hashmere_os::file::{self, Unpublished};
use hashmere_os::random;
use std::io;
use std::path::Path;

pub(super) fn check_options(options: &Options) -> Result<(), OpenError> {
    let bad = |option, reason: String| Err(OpenError::BadOption { option, reason });
    let power =
        |bytes: u32, least: u32, most: u32| bytes.is_power_of_two() && (least..=most).contains(&bytes.trailing_zeros());
    let segment = options.segment_bytes.unwrap_or(1 << limit::SEGMENT_SHIFT);
    if !power(segment, limit::SEGMENT_SHIFT_MIN, limit::SEGMENT_SHIFT_MAX) {
        return bad("segment_bytes", format!("{segment} is not a power of two from 4096 to 67108864"));
    }
    let leaf = options.leaf_bytes.unwrap_or((segment / 8).min(1 << limit::LEAF_SHIFT_MAX));
    if !power(leaf, limit::LEAF_SHIFT_MIN, limit::LEAF_SHIFT_MAX) || leaf > segment / 8 {
        return bad(
            "leaf_bytes",
            format!(
                "{leaf} is not a power of two from 256 to 32768 and at most an eighth of a segment ({segment} bytes)"
            ),
        );
    }
    if options.mode == Some(Mode::Cache) && options.max_bytes.is_none() && options.create == Create::Always {
        return bad("mode", "a cache needs max_bytes".into());
    }
    for (option, len) in [("fixed_key_len", options.fixed_key_len), ("fixed_value_len", options.fixed_value_len)] {
        if len == Some(u32::MAX) {
            return bad(option, "it must be below 4294967295".into());
        }
    }
    if options.feed.is_some_and(|bytes| !(feed::BYTES.0..=feed::BYTES.1).contains(&bytes)) {
        return bad("feed", "a feed has 1 MiB to 32 GiB".into());
    }
    if options.permissions.is_some_and(|p| p & !0o777 != 0 || p & 0o600 != 0o600) {
        return bad("permissions", "they must be within 0o777 and let the owner read and write".into());
    }
    Ok(())
}

pub(super) fn create(path: &Path, options: &Options) -> Result<Opened, OpenError> {
    let io = |action: &'static str| move |source: io::Error| open_io(path, action, source);
    if options.mode == Some(Mode::Cache) && options.max_bytes.is_none() {
        return Err(OpenError::BadOption { option: "mode", reason: "a cache needs max_bytes".into() });
    }
    let segment = options.segment_bytes.unwrap_or(1 << limit::SEGMENT_SHIFT);
    let durable = options.durable.unwrap_or(false);
    if durable && options.mode == Some(Mode::Cache) {
        let reason =
            "a cache drops what it likes, at once, and a durable store keeps what it has until a sync; choose one";
        return Err(OpenError::BadOption { option: "durable", reason: reason.into() });
    }
    let leaf = options.leaf_bytes.unwrap_or((segment / 8).min(1 << limit::LEAF_SHIFT_MAX));
    let shape = Shape {
        segment_shift: segment.trailing_zeros(),
        leaf_shift: leaf.trailing_zeros(),
        cache: options.mode == Some(Mode::Cache),
    };
    let seed = random::random_u64().map_err(io("draw a random seed"))?;
    let layout = Layout::new(shape, (options.fixed_key_len, options.fixed_value_len), durable, seed);
    if let Some(reason) = layout.contradiction() {
        return Err(OpenError::BadOption { option: "fixed_value_len", reason });
    }
    if let Some(max) = options.max_bytes {
        check_max(max, &layout)?;
    }
    check_items(options, &layout, options.max_bytes.unwrap_or(0))?;
    let new = NewStore {
        layout,
        max_bytes: options.max_bytes.unwrap_or(0),
        uuid: random::random_uuid().map_err(io("draw a random UUID"))?,
        status: if options.remove_on_last_close { flag::REMOVE_ON_LAST_CLOSE } else { 0 },
        boot: boot_words(),
    };
    let (unnamed, opened) = format(path, &new, options)?;
    if durable {
        opened.engine.flush().map_err(|error| open_write(path, error))?;
    }
    let folder = folder_of(path);
    match file::publish(unnamed, path) {
        Ok(_) if durable => file::sync_dir(folder).map(|()| opened).map_err(io("write the folder to disk of")),
        Ok(_) => Ok(opened),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(OpenError::AlreadyExists { path: path.into() })
        }
        Err(source) => Err(open_io(path, "name", source)),
    }
}

/// Refuses an index that the format or the maximum size has no room for. Nothing is built then.
pub(super) fn check_items(options: &Options, layout: &Layout, max: u64) -> Result<(), OpenError> {
    let Some(items) = options.expected_items else { return Ok(()) };
    let bad = |reason| Err(OpenError::BadOption { option: "expected_items", reason });
    let Some(leaves) = layout.leaves_for(items) else {
        return bad(format!("{items} items are more than an index with leaves of {} bytes holds", layout.leaf_bytes()));
    };
    let bytes = at::DATA + leaves * layout.leaf_bytes();
    if max != 0 && bytes > max {
        return bad(format!("an index for {items} items takes {bytes} bytes, and the maximum size is {max}"));
    }
    Ok(())
}

/// Refuses a maximum size that no store of this shape and these lengths can have.
pub(super) fn check_max(max: u64, layout: &Layout) -> Result<(), OpenError> {
    let least = layout.least_max();
    if max >= least {
        return Ok(());
    }
    let segment = layout.segment_bytes();
    let reason = format!(
        "{max} is too small; a store with segments of {segment} bytes and records of these lengths needs at least {least}"
    );
    Err(OpenError::BadOption { option: "max_bytes", reason })
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A new store that no process can open yet, because it has no name.
pub(crate) fn format(path: &Path, new: &NewStore, options: &Options) -> Result<(Unpublished, Opened), OpenError> {
    let io = |action: &'static str| move |source: io::Error| open_io(path, action, source);
    let unnamed = file::create_unnamed(folder_of(path), options.permissions.unwrap_or(0o600)).map_err(io("create"))?;
    let file = unnamed.file().try_clone().map_err(io("open"))?;
    let (mem, host, presence) = parts(path, file, options)?;
    let engine = Engine::format(mem, host, new, access(options)).map_err(|error| open_write(path, error))?;
    let opened = Opened { engine, presence, leases: Leases::default() };
    opened.prepare(path, options)?;
    Ok((unnamed, opened))
}
