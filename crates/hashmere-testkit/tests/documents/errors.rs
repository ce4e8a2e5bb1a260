//! The errors of a language that lists them by itself are those of all: the same names and codes.

use crate::read;
use std::collections::BTreeMap;

/// Of the C interface alone: Python has exceptions of its own for both.
const OF_C_ALONE: &[i32] = &[100, 102];

/// `NOT_FOUND` as a class has it: `NotFound`.
fn camel(name: &str) -> String {
    let word = |word: &str| word.chars().take(1).chain(word.to_lowercase().chars().skip(1)).collect::<String>();
    name.split('_').map(word).collect()
}

/// The constants `HM_E_...` of the headers, which the library is compared with by a test of its own.
fn of_c() -> BTreeMap<i32, String> {
    let headers =
        ["hashmere", "hashmere_transaction", "hashmere_queue", "hashmere_log", "hashmere_feed", "hashmere_dump"];
    let text: String = headers.iter().map(|name| read(&format!("crates/hashmere-ffi/include/{name}.h"))).collect();
    let line = |line: &str| {
        let (name, rest) = line.trim().strip_prefix("HM_E_")?.split_once(" = ")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some((rest[..digits].parse().ok()?, camel(name)))
    };
    text.lines().filter_map(line).collect()
}

fn of_python() -> BTreeMap<i32, String> {
    let text = read("bindings/python/python/hashmere/errors.py");
    let mut found = BTreeMap::new();
    let mut class = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("class ") {
            class = rest.split(['(', ':']).next().unwrap();
        } else if let Some(code) = line.trim().strip_prefix("code = ") {
            let code = code.parse().unwrap_or_else(|_| panic!("the code of {class} is {code}"));
            assert_eq!(found.insert(code, class.to_string()), None, "two classes of Python have the code {code}");
        }
    }
    found
}

#[test]
fn errors_of_python_are_those_of_all_languages() {
    let mut c = of_c();
    assert!(c.len() > 40, "the headers have only {} errors", c.len());
    for code in OF_C_ALONE {
        assert!(c.remove(code).is_some(), "the headers have no error {code}");
    }
    assert_eq!(of_python(), c, "Python's classes (left) are not the constants of the C headers (right)");
}
