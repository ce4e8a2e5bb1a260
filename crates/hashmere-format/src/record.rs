//! Records: what a slot points at.
//!
//! ```text
//!  63                          22 21       13 12      6 5             0
//! +------------------------------+-----------+---------+---------------+
//! | version                      | value len | key len | field bits    |  header, always
//! +------------------------------+-----------+---------+---------------+
//! | checksum (32)                       | stamp (32)                    |  in a durable store, see `checksum`
//! | value length (32)            | key length (32)                     |  if LONG
//! | period in which its transaction was complete                       |  if MEMBER (durable stores)
//! | transaction, and how many members it has: see `member`             |
//! | wall clock of expiry in milliseconds                               |  if EXPIRES
//! | marks (32)                   | caller's flags (32)                 |  if FLAGS
//! | hash that the caller supplied, spread                              |  if HASHED
//! | key bytes, value bytes, zeros up to a multiple of 8                |
//! ```
//! Where the header is the only word before the bytes and the value has 1 to 8 of them, the value comes before the
//! key: header and value are neighbours then, and one 16-byte exchange replaces both.
//!
//! In a store of fixed lengths neither length is stored. A field costs nothing when it is not used.

/// Where the version starts in the header word (and in a lock word).
pub const VERSION_SHIFT: u32 = 22;
/// Mask of the version bits in place.
pub const VERSION_MASK: u64 = u64::MAX << VERSION_SHIFT;
/// Largest version.
pub const VERSION_MAX: u64 = u64::MAX >> VERSION_SHIFT;

/// Field bits.
pub mod field {
    /// The lengths are in a word of their own.
    pub const LONG: u64 = 1;
    /// There is an expiry word.
    pub const EXPIRES: u64 = 2;
    /// There is a flags word.
    pub const FLAGS: u64 = 4;
    /// There is a hash word: the key is found with this hash only.
    pub const HASHED: u64 = 8;
    /// The record was superseded or deleted. Set after the fact: a hint for the cleaner.
    pub const DEAD: u64 = 16;
    /// The record was there when a backup began and is about to be superseded, or was: the backup still wants it.
    pub const RETAINED: u64 = 32;
    /// In a durable store: it is a member of a transaction, and two words say so. (Elsewhere the highest bit of the
    /// value's length.)
    pub const MEMBER: u64 = 1 << 21;
}

/// Bytes of the longest value that may come before its key.
const FIRST_MAX: u64 = 8;

const KEY_BITS: u32 = 7;
const KEY_MAX: u64 = (1 << KEY_BITS) - 1;
const VALUE_MAX: u64 = 511;
/// In a durable store one bit says something else.
const VALUE_MAX_DURABLE: u64 = 255;
const KEY_SHIFT: u32 = 6;
const VALUE_SHIFT: u32 = KEY_SHIFT + KEY_BITS;

/// What a record's head does not say because it is the same for all records of a file: the lengths, if they are fixed,
/// and whether there is a checksum word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Bytes of each key and of each value; `None`: each record says its own.
    fixed: Option<(u32, u32)>,
    /// Bytes of the head word and of the checksum word, if there is one.
    lead: u64,
    /// Which bits of a head word, shifted down, are the lengths, if it has them; what is added are the fixed ones.
    key_mask: u64,
    value_mask: u64,
    key_fixed: u64,
    value_fixed: u64,
    /// Bytes of the longest value that comes before its key if nothing else does.
    first_max: u64,
    /// Bits of a head word that say that there are more words.
    more: u64,
}

impl Lengths {
    /// Each record says its own lengths.
    pub const VARIABLE: Lengths = Lengths {
        fixed: None,
        lead: 8,
        key_mask: KEY_MAX,
        value_mask: VALUE_MAX,
        key_fixed: 0,
        value_fixed: 0,
        first_max: FIRST_MAX,
        more: field::LONG | field::EXPIRES | field::FLAGS | field::HASHED,
    };

    /// Every record has these.
    pub const fn fixed(key: u32, value: u32) -> Lengths {
        Lengths {
            fixed: Some((key, value)),
            key_mask: 0,
            value_mask: 0,
            key_fixed: key as u64,
            value_fixed: value as u64,
            ..Lengths::VARIABLE
        }
    }

    /// The same with a checksum word behind the head word.
    pub const fn with_sums(self) -> Lengths {
        let value_mask = self.value_mask & VALUE_MAX_DURABLE;
        Lengths { lead: 16, first_max: 0, value_mask, more: self.more | field::MEMBER, ..self }
    }

    /// Whether records have a checksum word.
    #[inline(always)]
    pub fn have_sums(self) -> bool {
        self.lead != 8
    }

