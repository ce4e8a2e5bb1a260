//! Promise: what is not a store is refused with an error of its own that names the file, and is left as it was.
//! Catches: a directory or FIFO that hangs or crashes an open, garbage taken for a store, a foreign file overwritten.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{OpenError, Options, Store};
use hashmere_format::header::{self, at};
use hashmere_testkit::assert_clean;
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::payload;
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::small;
use nix::sys::stat::Mode;
use nix::unistd::{mkfifo, Uid};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Opens in every way, expecting a refusal; the text of the error.
fn refused(path: &Path) -> String {
    let mut texts = Vec::new();
    for options in [Options::new(), Options::new().create(false), Options::new().read_only()] {
        let error = match options.open(path) {
            Ok(_) => panic!("{}: opened with {options:?}", path.display()),
            Err(error) => error,
        };
        let clear =
            matches!(error, OpenError::NotAStore { .. } | OpenError::InsecurePermissions { .. } | OpenError::Io { .. });
        assert!(clear, "{error:?}");
        assert!(error.to_string().contains(path.file_name().unwrap().to_str().unwrap()), "names the file: {error}");
        texts.push(error.to_string());
    }
    texts.swap_remove(0)
}

fn a_store(path: &Path) -> Vec<u8> {
    let store = small().open(path).unwrap();
    (0..300).for_each(|number| {
        store.set(&payload::key(number), &payload::encode(number)).unwrap();
    });
    drop(store);
    std::fs::read(path).unwrap()
}

#[test]
fn each_kind_of_file_has_its_own_words() {
    let _watchdog = Watchdog::start("open-kinds");
    let scratch = Scratch::new("open-kinds");
    let directory = scratch.store("directory");
    std::fs::create_dir(&directory).unwrap();
    let fifo = scratch.store("fifo");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let target = scratch.store("target");
    a_store(&target);
    let link = scratch.store("link");
    symlink(&target, &link).unwrap();
    let dangling = scratch.store("dangling");
    symlink(scratch.store("nowhere"), &dangling).unwrap();
    let empty = scratch.store("empty");
    std::fs::write(&empty, b"").unwrap();
    let short = scratch.store("short");
    std::fs::write(&short, b"hello").unwrap();
    let text = scratch.store("text");
    std::fs::write(&text, "all work and no play ".repeat(10_000)).unwrap();

    let mut texts: Vec<String> =
        [&directory, &fifo, &link, &empty, &text].map(|path| refused(path).replace(path.to_str().unwrap(), "")).into();
    refused(&short);
    refused(&dangling);
    assert!(!scratch.store("nowhere").exists(), "created through a symbolic link");
    println!("{texts:#?}");
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 5, "two kinds share their words");
    assert_eq!(std::fs::read(&empty).unwrap(), b"");
    assert_eq!(std::fs::read(&short).unwrap(), b"hello");
    assert!(std::fs::read(&text).unwrap().starts_with(b"all work and"));
    assert!(std::fs::read_dir(&directory).unwrap().next().is_none());
}

#[test]
fn garbage_is_not_a_store() {
    let mut rng = Rng::for_test("open-garbage");
    let scratch = Scratch::new("open-garbage");
    let path = scratch.store("garbage");
    for len in [1usize, 8, 63, 64, 511, 512, 4095, 4096, 65536, 1 << 20] {
        let garbage = rng.bytes(len);
        std::fs::write(&path, &garbage).unwrap();
        refused(&path);
        assert!(std::fs::read(&path).unwrap() == garbage, "{len} bytes of garbage were changed");
    }
}

