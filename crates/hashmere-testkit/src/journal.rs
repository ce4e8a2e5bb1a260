//! Operations and their replies as records in a file that worker and test share.
//!
//! A worker writes a record before each operation and completes it after the reply, by plain stores into a shared
//! mapping. What a process had stored when it was killed is in the file, so a completed record is a reply that was
//! received; and as there is no system call in between, a kill hits the operations and not the bookkeeping.
//!
//! Words of a record: kind and key, two arguments, time of the call; value, version, time of the return, and last the
//! kind of reply, zero until there is one. The first record of the file holds the number of those that follow.

use crate::history::{Call, Operation, Reply, State};
use crate::limits::now_ns;
use crate::register;
use hashmere::{Store, WriteError};
use nix::sys::mman::{mmap, MapFlags, ProtFlags};
use std::fs::{File, OpenOptions};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = 8;
const RECORD_BYTES: usize = WORDS * 8;
/// Flags beside the kind: which arguments or values are there.
const FIRST: u64 = 1 << 8;
const SECOND: u64 = 1 << 9;

/// What a worker writes down about its operations.
#[derive(Debug)]
pub struct Journal {
    words: &'static [AtomicU64],
    used: usize,
    capacity: usize,
}

impl Journal {
    /// Creates the journal of a worker, with room for this many operations.
    ///
    /// # Panics
    /// If the file cannot be made.
    pub fn create(path: &Path, capacity: usize) -> Journal {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path).expect("create a journal");
        let bytes = (capacity + 1) * RECORD_BYTES;
        file.set_len(bytes as u64).expect("size the journal");
        let size = NonZeroUsize::new(bytes).expect("a journal has room");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, of a file that has this length and is not shortened.
        let start = unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, file, 0) }.expect("map the journal");
        // SAFETY: the mapping has this many words, is aligned to pages, and stays to the end of the process.
        let words = unsafe { std::slice::from_raw_parts(start.cast().as_ptr(), bytes / 8) };
        Journal { words, used: 0, capacity }
    }

    /// Whether there is no room for another operation.
    pub fn is_full(&self) -> bool {
        self.used == self.capacity
    }

    /// Does one operation and writes it down.
    ///
    /// # Panics
    /// On any error but `Busy`, and when the journal is full.
    pub fn perform(&mut self, store: &Store, key: u32, call: Call, how: u64) -> Reply {
        self.used += 1;
        let record = &self.words[self.used * WORDS..][..WORDS];
        let put = |word: usize, value: u64| record[word].store(value, Ordering::Relaxed);
        let (kind, first, second) = encode_call(call);
        put(1, first.unwrap_or(0));
        put(2, second.unwrap_or(0));
        put(0, kind | flag(FIRST, first) | flag(SECOND, second) | u64::from(key) << 32);
        let called = now_ns();
        put(3, called);
        // The record counts from here on: what follows may take place.
        self.words[0].store(self.used as u64, Ordering::Release);
        let result = register::perform(store, key, call, how);
        let returned = now_ns();
        let (reply, version) = match result {
            Ok(done) => done,
            Err(WriteError::Busy { .. }) => (Reply::Refused, 0),
            Err(error) => panic!("{call:?} on key {key}: {error:?}"),
        };
        let (kind, value) = encode_reply(reply);
        put(4, value.unwrap_or(0));
        put(5, version);
        put(6, returned);
        record[7].store(kind | flag(FIRST, value), Ordering::Release);
        reply
    }
}

/// The operations in a worker's journal, whose writer has ended. None if it died before it made one.
///
/// # Panics
/// If the file is not a journal.
pub fn read(path: &Path, worker: u32) -> Vec<Operation> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut head = [0; 8];
    if file.read_exact_at(&mut head, 0).is_err() {
        return Vec::new();
    }
    let mut bytes = vec![0; u64::from_le_bytes(head) as usize * RECORD_BYTES];
    file.read_exact_at(&mut bytes, RECORD_BYTES as u64).expect("read the journal");
    bytes.chunks_exact(RECORD_BYTES).map(|record| decode(record, worker)).collect()
}