    /// Bytes of the words that every record has.
    #[inline(always)]
    pub fn lead(self) -> u64 {
        self.lead
    }
}

/// The parts of a record before its bytes.
///
/// All fields are words, also where less would do: a copy of fields of mixed sizes cannot be forwarded from the stores
/// before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the key.
    pub key_len: u64,
    /// Bytes of the value.
    pub value_len: u64,
    /// Wall clock of expiry in milliseconds.
    pub expires: Option<u64>,
    /// The caller's flags (low 32 bits) and the marks (high 32 bits); zero is not stored.
    pub flags: u64,
    /// A supplied hash, spread.
    pub hash: Option<u64>,
    /// The version.
    pub version: u64,
    /// 1 if superseded or deleted, else 0.
    pub dead: u64,
    /// In a durable store: the period in which its transaction was complete, and a packed
    /// [`Member`](crate::member::Member).
    pub member: Option<(u64, u64)>,
}

impl Head {
    /// The head word, and where the parts of the record will be.
    #[inline(always)]
    pub fn header(&self, lengths: Lengths) -> RecordHeader {
        let mut word = (self.version << VERSION_SHIFT) | (self.dead * field::DEAD);
        let mut lead = lengths.lead;
        if lengths.fixed.is_none() {
            if self.key_len > KEY_MAX || self.value_len > lengths.value_mask {
                word |= field::LONG;
                lead += 8;
            } else {
                word |= self.key_len << KEY_SHIFT | self.value_len << VALUE_SHIFT;
            }
        }
        if self.member.is_some() && lengths.have_sums() {
            word |= field::MEMBER;
            lead += 16;
        }
        let fields = [
            (self.expires.is_some(), field::EXPIRES),
            (self.flags != 0, field::FLAGS),
            (self.hash.is_some(), field::HASHED),
        ];
        for (is_there, bit) in fields {
            if is_there {
                word |= bit;
                lead += 8;
            }
        }
        RecordHeader::new(word, lead, self.key_len, self.value_len)
    }

    /// Words before the key.
    #[inline]
    pub fn words(&self, lengths: Lengths) -> u64 {
        self.header(lengths).lead / 8
    }

    /// Bytes of the whole record: a multiple of 8.
    #[inline]
    pub fn record_bytes(&self, lengths: Lengths) -> u64 {
        self.header(lengths).bytes()
    }

    /// The header word.
    #[inline]
    pub fn pack(&self, lengths: Lengths) -> u64 {
        self.header(lengths).word
    }

    /// Writes the words that this header describes through `store(word index, word)`.
    #[inline(always)]
    pub fn write(&self, lengths: Lengths, header: RecordHeader, mut store: impl FnMut(u64, u64)) {
        store(0, header.word);
        if header.lead == 8 {
            return;
        }
        let mut at = 1;
        if lengths.have_sums() {
            // No record yet: a draft that is never committed must never look like one.
            store(at, 0);
            at += 1;
        }
        if header.has(field::LONG) {
            store(at, self.key_len | self.value_len << 32);
            at += 1;
        }
        if let Some((period, id)) = self.member.filter(|_| lengths.have_sums()) {
            store(at, period);
            store(at + 1, id);
            at += 2;
        }
        if let Some(expires) = self.expires {
            store(at, expires);
            at += 1;
        }
        if self.flags != 0 {
            store(at, self.flags);
            at += 1;
        }
        if let Some(hash) = self.hash {
            store(at, hash);
        }
    }

    /// Reads a head through `load(word index)`. The result is what the words say; whether it fits its segment is for
    /// the caller to check.
    pub fn read(lengths: Lengths, mut load: impl FnMut(u64) -> u64) -> Head {
        let word = load(0);
        RecordHeader::read(lengths, word, &mut load).head(load)
    }
}

/// What a look-up needs of a head: the first word, and where the parts of the record are.
///
/// A head has nine words and is not copied about on the hot paths: copies of structures that size pass through memory,
/// and wait there for the stores before them. The words between the first and the key are loaded on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The header word.
    pub word: u64,
    /// Bytes before the key.
    pub lead: u64,
    /// Bytes of the key.
    pub key_len: u64,
    /// Bytes of the value.
    pub value_len: u64,
    /// Bytes of the value that lie before the key: all of them, or none. Kept, for a look-up asks three times.
    first: u64,
}

impl RecordHeader {
    /// Of a record with `lead` bytes before key and value.
    #[inline(always)]
    pub fn new(word: u64, lead: u64, key_len: u64, value_len: u64) -> RecordHeader {
        let first = if lead == 8 && value_len <= FIRST_MAX { value_len } else { 0 };
        RecordHeader { word, lead, key_len, value_len, first }
    }

