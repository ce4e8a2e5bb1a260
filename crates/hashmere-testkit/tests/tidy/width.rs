//! Documents are at most 100 columns wide, so that they can be read and compared as they are. Tables, blocks of code, and
//! lines without a space to break at (addresses) may be wider.

use crate::source::{those, Source};
use crate::{demand_none, places, Problem};

const COLUMNS: usize = 100;

/// Documents that are not wrapped yet.
const WIDE: &[&str] = &[];

fn problems(documents: &[Source], allowed: &[&str]) -> Vec<Problem> {
    let mut found = Vec::new();
    for document in documents {
        let wide = wide_lines(&document.text);
        let is_allowed = allowed.contains(&document.path.as_str());
        if is_allowed && wide.is_empty() {
            found.push(Problem::new(&document.path, "is wrapped now: remove it from `WIDE` in tests/tidy/width.rs"));
        }
        for (line, columns) in wide.into_iter().filter(|_| !is_allowed) {
            let text = format!("{columns} columns; wrap the line at {COLUMNS}");
            found.push(Problem::on_line(&document.path, line, text));
        }
    }
    let is_there = |path: &&&str| documents.iter().any(|document| document.path == **path);
    let gone = allowed.iter().filter(|path| !is_there(path));
    found.extend(gone.map(|path| Problem::new(*path, "is not there: remove it from `WIDE` in tests/tidy/width.rs")));
    found
}

/// Lines that are too wide, with their widths.
fn wide_lines(text: &str) -> Vec<(usize, usize)> {
    let mut is_code = false;
    let mut wide = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        let is_free = is_code || fence || line.starts_with('|') || line.starts_with("    ");
        let columns = line.chars().count();
        let can_be_broken = line.trim_start_matches([' ', '-', '*', '>']).contains(' ');
        if columns > COLUMNS && !is_free && can_be_broken {
            wide.push((number, columns));
        }
    }
    wide
}

#[test]
fn documents_are_at_most_100_columns_wide() {
    let documents = those(|source| source.ending() == "md");
    demand_none(&problems(&documents, WIDE));
}

#[test]
fn a_wide_line_is_found_and_tables_and_code_are_not() {
    let (wide, long) = ("wide line ".repeat(11), "x".repeat(120));
    let text = format!("# Title\n{wide}\n| {wide} |\n```text\n{wide}\n```\n    {wide}\n- {long}\n- {wide}\n");
    let found = problems(&[Source::new("docs/a.md", &text)], &[]);
    assert_eq!(places(&found), ["docs/a.md:2", "docs/a.md:9"]);
    assert!(found[0].text.contains("110 columns"), "{found:?}");
    assert!(problems(&[Source::new("docs/a.md", &text)], &["docs/a.md"]).is_empty());
}

#[test]
fn an_exception_that_is_not_needed_is_found() {
    let found = problems(&[Source::new("docs/a.md", "short\n")], &["docs/a.md", "docs/gone.md"]);
    assert_eq!(places(&found), ["docs/a.md", "docs/gone.md"]);
}