#[test]
fn a_truncated_store_is_refused_or_whole() {
    let scratch = Scratch::new("open-truncated");
    let path = scratch.store("truncated");
    let whole = a_store(&path);
    let mut lengths: Vec<usize> = (1..32).map(|part| whole.len() / 32 * part).collect();
    lengths.extend([1, 7, 8, 100, 4095, 4096, 4097, whole.len() - 4096, whole.len() - 1]);
    for len in lengths.into_iter().filter(|&len| len < whole.len()) {
        std::fs::write(&path, &whole[..len]).unwrap();
        if let Ok(store) = Options::new().open(&path) {
            // There was nothing in what was cut off.
            for number in 0..300 {
                let found = store.get(&payload::key(number)).unwrap();
                assert_eq!(found, Some(payload::encode(number)), "key {number}, cut at {len} of {}", whole.len());
            }
            assert_clean(&store);
            store.set(b"more", &[7; 10_000]).unwrap();
            continue;
        }
        refused(&path);
        assert!(std::fs::read(&path).unwrap() == whole[..len], "cut at {len}: the file was changed");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(Store::open(&path).unwrap().len(), 300);
}

/// Any change in what tells a store's format makes it another format, of another version or another machine.
#[test]
fn another_format_is_refused() {
    let scratch = Scratch::new("open-format");
    let path = scratch.store("format");
    let whole = a_store(&path);
    for byte in 0..32 {
        for change in [1, 0x80, 0xff] {
            let mut other = whole.clone();
            other[byte] ^= change;
            std::fs::write(&path, &other).unwrap();
            match Options::new().create(false).open(&path) {
                Err(OpenError::NotAStore { reason, .. }) => assert!(!reason.is_empty()),
                Err(error) => panic!("byte {byte}: {error:?}"),
                Ok(_) => panic!("byte {byte} of the header changed by {change:#x}, and it was opened"),
            }
            assert!(std::fs::read(&path).unwrap() == other, "byte {byte}: the file was changed");
        }
    }
}

/// Header words of files that are stores, but not such as can be opened here: each has its own error.
#[test]
fn each_foreign_format_has_its_own_words() {
    let scratch = Scratch::new("open-foreign-formats");
    let path = scratch.store("foreign");
    let whole = a_store(&path);
    let word = |bytes: &[u8], offset: u64| u64::from_le_bytes(bytes[offset as usize..][..8].try_into().unwrap());
    let open = |change: &[(u64, u64)], options: &Options| {
        let mut bytes = whole.clone();
        let mut put = |offset: u64, value: u64| bytes[offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
        change.iter().for_each(|(offset, value)| put(*offset, *value));
        let frozen: Vec<u64> = (0..at::CHECKSUM / 8).map(|number| word(&bytes, 8 * number)).collect();
        bytes[at::CHECKSUM as usize..][..8].copy_from_slice(&header::checksum(&frozen).to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let outcome = options.open(&path).map(drop).map_err(|error| error.to_string());
        assert!(outcome.is_ok() || std::fs::read(&path).unwrap() == bytes, "a refused file was changed");
        outcome
    };
    let (plain, reading) = (Options::new().create(false), Options::new().read_only());
    let refused = [
        (at::MAGIC, header::MAGIC.swap_bytes(), "big-endian"),
        (at::MAGIC, 0, "magic number"),
        (at::FORMAT, header::FORMAT + 1, "upgrade hashmere"),
        (at::FORMAT, header::FORMAT - 1, "dump it with the version that wrote it"),
        (at::INCOMPAT, 1 << 40, "features this version does not know"),
        (at::LAYOUT, 1, "another layout"),
        (at::SHAPE, u64::MAX, "shape"),
    ];
    for (offset, value, said) in refused {
        for options in [&plain, &reading] {
            let text = open(&[(offset, value)], options).unwrap_err();
            assert!(text.contains(said) && text.contains("foreign"), "{text}");
        }
    }
    // What may be read and not written.
    let text = open(&[(at::RO_COMPAT, 1)], &plain).unwrap_err();
    assert!(text.contains("read-only"), "{text}");
    open(&[(at::RO_COMPAT, 1)], &reading).unwrap();
    // What need not be known.
    open(&[(at::COMPAT, 1 << 9)], &plain).unwrap();
}

#[test]
fn another_users_file_and_an_open_folder_are_not_trusted() {
    if !Uid::effective().is_root() {
        println!("skipped: only root can make a file of another user");
        return;
    }
    let scratch = Scratch::new("open-foreign");
    let path = scratch.store("foreign");
    a_store(&path);
    std::os::unix::fs::chown(&path, Some(12345), Some(12345)).unwrap();
    let error = Options::new().open(&path).unwrap_err();
    assert!(matches!(error, OpenError::InsecurePermissions { .. }) && error.to_string().contains("12345"), "{error}");
    assert_eq!(Options::new().allow_foreign_owner().open(&path).unwrap().len(), 300);
}

#[test]
fn a_missing_folder_is_named() {
    let scratch = Scratch::new("open-folder");
    let path = scratch.path().join("no/such/folder/x.mere");
    let error = Options::new().open(&path).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("folder"), "{text}");
    assert!(!scratch.path().join("no").exists());
}