    /// The header of a record that is a key and a value and nothing else, in a store without fixed lengths and
    /// checksums; `None` if the lengths do not fit the header word.
    #[inline(always)]
    pub fn plain(lengths: Lengths, key_len: u64, value_len: u64) -> Option<RecordHeader> {
        let word = key_len << KEY_SHIFT | value_len << VALUE_SHIFT;
        let fits = key_len <= KEY_MAX && value_len <= lengths.value_mask;
        fits.then(|| RecordHeader::new(word, 8, key_len, value_len))
    }

    /// The header of a record that has no words but those that every record of its store has; `None` if it has more.
    #[inline(always)]
    pub fn small(lengths: Lengths, word: u64) -> Option<RecordHeader> {
        if word & lengths.more != 0 {
            return None;
        }
        // No branch and no choice: this is on the way of every look-up.
        let key_len = (word >> KEY_SHIFT & lengths.key_mask) | lengths.key_fixed;
        let value_len = (word >> VALUE_SHIFT & lengths.value_mask) | lengths.value_fixed;
        let first = if value_len <= lengths.first_max { value_len } else { 0 };
        Some(RecordHeader { word, lead: lengths.lead, key_len, value_len, first })
    }

    /// The header of any record, given its first word.
    #[inline]
    pub fn read(lengths: Lengths, word: u64, load: impl FnOnce(u64) -> u64) -> RecordHeader {
        let fields = (word & (field::EXPIRES | field::FLAGS | field::HASHED)).count_ones();
        let member = lengths.have_sums() && word & field::MEMBER != 0;
        let lead = lengths.lead + 8 * u64::from(fields) + 16 * u64::from(member);
        match lengths.fixed {
            Some((key, value)) => RecordHeader::new(word, lead, key.into(), value.into()),
            None if word & field::LONG == 0 => {
                RecordHeader::new(word, lead, word >> KEY_SHIFT & KEY_MAX, word >> VALUE_SHIFT & lengths.value_mask)
            }
            None => {
                let both = load(lengths.lead / 8);
                RecordHeader::new(word, lead + 8, both & u64::from(u32::MAX), both >> 32)
            }
        }
    }

    /// The version.
    #[inline(always)]
    pub fn version(self) -> u64 {
        self.word >> VERSION_SHIFT
    }

    /// Whether the record has a word for one of [`field`]'s bits.
    #[inline(always)]
    pub fn has(self, bit: u64) -> bool {
        self.word & bit != 0
    }

    /// Whether the value comes before the key, in the word behind the header. An empty one is nowhere.
    #[inline(always)]
    pub fn is_value_first(self) -> bool {
        self.first != 0
    }

    /// Bytes from the start of the record to its key.
    #[inline(always)]
    pub fn key_at(self) -> u64 {
        self.lead + self.first
    }

    /// Bytes from the start of the record to its value.
    #[inline(always)]
    pub fn value_at(self) -> u64 {
        self.lead + if self.is_value_first() { 0 } else { self.key_len }
    }

    /// Bytes of the whole record: a multiple of 8.
    #[inline(always)]
    pub fn bytes(self) -> u64 {
        (self.lead + self.key_len + self.value_len + 7) & !7
    }

    /// Bytes from the start of the record to its hash word, if it has one. (These words are directly before the bytes.)
    #[inline(always)]
    pub fn hash_at(self) -> u64 {
        self.lead - 8
    }

    /// Bytes from the start of the record to its flags word, if it has one.
    #[inline(always)]
    pub fn flags_at(self) -> u64 {
        self.hash_at() - 8 * u64::from(self.has(field::HASHED))
    }

    /// Bytes from the start of the record to its expiry word, if it has one.
    #[inline(always)]
    pub fn expires_at(self) -> u64 {
        self.flags_at() - 8 * u64::from(self.has(field::FLAGS))
    }

    /// Whether it has the two words of a member of a transaction.
    pub fn is_member(self) -> bool {
        let others = (self.word & (field::LONG | field::EXPIRES | field::FLAGS | field::HASHED)).count_ones();
        // With a header word, a checksum word and these two.
        self.lead == 32 + 8 * u64::from(others)
    }

    /// Bytes from the start of the record to the second of these words; the first one is before it.
    pub fn member_at(self) -> u64 {
        self.expires_at() - 8 * u64::from(self.has(field::EXPIRES))
    }

