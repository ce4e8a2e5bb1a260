//! The systems under test.

/// What a system is, which decides the bars that it takes part in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Hashmere.
    Ours,
    /// One process only, nothing kept.
    InProcess,
    /// Shared between processes, or kept in a file.
    SharesOrPersists,
}

/// One row of a table.
pub struct System {
    /// `SYSTEM` of this program, or `PROGRAM VARIANT` of `bench/peers`.
    pub id: &'static str,
    /// In words.
    pub label: &'static str,
    /// What it is.
    pub kind: Kind,
}

impl System {
    /// Whether it needs something that is not in this program.
    pub fn is_peer(&self) -> bool {
        self.id.contains(' ') || self.id == MEMCACHED.id
    }
}

const fn ours(id: &'static str, label: &'static str) -> System {
    System { id, label, kind: Kind::Ours }
}
const fn private(id: &'static str, label: &'static str) -> System {
    System { id, label, kind: Kind::InProcess }
}
const fn shared(id: &'static str, label: &'static str) -> System {
    System { id, label, kind: Kind::SharesOrPersists }
}

/// Every system of the report.
pub const ALL: [System; 20] = [
    HASHMERE,
    HASHMERE_EXPECTED,
    HASH_MAP,
    HASH_MAP_FOLDHASH,
    HASH_MAP_FRESH,
    LMDB_BATCH,
    LMDB_SINGLE,
    STASH,
    CACHE,
    KYOTO_HASH,
    TINY,
    TKRZW_HASH,
    MEMCACHED,
    SINGLES,
    LMDB_TRANSACTIONS,
    SQLITE,
    SPDLOG,
    CROSSBEAM,
    RTRB,
    PERFECT,
];

/// What a system is called.
pub fn label(id: &str) -> &str {
    ALL.iter().find(|system| system.id == id).map_or(id, |system| system.label)
}

/// Hashmere with default options.
pub const HASHMERE: System = ours("hashmere", "Hashmere");
/// Hashmere told how many items will come.
pub const HASHMERE_EXPECTED: System = ours("hashmere-expected", "Hashmere, expected_items given");
/// The yardstick of W1.
pub const HASH_MAP: System = private("hashmap-rapidhash", "HashMap, Hashmere's hash, updated in place");
/// The same with another hash.
pub const HASH_MAP_FOLDHASH: System = private("hashmap-foldhash", "HashMap, foldhash, updated in place");
/// The same as most programs use it.
pub const HASH_MAP_FRESH: System = private("hashmap-fresh", "HashMap, Hashmere's hash, fresh vectors");
/// LMDB.
pub const LMDB_BATCH: System = shared("lmdb batch", "LMDB, 1,000 a transaction");
/// LMDB.
pub const LMDB_SINGLE: System = shared("lmdb single", "LMDB, one a transaction");
/// As many single sets, one after the other.
pub const SINGLES: System = ours("hashmere-singles", "Hashmere, the same sets one by one");
/// LMDB, each transaction for itself.
pub const LMDB_TRANSACTIONS: System = shared("lmdb transactions", "LMDB, without sync");
/// SQLite.
pub const SQLITE: System = shared("sqlite transactions", "SQLite, WAL, synchronous off");
/// Kyoto Cabinet.
pub const STASH: System = private("kyoto stash", "Kyoto StashDB, buckets = records");
/// Kyoto Cabinet.
pub const CACHE: System = private("kyoto cache", "Kyoto CacheDB");
/// Kyoto Cabinet.
pub const KYOTO_HASH: System = shared("kyoto hash", "Kyoto HashDB (file)");
/// Tkrzw.
pub const TINY: System = private("tkrzw tiny", "Tkrzw TinyDBM");
/// Tkrzw.
pub const TKRZW_HASH: System = shared("tkrzw hash", "Tkrzw HashDBM (file)");
/// memcached.
pub const MEMCACHED: System = shared("memcached", "memcached, unix socket, client on its core");
/// A cache that cannot be built: the ceiling of a hit ratio.
pub const PERFECT: System = private("perfect", "Frequencies known, nothing stored beside keys and values");
/// A logger.
pub const SPDLOG: System = private("spdlog async", "spdlog, asynchronous, one process");
/// A queue between threads.
pub const CROSSBEAM: System = private("crossbeam", "crossbeam ArrayQueue, two threads");
/// A queue between threads.
pub const RTRB: System = private("rtrb", "rtrb, two threads");