fn decode(record: &[u8], worker: u32) -> Operation {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(record.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    let [kind, first, second, called, value, version, returned, replied] = words;
    let some = |flags: u64, flag: u64, value: u64| (flags & flag != 0).then_some(value);
    let call = decode_call(kind & 0xff, some(kind, FIRST, first), some(kind, SECOND, second));
    let reply = decode_reply(replied & 0xff, some(replied, FIRST, value));
    let returned = if reply.is_some() { returned } else { u64::MAX };
    Operation { key: (kind >> 32) as u32, worker, call, reply, version, called, returned }
}

fn flag(flag: u64, value: Option<u64>) -> u64 {
    if value.is_some() {
        flag
    } else {
        0
    }
}

fn encode_call(call: Call) -> (u64, State, State) {
    match call {
        Call::Get => (1, None, None),
        Call::Set(value) => (2, Some(value), None),
        Call::Add(value) => (3, Some(value), None),
        Call::Replace(value) => (4, Some(value), None),
        Call::Delete => (5, None, None),
        Call::Take => (6, None, None),
        Call::Cas { expected, new } => (7, expected, new),
        Call::Incr { by, initial } => (8, Some(by), initial),
    }
}

fn decode_call(kind: u64, first: State, second: State) -> Call {
    match (kind, first) {
        (1, _) => Call::Get,
        (2, Some(value)) => Call::Set(value),
        (3, Some(value)) => Call::Add(value),
        (4, Some(value)) => Call::Replace(value),
        (5, _) => Call::Delete,
        (6, _) => Call::Take,
        (7, expected) => Call::Cas { expected, new: second },
        (8, Some(by)) => Call::Incr { by, initial: second },
        _ => panic!("no call {kind} in a journal"),
    }
}

fn encode_reply(reply: Reply) -> (u64, State) {
    match reply {
        Reply::Found(state) => (1, state),
        Reply::Yes => (2, None),
        Reply::No => (3, None),
        Reply::NotFound => (4, None),
        Reply::Refused => (5, None),
    }
}

fn decode_reply(kind: u64, value: State) -> Option<Reply> {
    match kind {
        0 => None,
        1 => Some(Reply::Found(value)),
        2 => Some(Reply::Yes),
        3 => Some(Reply::No),
        4 => Some(Reply::NotFound),
        5 => Some(Reply::Refused),
        _ => panic!("no reply {kind} in a journal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_replies_come_back_as_they_went() {
        let calls = [
            Call::Get,
            Call::Set(7),
            Call::Cas { expected: None, new: Some(4) },
            Call::Cas { expected: Some(3), new: None },
            Call::Incr { by: 2, initial: None },
        ];
        for call in calls {
            let (kind, first, second) = encode_call(call);
            assert_eq!(decode_call(kind, first, second), call);
        }
        for reply in [Reply::Found(None), Reply::Found(Some(0)), Reply::Yes, Reply::NotFound, Reply::Refused] {
            let (kind, value) = encode_reply(reply);
            assert_eq!(decode_reply(kind, value), Some(reply));
        }
    }

    #[test]
    fn what_was_performed_is_read_back() {
        let scratch = crate::scratch::Scratch::new("journal");
        let store = crate::tiny().open(scratch.store("store")).unwrap();
        let path = scratch.path().join("journal");
        let mut journal = Journal::create(&path, 2);
        journal.perform(&store, 8, Call::Set(5), 0);
        journal.perform(&store, 8, Call::Get, 0);
        assert!(journal.is_full());
        let read = read(&path, 3);
        assert_eq!((read[0].call, read[0].reply, read[0].key, read[0].worker), (Call::Set(5), Some(Reply::Yes), 8, 3));
        assert_eq!(read[1].reply, Some(Reply::Found(Some(5))));
        assert!(read[0].version > 0 && read[0].called < read[0].returned && read[0].returned <= read[1].called);
    }
}
