//! The header, the Rust behind it, the error codes of the engine and the committed description of the ABI say the same.
//!
//! `abi/layout.txt` and `abi/hashmere.map` hold what was published. `HASHMERE_ABI=write` writes the layout again; a
//! change of a line that was released breaks programs, a new line does not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod layout;
mod text;

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::Path;
use text::Header;

fn here(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn header() -> Header {
    // `hashmere_logf.h` is code of the caller's, and no part of the ABI.
    let all = ["hashmere", "hashmere_transaction", "hashmere_queue", "hashmere_log", "hashmere_feed", "hashmere_dump"]
        .map(|name| here(&format!("include/{name}.h")));
    Header::parse(&all.concat())
}

/// `NOT_A_STORE` from `NotAStore`.
fn shout(camel: &str) -> String {
    let mut name = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

/// The codes that the documentation of the errors promises. Those of backups and queues have that before their names,
/// for some of these are names of other errors too.
fn codes_of(source: &str) -> BTreeMap<String, i32> {
    let source = here(source);
    let mut codes = BTreeMap::new();
    let (mut code, mut family) = (None, "");
    for line in source.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("pub enum ") {
            family = match name.trim_end_matches(" {") {
                "BackupError" => "Backup",
                "QueueError" => "Queue",
                "LogError" => "Log",
                "FeedError" => "Feed",
                _ => "",
            };
        } else if let Some(doc) = line.strip_prefix("/// ") {
            let said = doc.split("Code ").nth(1).and_then(|rest| rest.trim_end_matches('.').parse().ok());
            code = said.or(code);
        } else if let Some(number) = code.take() {
            // A token is of nothing but a feed.
            let family = if line.starts_with("BadToken") { "" } else { family };
            let name: String = family.chars().chain(line.chars().take_while(|c| c.is_alphanumeric())).collect();
            let before = codes.insert(shout(&name), number);
            assert!(before.is_none_or(|b| b == number), "{name} has two codes");
        }
    }
    codes
}

#[test]
fn the_errors_are_those_of_the_engine() {
    let header = header();
    let all =
        header.constants.iter().filter_map(|(name, n)| Some((name.strip_prefix("HM_E_")?.to_string(), *n as i32)));
    let (own, shared): (BTreeMap<_, _>, BTreeMap<_, _>) = all.partition(|(_, n)| (100..110).contains(n));
    let mut codes = codes_of("../hashmere-engine/src/error.rs");
    assert!(codes.len() > 20, "error.rs is not understood: {codes:?}");
    codes.append(&mut codes_of("../hashmere-queue/src/error.rs"));
    codes.append(&mut codes_of("../hashmere-log/src/error.rs"));
    codes.append(&mut codes_of("../hashmere-feed/src/error.rs"));
    codes.append(&mut codes_of("../hashmere-dump/src/error.rs"));
    assert_eq!(shared, codes);
    let own: Vec<_> = own.into_iter().collect();
    assert_eq!(own, [("ARGUMENT".into(), 100), ("CLOSED".into(), 101), ("INTERNAL".into(), 102)]);
}

#[test]
fn every_result_has_its_name() {
    let name_of = |code| {
        // SAFETY: the header promises a string.
        unsafe { CStr::from_ptr(hashmere_ffi::result::hm_result_name(code)) }.to_str().unwrap().to_string()
    };
    let results = header().constants;
    let own = results.iter().take_while(|(name, _)| *name != "HM_NEVER");
    let is_other = |name: &str| {
        ["HM_E_QUEUE_", "HM_E_LOG_", "HM_E_FEED_", "HM_E_BAD_TOKEN", "HM_E_MALFORMED", "HM_SKIPPED"]
            .iter()
            .any(|n| name.starts_with(n))
    };
    let results: Vec<_> = own.chain(results.iter().filter(|(name, _)| is_other(name))).collect();
    for (name, code) in &results {
        let bare = name.strip_prefix("HM_E_").or(name.strip_prefix("HM_")).unwrap();
        assert_eq!(shout(&name_of(*code as i32)), bare);
    }
    for code in (-20..120).filter(|code| !results.iter().any(|(_, n)| *n as i32 == *code)) {
        assert_eq!(name_of(code), "Unknown", "{code}");
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let source = here("include/hashmere.h");
    let number = |part: &str| -> u32 {
        let line = format!("#define HM_VERSION_{part} ");
        source.lines().find_map(|l| l.strip_prefix(&line)).unwrap().parse().unwrap()
    };
    let version = [number("MAJOR"), number("MINOR"), number("PATCH")];
    assert_eq!(version.map(|n| n.to_string()).join("."), env!("CARGO_PKG_VERSION"));
    let [major, minor, patch] = version;
    assert_eq!(hashmere_ffi::result::hm_version(), 10_000 * major + 100 * minor + patch);
}

#[test]
fn each_function_is_declared_as_it_is_defined() {
    let declared = header().functions;
    let mut defined = BTreeMap::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        text::collect_exports(&here(&format!("src/{name}")), &mut defined);
    }
    assert!(defined.len() > 70, "the sources are not understood: {} functions", defined.len());
    for (name, parameters) in &defined {
        assert_eq!(declared.get(name), Some(parameters), "{name}");
    }
    // Those that return no result are written out.
    let closes = [
        "hm_pool_close",
        "hm_queue_close",
        "hm_ready_fd_close",
        "hm_endpoint_close",
        "hm_atomics_close",
        "hm_atomic_close",
        "hm_mutex_unlock",
        "hm_rwlock_unlock",
        "hm_rwlock_waiter_close",
        "hm_semaphore_release",
        "hm_barrier_leave",
        "hm_write_batch_close",
        "hm_transaction_close",
    ];
    let others = ["hm_result_name", "hm_version", "hm_view_release", "hm_scan_close"];
    let of_logs = ["hm_log_close", "hm_log_enabled", "hm_follower_close"];
    let of_logs = [&of_logs[..], &["hm_feed_close"]].concat();
    let others = [&others[..], &closes, &of_logs].concat();
    for name in declared.keys() {
        assert!(defined.contains_key(name) || others.contains(&name.as_str()), "{name} is not defined");
    }
}

#[test]
fn the_committed_symbols_are_the_functions_of_the_header() {
    let map = here("abi/hashmere.map");
    let mut listed: Vec<_> = map.lines().filter_map(|l| l.trim().strip_suffix(';')).collect();
    listed.retain(|name| name.starts_with("hm_"));
    let sorted = listed.is_sorted();
    let declared: Vec<_> = header().functions.into_keys().collect();
    assert_eq!(listed, declared);
    assert!(sorted);
}

#[test]
fn the_layout_is_what_was_committed() {
    let header = header();
    let from_c = layout::from_c(&header);
    if std::env::var("HASHMERE_ABI").as_deref() == Ok("write") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("abi/layout.txt");
        std::fs::write(path, &from_c).unwrap();
    }
    assert_eq!(from_c, here("abi/layout.txt"), "the header has another layout than abi/layout.txt");
    let structures: String = from_c.lines().filter(|l| !l.starts_with("HM_")).map(|l| format!("{l}\n")).collect();
    assert_eq!(layout::from_rust(), structures, "the structures of abi.rs have another layout than the header");
}
