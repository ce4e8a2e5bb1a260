//! A file is about one subject. Its length is a warning sign: what has more than 500 lines is either split, or listed
//! in the list below with the reason why it is one subject all the same.

use crate::source::{those, Source};
use crate::{demand_none, places, Problem};

const LINES: usize = 500;

/// Files that may be longer, why, and how long each may be.
const LONG: &[(&str, usize, &str)] = &[
    ("bindings/c/tests/log.c", 600, "the log's whole C interface, call by call, in the order of the header"),
    ("bindings/python/python/hashmere/_hashmere.pyi", 750, "a module of an extension has one stub"),
    ("bindings/python/tests/test_log.py", 550, "the log's whole Python interface, in the order of its stub"),
    ("crates/hashmere-ffi/include/hashmere.h", 1000, "a C library has one header; its sections are marked"),
    (
        "crates/hashmere-engine/src/engine/tests/crash_cases.rs",
        600,
        "a table of cases: one after the other, nothing to be split",
    ),
];

fn problems(sources: &[Source], allowed: &[(&str, usize, &str)]) -> Vec<Problem> {
    let mut found = Vec::new();
    for source in sources {
        let lines = source.text.lines().count();
        let limit = allowed.iter().find(|(path, ..)| *path == source.path).map(|(_, limit, _)| *limit);
        match limit {
            None if lines > LINES => {
                let text = format!("{lines} lines: split it by subject, or give the reason in tests/tidy/length.rs");
                found.push(Problem::new(&source.path, text));
            }
            Some(limit) if lines > limit => {
                let text = format!("{lines} lines, and {limit} are what was agreed to: split it by subject");
                found.push(Problem::new(&source.path, text));
            }
            Some(_) if lines <= LINES => {
                let text = format!("{lines} lines: remove it from `LONG` in tests/tidy/length.rs");
                found.push(Problem::new(&source.path, text));
            }
            _ => {}
        }
    }
    let is_there = |path: &str| sources.iter().any(|source| source.path == path);
    let gone = allowed.iter().filter(|(path, ..)| !is_there(path));
    found.extend(
        gone.map(|(path, ..)| Problem::new(*path, "is not there: remove it from `LONG` in tests/tidy/length.rs")),
    );
    found
}

/// Programs, tests and scripts; documents have chapters, and the lists that tools write are theirs.
fn is_code(source: &Source) -> bool {
    !source.is_in(&["docs", "CHANGELOG.md"]) && !["md", "lock", "txt"].contains(&source.ending())
}

#[test]
fn files_are_short_or_say_why_not() {
    demand_none(&problems(&those(is_code), LONG));
}

#[test]
fn long_files_are_found_and_exceptions_that_are_not_needed() {
    let file = |path: &str, lines: usize| Source::new(path, &"line\n".repeat(lines));
    let files = [
        file("short.rs", 500),
        file("long.rs", 501),
        file("agreed.rs", 600),
        file("longer.rs", 601),
        file("split.rs", 400),
    ];
    let allowed =
        [("agreed.rs", 600, "why"), ("longer.rs", 600, "why"), ("split.rs", 600, "why"), ("gone.rs", 600, "why")];
    assert_eq!(places(&problems(&files, &allowed)), ["long.rs", "longer.rs", "split.rs", "gone.rs"]);
}
