//! Promise: what the reference lists is what the code has, what the guide shows is in a sample that is run, and every
//! link of a document has its target. Catches: an error, option or command that is added, renamed or removed without
//! its line in the reference; a fragment of code that no program contains; a section or file that moved.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod errors;
mod faults;
mod fragments;
mod limits;
mod links;
mod names;
mod reference;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What is between the first `start` and the next `end`.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let from = text.find(start).unwrap_or_else(|| panic!("there is no {start:?}")) + start.len();
    let len = text[from..].find(end).unwrap_or(text.len() - from);
    &text[from..from + len]
}

/// The documents of the book, and those beside the code, from the root.
fn documents() -> Vec<String> {
    let mut found: Vec<String> = ["README.md", "CONTRIBUTING.md", "bindings/README.md"].map(String::from).into();
    found.extend(["bindings/python/README.md", "bindings/ruby/README.md"].map(String::from));
    for folder in ["docs", "docs/guide", "docs/reference", "docs/internals"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort();
    found
}

/// `ValueLen` as the command line has it: `value-len`.
fn kebab(variant: &str) -> String {
    let letter = |(i, c): (usize, char)| match c.is_uppercase() && i > 0 {
        true => format!("-{}", c.to_lowercase()),
        false => c.to_lowercase().to_string(),
    };
    variant.chars().enumerate().map(letter).collect()
}