    /// The whole head, its further words through `load(word index)`.
    pub fn head(self, mut load: impl FnMut(u64) -> u64) -> Head {
        let member = self.is_member().then(|| (load(self.member_at() / 8 - 1), load(self.member_at() / 8)));
        let mut word = |bit, at: u64| self.has(bit).then(|| load(at / 8));
        Head {
            key_len: self.key_len,
            value_len: self.value_len,
            expires: word(field::EXPIRES, self.expires_at()),
            flags: word(field::FLAGS, self.flags_at()).unwrap_or(0),
            hash: word(field::HASHED, self.hash_at()),
            version: self.version(),
            dead: u64::from(self.has(field::DEAD)),
            member,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(head: Head, lengths: Lengths) {
        let head = Head { member: head.member.filter(|_| lengths.have_sums()), ..head };
        let mut words = [0u64; 10];
        let header = head.header(lengths);
        let mut written = 0;
        head.write(lengths, header, |i, w| {
            words[i as usize] = w;
            written = i + 1;
        });
        assert_eq!(8 * written, header.lead);
        assert_eq!(RecordHeader::read(lengths, words[0], |i| words[i as usize]), header);
        assert_eq!(Head::read(lengths, |i| words[i as usize]), head);
    }

    #[test]
    fn heads_round_trip_at_every_boundary() {
        for key_len in [0, 1, 127, 128, u64::from(u32::MAX)] {
            for value_len in [0, 255, 256, 511, 512, u64::from(u32::MAX)] {
                for bits in 0..32 {
                    let head = Head {
                        key_len,
                        value_len,
                        expires: (bits & 1 != 0).then_some(1 << 47),
                        flags: if bits & 2 != 0 { u64::MAX } else { 0 },
                        hash: (bits & 4 != 0).then_some(u64::MAX),
                        version: VERSION_MAX,
                        dead: bits >> 3 & 1,
                        member: (bits & 16 != 0).then_some((u64::MAX, 7)),
                    };
                    for lengths in [Lengths::VARIABLE, Lengths::fixed(key_len as u32, value_len as u32)] {
                        round_trip(head, lengths);
                        round_trip(head, lengths.with_sums());
                    }
                }
            }
        }
    }

    #[test]
    fn the_short_way_reads_the_same() {
        for (key_len, value_len) in [(0, 0), (127, 255), (8, 8)] {
            for lengths in [Lengths::VARIABLE, Lengths::fixed(key_len as u32, value_len as u32)] {
                for lengths in [lengths, lengths.with_sums()] {
                    let head = Head { key_len, value_len, version: 9, dead: 1, ..Head::default() };
                    let header = RecordHeader::small(lengths, head.pack(lengths)).expect("a small record");
                    assert_eq!(header.head(|_| unreachable!("it has no further words")), head);
                    assert_eq!(header, RecordHeader::read(lengths, header.word, |_| unreachable!("nor a length word")));
                    assert_eq!(header.bytes(), head.record_bytes(lengths));
                    assert_eq!((header.lead, header.version()), (8 * head.words(lengths), 9));
                }
            }
        }
        let long = Head { key_len: 128, version: 1, ..Head::default() };
        assert_eq!(RecordHeader::small(Lengths::VARIABLE, long.pack(Lengths::VARIABLE)), None);
    }

    #[test]
    fn a_short_value_comes_first_where_nothing_is_between() {
        let at = |head: Head, lengths: Lengths| {
            let header = head.header(lengths);
            assert!(
                header.key_at() + head.key_len <= header.bytes()
                    && header.value_at() + head.value_len <= header.bytes()
            );
            (header.key_at(), header.value_at())
        };
        let head = |key_len, value_len| Head { key_len, value_len, version: 1, ..Head::default() };
        assert_eq!(at(head(5, 3), Lengths::VARIABLE), (11, 8));
        assert_eq!(at(head(127, 8), Lengths::VARIABLE), (16, 8));
        assert_eq!(at(head(5, 0), Lengths::VARIABLE), (8, 13));
        assert_eq!(at(head(5, 9), Lengths::VARIABLE), (8, 13));
        assert_eq!(at(head(5, 8), Lengths::fixed(5, 8)), (16, 8));
        // A length word, an attribute or a checksum is between.
        assert_eq!(at(head(128, 8), Lengths::VARIABLE), (16, 144));
        assert_eq!(at(Head { flags: 1, ..head(5, 8) }, Lengths::VARIABLE), (16, 21));
        assert_eq!(at(head(5, 8), Lengths::VARIABLE.with_sums()), (16, 21));
    }

    #[test]
    fn small_records_carry_one_word_or_two() {
        let head = Head { key_len: 8, value_len: 8, version: 1, ..Head::default() };
        assert_eq!(head.record_bytes(Lengths::VARIABLE), 24);
        let empty = Head { version: 1, ..Head::default() };
        assert_eq!(empty.record_bytes(Lengths::VARIABLE), 8);
        assert_eq!(head.record_bytes(Lengths::VARIABLE.with_sums()), 32);
    }
}
