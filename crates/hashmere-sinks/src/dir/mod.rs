//! A folder of numbered files with every event, from which any moment can be restored.
//!
//! A line is the CRC-32C of what follows in eight hexadecimal digits, a space, and an event in its envelope. The first
//! line of a file says when it was begun and what the position was then; a line `moment`, in front of an event that has
//! no time of its own, when that came. A file that has reached its size is followed by the next number; none is ever
//! changed again.
//!
//! **After a crash** the last file may end in the middle of a line, or after a power cut with lines that never reached
//! the disk. On opening, everything from the first line on that is not whole is cut off; the position is that of the
//! last whole line, so the feed delivers the rest again. What was cut off and had more than one line is kept beside it
//! as `NUMBER.torn`.
//!
//! **On the disk** is, with [`DirSync::Batch`], every batch before the next one is written and before a flush returns;
//! with [`DirSync::Every`] what is older than that; with [`DirSync::Never`] what the system chose to write. A kill of
//! the process loses nothing of what was written, whatever is chosen.

mod read;

pub use read::{read_dir, DirEvents};

use crate::sink::{Position, Sink, SinkError};
use hashmere_feed::Event;
use hashmere_format::crc32c::Crc;
use hashmere_os::bytelock::ByteLocks;
use hashmere_os::clock;
use hashmere_os::file::sync_dir;
use read::{files, scan_file, FileScan};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// When what was written is put on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirSync {
    /// Each batch before the next.
    #[default]
    Batch,
    /// This long after it was written, or a little more.
    Every(Duration),
    /// When the system likes.
    Never,
}

/// See the module.
#[derive(Debug)]
pub struct DirSink {
    path: PathBuf,
    sync: DirSync,
    rotate_bytes: u64,
    lock: Option<ByteLocks>,
    file: Option<Current>,
    out: Vec<u8>,
    line: Vec<u8>,
}

#[derive(Debug)]
struct Current {
    file: File,
    number: u64,
    len: u64,
    position: Option<Position>,
    /// When the oldest bytes were written that are not on the disk.
    dirty: Option<Instant>,
}

/// Of a file that is to be followed by the next one.
const ROTATE: u64 = 64 << 20;

impl DirSink {
    /// Opens the folder, or makes it, when it is asked for its position.
    pub fn new(path: impl Into<PathBuf>) -> DirSink {
        DirSink {
            path: path.into(),
            sync: DirSync::default(),
            rotate_bytes: ROTATE,
            lock: None,
            file: None,
            out: Vec::new(),
            line: Vec::new(),
        }
    }

    /// When what was written is put on the disk.
    pub fn sync(mut self, sync: DirSync) -> DirSink {
        self.sync = sync;
        self
    }

    /// A file with this many bytes is followed by the next one (64 MiB).
    pub fn rotate_bytes(mut self, bytes: u64) -> DirSink {
        self.rotate_bytes = bytes;
        self
    }

    fn open(&mut self) -> Result<Option<Position>, SinkError> {
        fs::create_dir_all(&self.path)?;
        if self.lock.is_none() {
            let file = File::options().create(true).truncate(false).write(true).open(self.path.join("lock"))?;
            let lock = ByteLocks::new(file.as_fd())?;
            if !lock.try_exclusive(0)? {
                return Err(SinkError::Foreign(format!("{} is in use", self.path.display())));
            }
            self.lock = Some(lock);
        }
        self.file = None;
        while let Some((number, path)) = files(&self.path)?.pop() {
            let scan = scan_file(&path, number, &mut |_, _| Ok(()))?;
            if scan.started_ms.is_some() {
                let current = cut(number, &path, scan)?;
                let position = current.position;
                self.file = Some(current);
                return Ok(position);
            }
            // It was only just made when its process was killed.
            fs::remove_file(&path)?;
        }
        self.begin(1, None)?;
        Ok(None)
    }

    fn begin(&mut self, number: u64, position: Option<Position>) -> io::Result<()> {
        let path = self.path.join(format!("{number:020}.feed"));
        let mut file = File::options().create_new(true).append(true).open(path)?;
        let mut text = Vec::new();
        Position::text(position, &mut text);
        let head = format!(
            "{{\"control\":\"file\",\"number\":{number},\"ts_ms\":{},\"position\":\"{}\"}}",
            clock::now_ms(),
            String::from_utf8_lossy(&text)
        );
        let mut line = Vec::new();
        append_line(head.as_bytes(), &mut line);
        file.write_all(&line)?;
        if self.sync != DirSync::Never {
            file.sync_all()?;
            sync_dir(&self.path)?;
        }
        self.file = Some(Current { file, number, len: line.len() as u64, position, dirty: None });
        Ok(())
    }

    fn current(&mut self) -> Result<&mut Current, SinkError> {
        self.file.as_mut().ok_or_else(|| SinkError::lost("the folder is not open"))
    }

    fn sync_if_due(&mut self) -> Result<(), SinkError> {
        let sync = self.sync;
        let current = self.current()?;
        let is_due = current.dirty.is_some_and(|since| match sync {
            DirSync::Batch => true,
            DirSync::Every(time) => since.elapsed() >= time,
            DirSync::Never => false,
        });
        if is_due {
            current.file.sync_data()?;
            current.dirty = None;
        }
        Ok(())
    }
}

/// Opens a file behind its last whole line.
fn cut(number: u64, path: &Path, scan: FileScan) -> io::Result<Current> {
    let file = File::options().read(true).append(true).open(path)?;
    if scan.whole < file.metadata()?.len() {
        if scan.torn_lines > 1 {
            let bytes = fs::read(path)?;
            fs::write(path.with_extension("torn"), bytes.get(scan.whole as usize..).unwrap_or_default())?;
        }
        file.set_len(scan.whole)?;
        file.sync_all()?;
    }
    Ok(Current { file, number, len: scan.whole, position: scan.position, dirty: None })
}

/// Appends a line with its checksum.
fn append_line(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{:08x} ", Crc::EMPTY.bytes(text).value()).as_bytes());
    out.extend_from_slice(text);
    out.push(b'\n');
}

impl Sink for DirSink {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.open()
    }

    fn send(&mut self, events: &[Event]) -> Result<(), SinkError> {
        self.sync_if_due()?;
        let (rotate, sync) = (self.rotate_bytes, self.sync);
        let current = self.current()?;
        if current.len >= rotate {
            if sync != DirSync::Never {
                current.file.sync_all()?;
            }
            let (number, position) = (current.number + 1, current.position);
            self.begin(number, position)?;
        }
        self.out.clear();
        for event in events {
            if matches!(event, Event::Reset { .. } | Event::Synced { .. }) {
                let moment = format!("{{\"control\":\"moment\",\"ts_ms\":{}}}", clock::now_ms());
                append_line(moment.as_bytes(), &mut self.out);
            }
            self.line.clear();
            event.write_json(&mut self.line);
            append_line(&self.line, &mut self.out);
        }
        let current = self.file.as_mut().ok_or_else(|| SinkError::lost("the folder is not open"))?;
        current.dirty.get_or_insert_with(Instant::now);
        current.file.write_all(&self.out)?;
        current.len += self.out.len() as u64;
        if let Some(last) = events.last() {
            current.position = Position::behind(last);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.sync_if_due()
    }
}
