//! Where the lines go: standard output or another descriptor, files with rotation, a function.

use crate::error::LogError;
use crate::format::Format;
use crate::line::LogLine;
use crate::output::{Carrier, Room, Sent};
use hashmere_mem::{MapMem, Mem};
use hashmere_os::send;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A file that lines are appended to, and what happens to it when it is large.
#[derive(Clone, Debug)]
pub struct LogFile {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
}

impl LogFile {
    /// This file, which grows forever. It is made, with mode 0600, if it is not there.
    pub fn new(path: impl Into<PathBuf>) -> LogFile {
        LogFile { path: path.into(), max_bytes: u64::MAX, keep: 0 }
    }

    /// Before a line that would give it more than `max_bytes` bytes it becomes `path.1`, what was that `path.2`, and so
    /// on up to `path.keep`; the oldest goes. With `keep` 0 it is begun again. A line longer than that has a file of
    /// its own; and what a drainer who died had on its way (128 KiB at most) goes to the file where it was.
    pub fn rotate(self, max_bytes: u64, keep: u32) -> LogFile {
        LogFile { max_bytes, keep, ..self }
    }
}

type Call = Box<dyn FnMut(&LogLine) + Send>;
type Filter = Box<dyn Fn(&LogLine) -> bool + Send>;

enum To {
    Descriptor(Stream),
    File(LogFile, Option<Stream>),
    Call(Call),
}

