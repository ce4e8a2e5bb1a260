//! A record batch, form 2: events as records of one partition, in a transaction.

use hashmere_feed::Event;
use hashmere_format::crc32c::Crc;

/// Records of one partition that go in one request.
#[derive(Debug, Default)]
pub struct Batch {
    records: Vec<u8>,
    count: i32,
    first_ms: i64,
    newest_ms: i64,
    record: Vec<u8>,
}

/// Bytes before the records.
const HEAD: usize = 61;
/// Bit of the attributes: part of a transaction.
const TRANSACTIONAL: i16 = 1 << 4;

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn count(&self) -> i32 {
        self.count
    }

    pub fn len(&self) -> usize {
        HEAD + self.records.len()
    }

    pub fn clear(&mut self) {
        self.records.clear();
        self.count = 0;
    }

    /// Adds an event: its key, if it is of one, and its envelope.
    pub fn add(&mut self, event: &Event, envelope: &[u8]) {
        let (key, ms) = match event {
            Event::Read(change) | Event::Change(change) => (Some(change.key.as_slice()), change.ts_ms as i64),
            Event::Clear { ts_ms, .. } => (None, *ts_ms as i64),
            _ => (None, hashmere_os::clock::now_ms() as i64),
        };
        if self.count == 0 {
            (self.first_ms, self.newest_ms) = (ms, ms);
        }
        self.newest_ms = self.newest_ms.max(ms);
        let record = &mut self.record;
        record.clear();
        record.push(0);
        varint(ms - self.first_ms, record);
        varint(self.count.into(), record);
        match key {
            Some(key) => block(key, record),
            None => varint(-1, record),
        }
        block(envelope, record);
        varint(0, record);
        varint(record.len() as i64, &mut self.records);
        self.records.extend_from_slice(record);
        self.count += 1;
    }

    /// Appends all of it, from a producer: its id, its epoch, and the number of its first record in this partition.
    pub fn write(&self, (id, epoch, sequence): (i64, i16, i32), out: &mut Vec<u8>) {
        let mut covered = Vec::with_capacity(self.len());
        covered.extend_from_slice(&TRANSACTIONAL.to_be_bytes());
        covered.extend_from_slice(&(self.count - 1).to_be_bytes());
        covered.extend_from_slice(&self.first_ms.to_be_bytes());
        covered.extend_from_slice(&self.newest_ms.to_be_bytes());
        covered.extend_from_slice(&id.to_be_bytes());
        covered.extend_from_slice(&epoch.to_be_bytes());
        covered.extend_from_slice(&sequence.to_be_bytes());
        covered.extend_from_slice(&self.count.to_be_bytes());
        covered.extend_from_slice(&self.records);
        // Base offset; length of what follows it; epoch of the leader, unknown; form 2.
        out.extend_from_slice(&0i64.to_be_bytes());
        out.extend_from_slice(&(covered.len() as i32 + 9).to_be_bytes());
        out.extend_from_slice(&(-1i32).to_be_bytes());
        out.push(2);
        out.extend_from_slice(&crc(&covered).to_be_bytes());
        out.extend_from_slice(&covered);
    }
}

fn crc(bytes: &[u8]) -> u32 {
    Crc::EMPTY.bytes(bytes).value()
}

fn block(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

/// Zigzag, seven bits a byte, lowest first.
fn varint(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The partition of a key, as the clients of Kafka choose it: murmur2, without its sign.
pub fn partition_of(key: &[u8], partitions: i32) -> i32 {
    let mix = |word: u32| {
        let word = word.wrapping_mul(0x5bd1_e995);
        (word ^ word >> 24).wrapping_mul(0x5bd1_e995)
    };
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    let (words, rest) = key.split_at(key.len() & !3);
    for word in words.chunks_exact(4) {
        let word = word.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = hash.wrapping_mul(0x5bd1_e995) ^ mix(word);
    }
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = hash.wrapping_mul(0x5bd1_e995);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(0x5bd1_e995);
    hash ^= hash >> 15;
    (hash & 0x7fff_ffff) as i32 % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zigzag() {
        for (value, bytes) in
            [(0, &[0][..]), (-1, &[1]), (1, &[2]), (63, &[126]), (64, &[0x80, 1]), (i64::MIN, &[0xff; 9])]
        {
            let mut out = Vec::new();
            varint(value, &mut out);
            assert!(out.starts_with(bytes), "{value}: {out:?}");
        }
    }

    /// Values of `org.apache.kafka.common.utils.Utils.murmur2`, from its test.
    #[test]
    fn partitions_are_those_of_other_clients() {
        for (key, hash) in [
            ("21", -973_932_308i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(partition_of(key.as_bytes(), i32::MAX), (hash & 0x7fff_ffff) % i32::MAX, "{key}");
        }
    }
}
