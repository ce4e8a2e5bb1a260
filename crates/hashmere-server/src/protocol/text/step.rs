//! What is to be done after a line was performed.

use super::dump::Dump;
use super::parse::Retrieval;
use crate::feed_stream::FeedStream;

/// The result of a line.
#[derive(Debug)]
pub enum Step {
    /// It is done.
    Done,
    /// It is done, together with a value of this many bytes, line ending included.
    DoneWith(usize),
    /// It needs a value of this many bytes, line ending included, and is to be parsed again with it.
    Wants(usize),
    /// It was refused, and a value of this many bytes is to be skipped.
    Skip(u64),
    /// It begins a scan of the keys.
    Dump(Dump),
    /// It begins a retrieval; the keys start at this byte of the line.
    Retrieve(Retrieval, usize),
    /// It makes the connection a watcher of these kinds of events.
    Watch(u16),
    /// It makes the connection a stream of the store's changes.
    Feed(Box<FeedStream>),
    /// The connection is to be closed.
    Close,
}