/// Where a drainer writes lines, in which form, and which.
pub struct Sink {
    to: To,
    format: Format,
    filter: Option<Filter>,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Sink {
    /// Standard output of this process, as it is now.
    ///
    /// # Errors
    /// [`Output`](LogError::Output) if it is closed, or there are no descriptors left.
    pub fn stdout(format: Format) -> Result<Sink, LogError> {
        let copy = io::stdout().as_fd().try_clone_to_owned().map_err(LogError::output("use standard output"))?;
        Ok(Sink::descriptor(copy, format))
    }

    /// Any descriptor: a pipe, a file, a socket, a terminal. It is written to at its present offset: for a file that
    /// several drainers write to one after the other, take [`Sink::file`].
    pub fn descriptor(descriptor: OwnedFd, format: Format) -> Sink {
        Sink { to: To::Descriptor(Stream { file: descriptor.into(), most: None }), format, filter: None }
    }

    /// A file. Whether it can be opened is tried, and it is created, when the drainer starts.
    pub fn file(file: LogFile, format: Format) -> Sink {
        Sink { to: To::File(file, None), format, filter: None }
    }

    /// A function, called for each line in order, by whatever thread drains. It may be called again with a line that a
    /// process died with in there ([`LogLine::position`] tells). It must not log to the same log without a drainer.
    pub fn callback(act: impl FnMut(&LogLine) + Send + 'static) -> Sink {
        Sink { to: To::Call(Box::new(act)), format: Format::Text, filter: None }
    }

    /// A drainer that could never open its file would keep the role and deliver nothing.
    pub(crate) fn try_file(&self) -> Result<(), LogError> {
        match &self.to {
            To::File(file, _) => file.stream(&mut None).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Only the lines for which this says so; the others are taken from the log and not written.
    pub fn only(self, filter: impl Fn(&LogLine) -> bool + Send + 'static) -> Sink {
        Sink { filter: Some(Box::new(filter)), ..self }
    }

    /// Delivers what there is in the history.
    pub(crate) fn deliver(
        &mut self,
        core: &crate::layout::LogCore<'_, MapMem>,
        scratch: &mut crate::output::Scratch,
    ) -> Result<bool, LogError> {
        let Sink { to, format, filter } = self;
        let is_wanted = |record: &LogLine| filter.as_ref().is_none_or(|filter| filter(record));
        if let To::Call(act) = to {
            return core.hand_over(
                &mut |record| {
                    if is_wanted(record) {
                        act(record)
                    }
                },
                scratch,
            );
        }
        let mut write = |record: &LogLine, text: &mut Vec<u8>| {
            if is_wanted(record) {
                format.write(record, text);
            }
        };
        let mut any = false;
        loop {
            let stream = match to {
                To::Descriptor(stream) => stream,
                To::File(file, stream) => file.stream(stream)?,
                To::Call(_) => return Ok(any),
            };
            core.resume(stream, scratch)?;
            match (core.deliver(&mut write, stream, scratch)?, &mut *to) {
                (Sent::Nothing, _) => return Ok(any),
                (Sent::NoRoom, To::File(file, stream)) => file.make_way(stream)?,
                (Sent::NoRoom | Sent::Some, _) => any = true,
            }
        }
    }
}

impl LogFile {
    /// The file, at its end. Others may have written to it, cut it short, or put another one in its place: then that is
    /// taken.
    fn stream<'a>(&self, stream: &'a mut Option<Stream>) -> Result<&'a mut Stream, LogError> {
        let failed = || LogError::output("open the file of the log");
        let there = fs::metadata(&self.path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
        if stream.as_ref().is_some_and(|stream| Some(identity(&stream.file)) != there) {
            *stream = None;
        }
        let opened = match stream.take() {
            Some(stream) => Ok(stream),
            // Not for appending: the kernel does not send to such a file.
            None => File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(&self.path)
                .map(|file| Stream { file, most: Some(self.max_bytes) }),
        };
        let stream = stream.insert(opened.map_err(failed())?);
        stream.file.seek(SeekFrom::End(0)).map_err(failed())?;
        Ok(stream)
    }

    /// Between two texts nothing is on its way to the file.
    fn make_way(&self, stream: &mut Option<Stream>) -> Result<(), LogError> {
        *stream = None;
        match shift(&self.path, self.keep) {
            // Another process has moved it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(LogError::output("rotate the file of the log")),
        }
    }
}

/// Renames `path.1` to `path.2` and so on, and `path` to `path.1`. Cut off and done again it loses nothing more.
fn shift(path: &Path, keep: u32) -> io::Result<()> {
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        if n > 0 {
            name.push(format!(".{n}"));
        }
        PathBuf::from(name)
    };
    // A gap is what a rotation that was cut off has left: what is behind it has moved already.
    let last = (1..=keep).find(|n| !numbered(*n).exists()).unwrap_or(keep);
    for n in (0..last).rev() {
        fs::rename(numbered(n), numbered(n + 1))?;
    }
    if keep == 0 {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// A descriptor that text is sent to.
#[derive(Debug)]
struct Stream {
    file: File,
    /// Bytes that it is to have at most, if it is a file of ours.
    most: Option<u64>,
}

fn identity(file: &File) -> (u64, u64) {
    file.metadata().map_or((0, 0), |metadata| (metadata.dev(), metadata.ino()))
}

impl Carrier<MapMem> for Stream {
    fn identity(&self) -> (u64, u64) {
        identity(&self.file)
    }

    fn room(&self) -> Result<Room, LogError> {
        let Some(most) = self.most.filter(|most| *most < u64::MAX) else {
            return Ok(Room { bytes: u64::MAX, takes_one: true });
        };
        let len = self.file.metadata().map_err(LogError::output("look at the file of the log"))?.len();
        Ok(Room { bytes: most.saturating_sub(len), takes_one: len == 0 })
    }

    fn carry(&mut self, mem: &MapMem, progress: u64, text: &[u8]) -> Result<(), LogError> {
        let done = || mem.load(progress, Ordering::Acquire) as usize;
        let failed = LogError::output("write lines of the log");
        let mut letter = None;
        let mut refused = false;
        while let Some(rest) = text.get(done()..).filter(|rest| !rest.is_empty()) {
            if letter.is_none() && !refused {
                // Without one (a filter of system calls) it goes on as if sending were refused.
                letter = send::letter(text).ok();
                refused = letter.is_none();
            }
            let sent = match &letter {
                Some(letter) if !refused => mem.send(letter, self.file.as_fd(), progress, rest.len() as u64),
                _ => self.file.write(rest).map(|n| {
                    mem.store(progress, (text.len() - rest.len() + n) as u64, Ordering::Release);
                    n as u64
                }),
            };
            match sent {
                Ok(0) if refused => return Err(failed(io::ErrorKind::WriteZero.into())),
                // Some descriptors of special files neither send nor say so.
                Ok(0) => refused = true,
                Ok(_) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => send::wait_writable(self.file.as_fd()),
                    io::ErrorKind::InvalidInput if !refused => refused = true,
                    _ => return Err(failed(error)),
                },
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_keeps_n_files_and_may_be_cut_off() {
        let dir = std::env::temp_dir().join(format!("hashmere-log-rotate-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        let path = dir.join("log");
        let numbered = |n: u32| dir.join(format!("log.{n}"));
        for n in 1..=5 {
            fs::write(&path, format!("{n}")).unwrap();
            shift(&path, 3).unwrap();
        }
        let texts = || (1..=4).map(|n| fs::read_to_string(numbered(n)).unwrap_or_default()).collect::<Vec<_>>();
        assert_eq!(texts(), ["5", "4", "3", ""]);
        // Cut off after the first two renames, then done again: the file of the gap is filled and no more is lost.
        fs::write(&path, "6").unwrap();
        fs::rename(numbered(2), numbered(3)).unwrap();
        fs::rename(numbered(1), numbered(2)).unwrap();
        shift(&path, 3).unwrap();
        assert_eq!(texts(), ["6", "5", "4", ""]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
