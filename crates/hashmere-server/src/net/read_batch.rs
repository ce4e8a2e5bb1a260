//! Sockets that are ready at the same time are read before the first of their requests is answered, so that the cache
//! misses of their keys overlap: with each other, and with the reads.

use super::connection::Connection;
use crate::protocol::peek_key::peek_key;
use crate::stats::counters::Counters;
use hashmere::Store;
use hashmere_engine::StoreHandle;
use std::ops::Range;

/// Connections of one batch.
pub const AHEAD: usize = 16;
/// Bytes read ahead of each; further input is read in its turn.
const SHARE: usize = 4096;

/// Connections whose turn it is, and the input that was read of each.
#[derive(Debug)]
pub struct Batch {
    members: [(usize, Range<usize>); AHEAD],
    count: usize,
    buffer: Vec<u8>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch { members: std::array::from_fn(|_| (0, 0..0)), count: 0, buffer: vec![0; AHEAD * SHARE] }
    }

    /// Adds a connection; `true` when the batch is full.
    pub fn push(&mut self, token: usize) -> bool {
        self.members[self.count] = (token, 0..0);
        self.count += 1;
        self.count == AHEAD
    }

    /// Reads all of them, if there are several, and prefetches the memory that their first requests need.
    pub fn read(&mut self, connections: &mut [Option<Connection>], store: &Store, counters: &Counters) {
        if self.count < 2 {
            return;
        }
        let mut keys = [&b""[..]; AHEAD];
        let mut found = 0;
        let shares = self.buffer.chunks_exact_mut(SHARE);
        for (i, ((token, range), share)) in self.members[..self.count].iter_mut().zip(shares).enumerate() {
            let Some(Some(connection)) = connections.get_mut(*token) else { continue };
            let bytes = connection.read_ahead(share, counters);
            *range = i * SHARE..i * SHARE + bytes;
            let share: &[u8] = share;
            if let Some(key) = peek_key(&share[..bytes]) {
                keys[found] = key;
                found += 1;
            }
        }
        store.shared().prefetch(&keys[..found]);
    }

    /// Empties it: each connection, and the input that was read of it.
    pub fn drain(&mut self) -> impl Iterator<Item = (usize, &[u8])> {
        let count = std::mem::take(&mut self.count);
        let buffer = &self.buffer;
        self.members[..count].iter().map(|(token, range)| (*token, &buffer[range.clone()]))
    }
}
