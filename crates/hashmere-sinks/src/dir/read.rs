//! Reading a folder of events.

use crate::sink::{Position, SinkError};
use hashmere_feed::Event;
use hashmere_format::crc32c::Crc;
use serde_json::Value as Json;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The files of a folder, in order.
pub(super) fn files(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".feed")?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort();
    Ok(found)
}

/// How a line begins that says when the event behind it came.
const MOMENT: &[u8] = b"{\"control\":\"moment\",\"ts_ms\":";

/// What a file is.
#[derive(Debug, Default)]
pub(super) struct FileScan {
    /// Bytes of its whole lines.
    pub whole: u64,
    /// Lines behind them, whole or not.
    pub torn_lines: u64,
    /// When it was begun; `None`: its first line is not whole.
    pub started_ms: Option<u64>,
    /// Behind its last whole line.
    pub position: Option<Position>,
}

/// The text of a whole line.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, text) = (line.get(..8)?, line.get(9..)?);
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (line[8] == b' ' && Crc::EMPTY.bytes(text).value() == sum).then_some(text)
}

/// Reads a file up to the first line that is not whole, and calls `each` with its events.
pub(super) fn scan_file(
    path: &Path,
    number: u64,
    each: &mut dyn FnMut(Event, u64) -> Result<(), SinkError>,
) -> Result<FileScan, SinkError> {
    let mut reader = BufReader::with_capacity(256 << 10, File::open(path)?);
    let (mut scan, mut line, mut is_torn) = (FileScan::default(), Vec::new(), false);
    let mut moment = 0;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(scan);
        }
        let Some(text) = checked(&line).filter(|_| !is_torn) else {
            is_torn = true;
            scan.torn_lines += 1;
            continue;
        };
        if scan.started_ms.is_none() {
            let Some((ms, position)) = read_head(text, number)? else {
                return Err(SinkError::Refused(format!("{} is no file of a feed", path.display())));
            };
            (scan.started_ms, scan.position) = (Some(ms), position);
        } else if let Some(ms) = text.strip_prefix(MOMENT) {
            moment = std::str::from_utf8(ms).ok().and_then(|ms| ms.trim_end_matches('}').parse().ok()).unwrap_or(0);
        } else {
            let event = Event::from_json(text)
                .map_err(|error| SinkError::Refused(format!("{}, byte {}: {error}", path.display(), scan.whole)))?;
            scan.position = Position::behind(&event);
            let ts_ms = match &event {
                Event::Read(change) | Event::Change(change) => change.ts_ms,
                Event::Clear { ts_ms, .. } => *ts_ms,
                _ => moment,
            };
            each(event, ts_ms)?;
        }
        scan.whole += line.len() as u64;
    }
}

/// The first line of a file: when it was begun, and the position then.
fn read_head(text: &[u8], number: u64) -> Result<Option<(u64, Option<Position>)>, SinkError> {
    let Ok(json) = serde_json::from_slice::<Json>(text) else { return Ok(None) };
    if json["control"] != "file" || json["number"].as_u64() != Some(number) {
        return Ok(None);
    }
    let position = Position::from_text(json["position"].as_str().unwrap_or_default().as_bytes())?;
    Ok(json["ts_ms"].as_u64().map(|ms| (ms, position)))
}

/// What a folder holds.
#[derive(Debug)]
pub struct DirEvents {
    /// When the first file was begun, in milliseconds since 1970.
    pub started_ms: u64,
    /// How many events there are.
    pub events: u64,
    /// Behind the last one.
    pub position: Option<Position>,
}

/// Calls `each` with every event of a folder, in order, and with its time in milliseconds since 1970. A torn tail of
/// the last file is passed over: another process may be writing it.
///
/// # Errors
/// [`SinkError::Refused`]: it is no such folder, a file is missing, or one is damaged before its end. Those of `each`
/// and of reading.
pub fn read_dir(
    path: &Path,
    mut each: impl FnMut(Event, u64) -> Result<(), SinkError>,
) -> Result<DirEvents, SinkError> {
    let files = files(path)?;
    let mut all = DirEvents { started_ms: 0, events: 0, position: None };
    let Some((first, _)) = files.first() else {
        return Err(SinkError::Refused(format!("{} has no files of a feed", path.display())));
    };
    for (at, (number, path)) in files.iter().enumerate() {
        if *number != first + at as u64 {
            return Err(SinkError::Refused(format!("the file of the feed before {} is missing", path.display())));
        }
        let events = &mut all.events;
        let scan = scan_file(path, *number, &mut |event, ts_ms| {
            *events += 1;
            each(event, ts_ms)
        })?;
        if scan.torn_lines != 0 && at + 1 != files.len() {
            let text = format!("{} is damaged at byte {}, before its end", path.display(), scan.whole);
            return Err(SinkError::Refused(text));
        }
        if at == 0 {
            all.started_ms = scan.started_ms.unwrap_or(0);
        }
        if scan.started_ms.is_some() {
            all.position = scan.position;
        }
    }
    Ok(all)
}
