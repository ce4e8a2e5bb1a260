//! The words of a file that its readers trust least: found by following the format.

use hashmere_format::header::{at, RootWord};
use hashmere_format::leaf::{Slot, LINE, LOCK_WORD};
use hashmere_format::{root, row, segment};

/// What a word is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The immutable words of the header, whose checksum is then made right again.
    Frozen,
    /// The other words of the header.
    Header,
    /// Pointers to the chunks of the segment table.
    Chunk,
    /// An entry of the segment table.
    Segment,
    /// A client's row.
    Row,
    /// The root block.
    Root,
    /// A directory entry.
    Directory,
    /// The first line of a leaf.
    Leaf,
    /// A slot.
    Slot,
    /// A lock word of a bucket.
    Lock,
    /// The first words of a record.
    Record,
    /// The first words of a region: of a pool of queues, its header, queues and endpoints.
    Region,
}

/// Bytes at the start of a region that count as its first words.
const REGION: u64 = 8192;

/// Every kind.
pub const KINDS: [Kind; 12] = [
    Kind::Frozen,
    Kind::Header,
    Kind::Chunk,
    Kind::Segment,
    Kind::Row,
    Kind::Root,
    Kind::Directory,
    Kind::Leaf,
    Kind::Slot,
    Kind::Lock,
    Kind::Record,
    Kind::Region,
];

/// Offsets of the words of a valid file, by kind.
#[derive(Debug)]
pub struct Places {
    /// In the order of [`KINDS`].
    words: Vec<Vec<u64>>,
    /// Segments of the file, and bytes of one.
    pub segments: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
}

/// The word at an offset; zero beyond the end.
pub fn word(bytes: &[u8], offset: u64) -> u64 {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = bytes.get(start..start.saturating_add(8)).and_then(|eight| eight.first_chunk());
    found.map_or(0, |eight| u64::from_le_bytes(*eight))
}

impl Places {
    /// Finds them.
    pub fn of(bytes: &[u8]) -> Places {
        let get = |offset| word(bytes, offset);
        let (segment_bytes, leaf_bytes) = (1 << (get(at::SHAPE) & 0xff), 1 << (get(at::SHAPE) >> 8 & 0xff));
        let segments = get(at::SEGMENTS);
        let mut places = Places { words: vec![Vec::new(); KINDS.len()], segments, segment_bytes };
        places.add(Kind::Frozen, at::COMPAT, at::CHECKSUM);
        places.add(Kind::Header, at::BOOT_LO, at::STATUS + 8);
        places.add(Kind::Header, at::ROOT, at::SEGMENTS + 8);
        places.add(Kind::Header, at::SPACE_LOCK, at::EVICT_HAND + 8);
        places.add(Kind::Header, at::INDEX_LOCK, at::INDEX_LOCK + 8);
        places.add(Kind::Header, at::RESERVE_LOCK, at::RESERVE_LOCK + 8);
        places.add(Kind::Header, at::FREE_RING, at::FREE_RING + 8 * at::FREE_RING_LEN);
        places.add(Kind::Chunk, at::CHUNKS, at::CHUNKS + 32);
        places.add(Kind::Segment, at::CHUNK_0, at::CHUNK_0 + (segments + 2) * segment::BYTES);
        places.add(Kind::Row, at::CLIENTS, row::offset(get(at::CLIENTS_HIGH) as u32 + 2));
        for number in 0..segments {
            let state = get(at::CHUNK_0 + number * segment::BYTES + segment::at::STATE);
            if segment::Word::unpack(state).is_some_and(|word| word.state == segment::State::Region) {
                let start = at::DATA + number * segment_bytes;
                places.add(Kind::Region, start, start + REGION.min(segment_bytes));
            }
        }
        let block = at::DATA + RootWord::unpack(get(at::ROOT)).segment * segment_bytes;
        places.add(Kind::Root, block, block + root::at::VERSION + 8);
        for (depth, entries) in
            [(get(block), block + root::at::ENTRIES_0), (get(block + 8), block + root::at::ENTRIES_1)]
        {
            let many = if entries == block + root::at::ENTRIES_1 { (1 << depth) / 2 } else { 1 << depth };
            places.directory(bytes, entries, (many).min(root::CHUNK_0), leaf_bytes);
        }
        places
    }

    fn directory(&mut self, bytes: &[u8], entries: u64, many: u64, leaf_bytes: u64) {
        self.add(Kind::Directory, entries, entries + 8 * many);
        for index in 0..many {
            let leaf = word(bytes, entries + 8 * index);
            self.add(Kind::Leaf, leaf, leaf + LINE);
            for bucket in (leaf + LINE..leaf + leaf_bytes).step_by(LINE as usize) {
                self.add(Kind::Slot, bucket, bucket + LOCK_WORD);
                self.add(Kind::Lock, bucket + LOCK_WORD, bucket + LINE);
                for slot in (bucket..bucket + LOCK_WORD).step_by(8) {
                    let record = Slot(word(bytes, slot)).offset();
                    if record != 0 {
                        self.add(Kind::Record, record, record + 32);
                    }
                }
            }
        }
    }

    fn add(&mut self, kind: Kind, from: u64, to: u64) {
        self.words[kind as usize].extend((from..to).step_by(8));
    }

    /// Offsets of the words of a kind; none if the file has none.
    pub fn words(&self, kind: Kind) -> &[u64] {
        &self.words[kind as usize]
    }
}
