//! The code that the guide shows, beside the samples that are run.

use crate::{between, documents, read, root};

/// The blocks of code of a document that name their sample: its path, and the lines.
fn fragments(document: &str, text: &str) -> Vec<(String, Vec<String>)> {
    let (mut found, mut block) = (Vec::new(), Vec::new());
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
            if inside {
                block.clear();
            }
        } else if inside {
            block.push(line.trim().to_string());
        } else if let Some(rest) = line.strip_prefix("From [") {
            let path = rest.split("](").nth(1).and_then(|rest| rest.split(')').next()).expect("a link");
            let folder = root().join(document);
            let path = folder.parent().unwrap().join(path).canonicalize().unwrap_or_else(|e| panic!("{path}: {e}"));
            let path = path.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
            found.push((path, std::mem::take(&mut block)));
        }
    }
    found
}

/// Every line of a document's code is in a program, in this order: how many there are.
fn demand_in_order<'a>(document: &str, lines: impl Iterator<Item = &'a str>, program: &str) -> usize {
    let source = read(program);
    let mut rest = source.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty());
    lines.fold(0, |seen, line| {
        let is_there = rest.any(|other| other == line);
        assert!(is_there, "{document} shows what {program} does not have, in this order: {line}");
        seen + 1
    })
}

#[test]
fn fragments_are_of_the_samples() {
    let mut seen = 0;
    for document in documents() {
        for (sample, lines) in fragments(&document, &read(&document)) {
            seen += demand_in_order(&document, lines.iter().map(String::as_str), &sample);
        }
    }
    assert!(seen >= 10, "{seen}");
}

/// Cargo compiles the program with the tests. The Python of the same document is run by
/// `bindings/python/tests/test_samples.py`.
#[test]
fn the_rust_of_the_first_page_is_of_a_program_that_is_compiled() {
    let page = read("README.md");
    let code = between(&page, "```rust\n", "```");
    assert!(demand_in_order("README.md", code.lines().map(str::trim), "crates/hashmere/examples/readme.rs") >= 5);
}
