//! The numbers of `docs/reference/limits.md` beside the constants that they repeat, wherever these are declared.

use crate::{read, root};
use std::path::Path;

/// A declaration, and what the page says.
const LIMITS: [(&str, &str); 28] = [
    ("SEGMENT_SHIFT_MIN: u32 = 12;", "| segment | 4 KiB to"),
    ("SEGMENT_SHIFT_MAX: u32 = 26;", "to 64 MiB |"),
    ("LEAF_SHIFT_MIN: u32 = 8;", "| leaf of the index | 256 bytes to"),
    ("LEAF_SHIFT_MAX: u32 = 15;", "to 32 KiB, an eighth of a segment |"),
    ("VERSION_SHIFT: u32 = 22;", "| version of a key | 2^42 - 1 |"),
    ("MIN_VERSION_MAX: Version = Version(1 << 41);", "| version that a write may ask for | 2^41 |"),
    ("NAME_MAX: usize = 128;", "| name of a pool or log | 1 to 128 bytes, no NUL |"),
    ("NAME_MAX: usize = 64;", "| name of a queue | 1 to 64 bytes, no NUL |"),
    ("SLOTS: u32 = 1 << 10;", "| writer contexts of a store, all processes together | 1024 |"),
    ("PINS: u64 = 24;", "| views of a writer | 24 segments |"),
    ("WAITING_MAX: usize = 4096;", "| eviction notices that wait | 4096 |"),
    ("SINGLES: u64 = 64;", "| single elements of an endpoint | 64 |"),
    ("SIZE_MAX: u64 = 1 << 32;", "| participants of a barrier | 2^32 |"),
    ("LINE_MAX: u64 = 16 << 10;", "| line in one piece | a quarter of a ring, and 16 KiB |"),
    ("KEY_MAX: usize = 250;", "| key | 250 bytes |"),
    ("FLAGS_MAX: usize = 18;", "| flags of a meta command, opaque | 18,"),
    ("OPAQUE_MAX: usize = 31;", ", 31 bytes |"),
    ("RELATIVE_MAX: i64 = 60 * 60 * 24 * 30;", "| relative expiry | 30 days;"),
    ("WATCHERS_MAX: usize = 20;", "| watchers | 20,"),
    ("PREFIXES_MAX: usize = 10_000;", "| prefixes of `stats detail` | 10,000 |"),
    ("HEAD_MAX: usize = 32 << 10;", "| request line and headers | 32 KiB,"),
    ("HEADERS_MAX: usize = 64;", ", 64 headers |"),
    ("HEAD_SECONDS: u64 = 10;", "| request | 10 s,"),
    ("IDLE_SECONDS: u64 = 75;", "| connection without a request | 75 s |"),
    ("KEYS_MAX: usize = 1000;", "| keys of a listing | 1000 |"),
    ("OPERATIONS_MAX: usize = 1000;", "| operations of a bulk request | 1000 |"),
    ("STREAMS_MAX: usize = 64;", "| streams of changes | 64 |"),
    ("TOKEN_MIN: usize = 16;", "| token | at least 16 characters |"),
];

fn gather(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, text);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn limits_are_those_of_the_code() {
    let mut code = String::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        gather(&entry.unwrap().path().join("src"), &mut code);
    }
    let page = read("docs/reference/limits.md");
    for (declaration, row) in LIMITS {
        assert!(code.contains(&format!("const {declaration}")), "no file of the crates declares {declaration}");
        assert!(page.contains(row), "docs/reference/limits.md does not say {row:?}, as {declaration} does");
    }
}
