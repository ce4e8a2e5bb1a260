//! What the scenarios about recycling share: a segment that holds one record and garbage, and writers who will need it.

use super::explore::wrong;
use super::stage::{Play, Player, Stage, FILL};
use crate::engine::tests::fixture::{strict, Fixture};
use hashmere_format::header::at;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Words of a value.
const WORDS: usize = 6;
/// Bytes of a record.
const RECORD: usize = 64;

/// A value that says in each of its words whose it is and which.
pub(super) fn value(of: &str, n: u64) -> Vec<u8> {
    format!("{of:-<4}{n:04}").repeat(WORDS).into_bytes()
}

/// Complains unless these are the bytes of some value of `of`.
pub(super) fn is_value(of: &str, bytes: &[u8]) {
    if !(0..10).any(|n| bytes == value(of, n)) {
        wrong(format!("{of} holds {}", bytes.escape_ascii()));
    }
}

/// The segment of "key", in which nothing else lives.
pub(super) const SEGMENT: u64 = 3;

/// A full segment with "key" and garbage, two that are free, and room in the file for one segment of each of `writers`.
pub(super) fn stage(writers: u64) -> Stage {
    Stage::new(strict(8).small_leaves(), |fixture: &Fixture| {
        let mut client = fixture.client();
        let (large, garbage) = (["l0", "l1"].map(str::as_bytes), ["g0", "g1", "g2"].map(str::as_bytes));
        large.iter().for_each(|key| client.t_set(key, &[b'l'; 3000]).unwrap());
        client.t_set(b"key", &value("key", 0)).unwrap();
        garbage.iter().for_each(|key| client.t_set(key, &[b'g'; 1000]).unwrap());
        large.iter().chain(&garbage).for_each(|key| assert!(client.t_del(key).unwrap()));
        client.retire();
        let record = client.read(b"key", client.hash(b"key"), |found| Ok(found.record)).unwrap();
        assert_eq!(record, Some(client.segment_offset(SEGMENT)));
        assert_eq!(client.segments(), SEGMENT + 1);
        let max_bytes = client.segment_offset(SEGMENT + 1 + writers);
        fixture.heap.store(at::MAX_BYTES, max_bytes, Ordering::Relaxed);
        // The ring holds hints: without them the segment that is freed next is the first to be claimed.
        (0..at::FREE_RING_LEN).for_each(|i| fixture.heap.store(at::FREE_RING + 8 * i, 0, Ordering::Relaxed));
    })
}

/// A client with an open segment in which there is room for `room` records.
pub(super) fn writer(play: &Play, name: &str, room: usize) -> Player {
    let writer = play.client();
    for (i, bytes) in [1024, 1024, 1024, 1024 - room * RECORD].into_iter().enumerate() {
        let key = format!("{FILL}{name}{i}");
        // Two words precede the key of a record that is this long.
        writer.t_set(key.as_bytes(), &vec![b'f'; bytes - 16 - key.len()]).unwrap();
    }
    assert!(writer
        .writer()
        .unwrap()
        .open
        .as_ref()
        .is_some_and(|open| { open.has_room((room * RECORD) as u64) && !open.has_room((room * RECORD + 8) as u64) }));
    writer
}

/// Overwrites "key" and stores another one, for which its segment is recycled.
pub(super) fn overwrite(client: &Player) {
    client.t_set(b"key", &value("key", 1)).unwrap_or_else(|error| wrong(error));
    client.t_set(b"next", &value("next", 0)).unwrap_or_else(|error| wrong(error));
}
