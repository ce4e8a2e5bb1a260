//! Following: reading the history as it grows, without consuming it.

use crate::error::LogError;
use crate::handle::Handle;
use crate::history::Found;
use crate::layout::at;
use crate::line::LogLine;
use crate::ready_fd::NewHistory;
use hashmere_engine::Watcher;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// From where on to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The oldest line that is left.
    Oldest,
    /// The next line that is drained.
    Now,
    /// This many lines back.
    Last(u64),
}

/// Reads the lines of a log in order.
#[derive(Debug)]
pub struct Follower {
    handle: Arc<Handle>,
    position: u64,
    missed_bytes: u64,
    record: LogLine,
    watcher: Option<Watcher<NewHistory>>,
}

impl Follower {
    pub(crate) fn new(handle: Arc<Handle>, since: Since) -> Follower {
        let core = handle.core();
        let position = match since {
            Since::Now => core.get(at::END),
            Since::Oldest | Since::Last(_) => core.get(at::OLDEST),
        };
        let mut follower = Follower { handle, position, missed_bytes: 0, record: LogLine::default(), watcher: None };
        if let Since::Last(lines) = since {
            follower.keep_last(lines);
        }
        follower
    }

    fn keep_last(&mut self, lines: u64) {
        let mut starts = std::collections::VecDeque::new();
        while let Ok(Some(_)) = self.next() {
            starts.push_back(self.record.position);
            if starts.len() as u64 > lines {
                starts.pop_front();
            }
        }
        self.position = starts.front().copied().unwrap_or(self.position);
        self.missed_bytes = 0;
    }

    /// The next line, if there is one now.
    ///
    /// # Errors
    /// The store's `Corrupt`.
    #[allow(clippy::should_implement_trait)] // the record is lent
    pub fn next(&mut self) -> Result<Option<&LogLine>, LogError> {
        loop {
            match self.handle.core().read_line(self.position, &mut self.record)? {
                Found::Line(next) => {
                    self.position = next;
                    return Ok(Some(&self.record));
                }
                Found::End => {
                    if let Some(watcher) = &self.watcher {
                        watcher.arm(self.position);
                    }
                    return Ok(None);
                }
                Found::Gone(oldest) => {
                    self.missed_bytes = self.missed_bytes.saturating_add(oldest.saturating_sub(self.position));
                    self.position = oldest;
                }
            }
        }
    }

    /// Bytes of history that were written over before this follower came to read them.
    pub fn missed_bytes(&self) -> u64 {
        self.missed_bytes
    }

    /// Behind the last line that was read: for [`ManualDrainer::skip_to`](crate::ManualDrainer::skip_to).
    pub fn position(&self) -> u64 {
        self.position
    }

    /// A descriptor for event loops (`poll`, `epoll` and what is built on them): readable while there is a line. When
    /// [`next`](Self::next) finds none it takes that back; no other code reads it. Starts a thread of this process,
    /// which ends with this.
    ///
    /// # Errors
    /// Those of making a descriptor and a thread.
    pub fn ready_fd(&mut self) -> Result<BorrowedFd<'_>, LogError> {
        let watcher = match self.watcher.take() {
            Some(watcher) => watcher,
            None => Watcher::new(NewHistory(self.handle.clone()), self.position)?,
        };
        Ok(Watcher::as_fd(self.watcher.insert(watcher)))
    }

    /// Waits until there is a line, at most `timeout`; may return early.
    pub fn wait(&self, timeout: Duration) {
        self.handle.core().sleep_for_news(self.position, timeout.min(Duration::from_millis(128)));
    }
}
