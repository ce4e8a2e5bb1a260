//! Delivering: the history goes out as text, each byte once, whichever process crashes.

use crate::error::LogError;
use crate::fault::{self, Fault};
use crate::history::Found;
use crate::layout::{at, LogCore, COMMITTED, STAGE};
use crate::line::LogLine;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Something that bytes can be written to together with a note of how many.
pub(crate) trait Carrier<M> {
    /// Where it leads to: two descriptors that agree in this lead to the same.
    fn identity(&self) -> (u64, u64);

    /// How many bytes the next text may have.
    fn room(&self) -> Result<Room, LogError> {
        Ok(Room { bytes: STAGE, takes_one: true })
    }

    /// Writes what `text` has from the number in the word at `progress` on, and moves that on with it.
    fn carry(&mut self, mem: &M, progress: u64, text: &[u8]) -> Result<(), LogError>;
}

/// What fits where the next text goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// A line that is longer than that goes there all the same.
    pub(crate) takes_one: bool,
}

/// What was done with the next text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// There was none.
    Nothing,
    /// There is a line, for which there is no room.
    NoRoom,
    /// It was written, or there is no output.
    Some,
}

/// Appends a line as text, or nothing if it is not wanted.
pub(crate) type Writer<'a> = &'a mut dyn FnMut(&LogLine, &mut Vec<u8>);

/// Room for the work, kept from one time to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) record: LogLine,
    text: Vec<u8>,
}

impl<M: Mem> LogCore<'_, M> {
    /// Sends what a drainer before us had on its way out, if anything. To something else than it was going to, the line
    /// that was cut off is sent from its start.
    pub(crate) fn resume(&self, to: &mut dyn Carrier<M>, scratch: &mut Scratch) -> Result<(), LogError> {
        // SYNC(chunk): pairs with the release store in `deliver`: the text and its length are there.
        let chunk = self.get(at::CHUNK);
        if chunk == 0 {
            return Ok(());
        }
        let len = self.get(at::CHUNK_LEN);
        if len > STAGE {
            return Err(LogError::damaged("the text of a log that is on its way out is too long", self.base));
        }
        scratch.text.clear();
        self.mem.append_to(self.base + self.geometry.stage(), len as usize, &mut scratch.text);
        if fault::is(Fault::ProgressForgotten) {
            self.put(at::PROGRESS, 0);
        }
        let identity = to.identity();
        if (self.get(at::SINK_DEVICE), self.get(at::SINK_INODE)) != identity {
            let done = (self.get(at::PROGRESS) as usize).min(scratch.text.len());
            self.put(at::PROGRESS, line_start(&scratch.text, done) as u64);
            self.put_identity(identity);
        }
        self.send(chunk, to, &scratch.text)
    }

    fn put_identity(&self, (device, inode): (u64, u64)) {
        self.put(at::SINK_DEVICE, device);
        self.put(at::SINK_INODE, inode);
    }

    fn send(&self, chunk: u64, to: &mut dyn Carrier<M>, text: &[u8]) -> Result<(), LogError> {
        if fault::is(Fault::SentEarly) {
            self.put(at::CHUNK, 0);
            self.put(at::SENT, chunk & !COMMITTED);
        }
        to.carry(self.mem, self.base + at::PROGRESS, text)?;
        // SYNC(sent): the room of what was sent may be used again.
        self.put(at::SENT, chunk & !COMMITTED);
        self.put(at::CHUNK, 0);
        Ok(())
    }

    /// Sends the next text, at most a stage full. Nothing is on its way.
    pub(crate) fn deliver(
        &self,
        write: Writer<'_>,
        to: &mut dyn Carrier<M>,
        scratch: &mut Scratch,
    ) -> Result<Sent, LogError> {
        let room = to.room()?;
        let sent = self.get(at::SENT);
        let mut end = sent;
        scratch.text.clear();
        while let Found::Line(next) = self.read_line(end, &mut scratch.record)? {
            let before = scratch.text.len();
            write(&scratch.record, &mut scratch.text);
            if scratch.text.len() as u64 > room.bytes.min(STAGE) {
                if before > 0 || !room.takes_one {
                    scratch.text.truncate(before);
                    if before == 0 && end == sent {
                        return Ok(Sent::NoRoom);
                    }
                    break;
                }
                // No line is as long as the stage; but a file may say that it is.
                scratch.text.truncate(STAGE as usize);
            }
            end = next;
        }
        if end == sent {
            return Ok(Sent::Nothing);
        }
        if scratch.text.is_empty() {
            self.put(at::SENT, end);
            return Ok(Sent::Some);
        }
        self.mem.write(self.base + self.geometry.stage(), &scratch.text);
        self.put(at::CHUNK_LEN, scratch.text.len() as u64);
        if fault::is(Fault::ChunkEarly) {
            self.put(at::CHUNK, end | COMMITTED);
        }
        self.put(at::PROGRESS, 0);
        self.put_identity(to.identity());
        // SYNC(chunk): this is the point from which on the text is sent, by us or by who comes after us.
        self.mem.store(self.base + at::CHUNK, end | COMMITTED, Ordering::Release);
        self.send(end | COMMITTED, to, &scratch.text)?;
        Ok(Sent::Some)
    }

    /// Gives each line to a function. A death in there gives it that line again.
    pub(crate) fn hand_over(&self, act: &mut dyn FnMut(&LogLine), scratch: &mut Scratch) -> Result<bool, LogError> {
        // What was on its way out as text is handed over as lines: it is not known which of them arrived.
        if self.get(at::CHUNK) != 0 {
            self.put(at::CHUNK, 0);
        }
        let mut any = false;
        while let Found::Line(next) = self.read_line(self.get(at::SENT), &mut scratch.record)? {
            act(&scratch.record);
            self.put(at::SENT, next);
            any = true;
        }
        Ok(any)
    }
}

/// Where the line begins that goes on at `done`: behind a line break that no tab follows.
fn line_start(text: &[u8], done: usize) -> usize {
    let starts = |at: &usize| *at == 0 || text[at - 1] == b'\n' && text.get(*at) != Some(&b'\t');
    (0..=done).rev().find(starts).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::line_start;

    #[test]
    fn a_line_goes_on_behind_a_tab() {
        let text = b"one\n\tmore\ntwo\n";
        let starts: Vec<_> = (0..=text.len()).map(|done| line_start(text, done)).collect();
        assert_eq!(starts, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 10, 10, 10, 14]);
    }
}
