//! Promise: a header that says what the file cannot hold, or that contradicts itself, is refused when the store is
//! opened, in words that say what is wrong, and the file stays as it was; what is opened takes no room that was not
//! asked for. Catches: lengths that are believed because their checksum is right, room that is made before a request is
//! looked at.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Change, Counter, Expected, Mode, OpenError, Options, Store, Ttl, Update};
use hashmere_engine::StoreHandle;
use hashmere_format::header::{self, at};
use hashmere_testkit::limits::{quick, sampled, Watchdog};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{tiny, BASE};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

const KEYS: u64 = 60;
/// What everything that is done with a file may add to it.
const ROOM: u64 = 16 << 20;
/// Values at some limit or other, and beside it.
const LIMITS: [u64; 17] = [
    0,
    1,
    2,
    1 << 10,
    1 << 12,
    1 << 20,
    (1 << 20) + (8 << 12),
    1 << 23,
    1 << 24,
    1 << 32,
    1 << 40,
    1 << 41,
    1 << 42,
    1 << 48,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A valid file, closed in order.
fn base(scratch: &Scratch, options: &Options) -> Vec<u8> {
    let path = scratch.store("base");
    let _ = std::fs::remove_file(&path);
    let store = options.open(&path).unwrap();
    (0..KEYS).for_each(|number| assert!(store.set(&key(number), &[b'7'; 16]).is_ok()));
    drop(store);
    std::fs::read(&path).unwrap()
}

fn word(bytes: &[u8], offset: u64) -> u64 {
    u64::from_le_bytes(bytes[offset as usize..][..8].try_into().unwrap())
}

fn put(bytes: &mut [u8], offset: u64, value: u64) {
    bytes[offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
}

/// The file with other words in its header, and the checksum that goes with them.
fn forged(whole: &[u8], words: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    words.iter().for_each(|(offset, value)| put(&mut bytes, *offset, *value));
    let frozen: Vec<u64> = (0..at::CHECKSUM / 8).map(|number| word(&bytes, 8 * number)).collect();
    put(&mut bytes, at::CHECKSUM, header::checksum(&frozen));
    bytes
}

/// Does with it whatever can be done. What comes back does not matter.
fn use_it(store: &Store) {
    for number in 0..20 {
        let key = key(number);
        let _ = (store.get(&key), store.get_item(&key), store.view(&key).map(drop));
        let _ = (store.incr(&key, 1, Counter::or_create(1)), store.decr(b"other", 1, Counter::EXISTING));
        let _ = (store.set(&key, &[b'8'; 16]), store.set(&key, b"short"), store.set(b"long key of this", &[0; 3000]));
        let _ = (store.add(&key, b"x", Attributes::NONE), store.replace(&key, b"y", Attributes::NONE));
        let _ = (store.append(&key, b"tail"), store.prepend(&key, b"head"), store.touch(&key, Ttl::Never));
        let _ = store.cas(&key, Expected::Absent, Change::Set(b"z"));
        let _ = store.update_with(&key, |_| Update::Set(b"updated".to_vec()));
        let _ = (
            store.set_many(&[(key, b"batch")]),
            store.reserve(&key, 16, Attributes::NONE).map(drop),
            store.delete(&key),
        );
    }
    store.iter().take(500).take_while(Result::is_ok).for_each(drop);
    let _ = (store.len(), store.stats(), store.check().is_clean(), store.compact(), store.sync());
    let _ = store.shared().create_region(1, b"region", 5000, |_, _| ()).map(drop);
    let _ = (store.clear(), store.set(&key(1), &[b'9'; 16]), store.random());
}

/// Why it was not opened, or `None`; it was used then.
fn try_it(path: &Path, bytes: &[u8], what: &str) -> Option<String> {
    std::fs::write(path, bytes).unwrap();
    // A flag of the header may have it removed when it is closed.
    let file = std::fs::File::open(path).unwrap();
    let taken = || file.metadata().unwrap().blocks() * 512;
    let before = taken();
    let options = Options::new().create(false).busy_timeout(Duration::from_millis(1));
    let mut texts = Vec::new();
    for options in [options.clone().read_only(), options] {
        match options.open(path) {
            Ok(store) => use_it(&store),
            Err(
                error @ (OpenError::NotAStore { .. }
                | OpenError::NotCleanlyClosed { .. }
                | OpenError::TooManyClients { .. }),
            ) => {
                texts.push(error.to_string());
                assert!(texts.iter().all(|text| text.contains("forged.mere")), "{what}: {texts:?}");
            }
            Err(error) => panic!("{what}: {error:?}"),
        }
    }
    if texts.len() == 2 {
        assert!(std::fs::read(path).unwrap() == bytes, "{what}: refused, and changed");
    }
    let added = taken().saturating_sub(before);
    assert!(added <= ROOM, "{what}: {added} bytes were added to the file");
    let _ = std::fs::remove_file(path);
    texts.pop()
}

fn kinds() -> [(&'static str, Options); 4] {
    [
        ("strict", tiny()),
        ("fixed", tiny().fixed_key_len(8).fixed_value_len(16)),
        ("cache", tiny().mode(Mode::Cache).max_bytes(BASE + (24 << 12))),
        ("durable", tiny().durable()),
    ]
}

#[test]
fn each_word_of_the_header_at_each_limit() {
    let _watchdog = Watchdog::start("forged-words");
    let scratch = Scratch::new("forged-words");
    let path = scratch.store("forged");
    let frozen = (at::COMPAT..at::CHECKSUM).step_by(8).chain([at::MAX_BYTES, at::STATUS, at::ROOT, at::SEGMENTS]);
    let others = (at::BOOT_LO..at::SYNC_NEXT).step_by(8).chain([at::WAITED, at::CHUNKS]);
    let syncs = (at::SYNC_NEXT..at::SYNC_LOCK + 8).step_by(8).chain(at::SYNC_POINTS);
    let mut wanted = sampled(5);
    for (kind, options) in &kinds()[usize::from(quick()) * 2..] {
        let whole = base(&scratch, options);
        let (mut refused, mut used) = (0, 0);
        // Beside the limits as well, and the words in which kinds do not differ, for one kind.
        let all = *kind == "strict";
        let others = others.clone().filter(|_| all);
        let syncs = syncs.clone().filter(|_| *kind == "durable");
        for offset in frozen.clone().chain(others).chain(syncs) {
            let now = word(&whole, offset);
            let beside = LIMITS.iter().filter_map(|limit| all.then_some(limit.wrapping_sub(1)));
            let values = LIMITS.iter().copied().chain(beside).chain([now ^ 1, now.wrapping_add(1)]);
            for value in values.filter(|_| wanted()) {
                match try_it(
                    &path,
                    &forged(&whole, &[(offset, value)]),
                    &format!("{kind}: word {offset} is {value:#x}"),
                ) {
                    Some(_) => refused += 1,
                    None => used += 1,
                }
            }
        }
        println!("{kind}: {refused} refused, {used} used");
        assert!(refused > 10 && used > 10);
    }
}

/// What is refused, and in which words.
#[test]
fn lengths_that_no_file_can_hold_are_refused() {
    let _watchdog = Watchdog::start("forged-lengths");
    let scratch = Scratch::new("forged-lengths");
    let path = scratch.store("forged");
    let [(_, strict), _, (_, cache), _] = kinds();
    let strict = base(&scratch, &strict.max_bytes(BASE + (64 << 12)));
    let cache = base(&scratch, &cache);
    let fixed = |key: u64, value: u64| key | value << 32;
    let shape = |segment: u64, leaf: u64| segment | leaf << 8;
    let most = u64::from(u32::MAX);
    let refused = [
        (&strict, at::FIXED, fixed(most, most), "more than"),
        (&strict, at::FIXED, fixed(3, most), "more than"),
        (&strict, at::FIXED, fixed(0, 2_000_000_001), "it needs"),
        (&strict, at::FIXED, fixed(2_000_000_001, 0), "it needs"),
        // One byte of value more than the 61 segments that a record may have.
        (&strict, at::FIXED, fixed(9, (61 << 12) - 8 - 8 + 2), "it needs"),
        (&strict, at::SHAPE, shape(11, 8), "shape"),
        (&strict, at::SHAPE, shape(27, 8), "shape"),
        (&strict, at::SHAPE, shape(12, 7), "shape"),
        (&strict, at::SHAPE, shape(12, 10), "shape"),
        (&strict, at::SHAPE, shape(26, 16), "shape"),
        (&strict, at::SHAPE, shape(26, 8), "cut short"),
        (&strict, at::SEGMENTS, 1 << 20, "cut short"),
        (&strict, at::SEGMENTS, 0, "cut short"),
        (&strict, at::ROOT, 1 << 24 | 0xff_ffff, "cut short"),
        (&strict, at::MAX_BYTES, BASE + (8 << 12) - 1, "it needs"),
        (&strict, at::MAX_BYTES, 1, "it needs"),
        (&cache, at::MAX_BYTES, 0, "maximum"),
        (&cache, at::INCOMPAT, 1, "durable"),
        (&strict, at::INCOMPAT, 2, "upgrade"),
    ];
    for (whole, offset, value, said) in refused {
        let text = try_it(&path, &forged(whole, &[(offset, value)]), &format!("word {offset} is {value:#x}"));
        let text = text.unwrap_or_else(|| panic!("word {offset} is {value:#x}, and it was opened"));
        assert!(text.contains(said), "word {offset} is {value:#x}: {text}");
    }
    for (offset, value) in [(at::FIXED, fixed(9, (61 << 12) - 8 - 8 + 1)), (at::MAX_BYTES, BASE + (8 << 12))] {
        assert_eq!(try_it(&path, &forged(&strict, &[(offset, value)]), "at the limit"), None);
    }
    // Without a maximum there may be such values; that costs nothing until one is stored.
    let words = [(at::FIXED, fixed(0, 2_000_000_001)), (at::MAX_BYTES, 0)];
    assert_eq!(try_it(&path, &forged(&strict, &words), "values of two gigabytes"), None);
}

/// The same from options: nothing is created.
#[test]
fn options_that_cannot_be_are_refused() {
    let scratch = Scratch::new("forged-options");
    let path = scratch.store("forged");
    let refused = [
        ("fixed_value_len", tiny().fixed_key_len(9).fixed_value_len(u32::MAX - 1)),
        ("max_bytes", tiny().fixed_value_len(2_000_000_000).max_bytes(1 << 30)),
        ("max_bytes", tiny().max_bytes(BASE + (8 << 12) - 1)),
        ("expected_items", tiny().expected_items(u64::MAX)),
        ("expected_items", tiny().expected_items(1 << 40)),
        ("expected_items", tiny().expected_items(1 << 20).max_bytes(BASE + (64 << 12))),
    ];
    for (option, options) in &refused {
        match options.open(&path) {
            Err(OpenError::BadOption { option: named, .. }) => assert_eq!(named, *option),
            other => panic!("{options:?}: {other:?}"),
        }
        assert!(!path.exists());
    }
    // Of a store that is there.
    drop(tiny().max_bytes(BASE + (64 << 12)).open(&path).unwrap());
    let bytes = std::fs::read(&path).unwrap();
    let error = Options::new().expected_items(1 << 20).open(&path).unwrap_err();
    assert!(error.to_string().contains("expected_items"), "{error}");
    assert!(std::fs::read(&path).unwrap() == bytes, "changed");
    drop(Options::new().expected_items(1 << 10).max_bytes(BASE + (1 << 20)).open(&path).unwrap());
}
