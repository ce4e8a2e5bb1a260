//! Documents are at most 100 columns wide, and comments of Rust at most 120 as its code is, so that they can be read
//! and compared as they are. Tables, blocks of code, and lines without a space to break at (addresses) may be wider.

use crate::source::{those, Source};
use crate::{demand_none, places, Problem};

/// Of documents.
const COLUMNS: usize = 100;
/// Of comments: `max_width` of rustfmt.toml, which leaves comments alone.
const COMMENT_COLUMNS: usize = 120;

/// What is wider than it may be.
fn problems(sources: &[Source]) -> Vec<Problem> {
    let mut found = Vec::new();
    for source in sources {
        let (wide, columns) = match source.ending() {
            "md" => (wide_lines(&source.text), COLUMNS),
            _ => (wide_comments(&source.text), COMMENT_COLUMNS),
        };
        found.extend(wide.into_iter().map(|(line, width)| {
            Problem::on_line(&source.path, line, format!("{width} columns; wrap the line at {columns}"))
        }));
    }
    found
}

fn can_be_broken(text: &str) -> bool {
    text.trim_start_matches([' ', '-', '*', '>']).contains(' ')
}

/// Lines of a document that are too wide, with their widths.
fn wide_lines(text: &str) -> Vec<(usize, usize)> {
    let mut is_code = false;
    let mut wide = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        let is_free = is_code || fence || line.starts_with('|') || line.starts_with("    ");
        let columns = line.chars().count();
        if columns > COLUMNS && !is_free && can_be_broken(line) {
            wide.push((number, columns));
        }
    }
    wide
}

/// The same of the lines of a source that are comments and nothing else.
fn wide_comments(text: &str) -> Vec<(usize, usize)> {
    let mut is_code = false;
    let mut wide = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_code = false;
            continue;
        };
        let said = comment.trim_start_matches(['/', '!']).trim_start();
        let fence = said.starts_with("```");
        is_code ^= fence;
        let columns = line.chars().count();
        if columns > COMMENT_COLUMNS && !is_code && !fence && !said.starts_with('|') && can_be_broken(said) {
            wide.push((number, columns));
        }
    }
    wide
}

#[test]
fn documents_and_comments_are_not_too_wide() {
    demand_none(&problems(&those(|source| ["md", "rs"].contains(&source.ending()))));
}

#[test]
fn a_wide_line_is_found_and_tables_and_code_are_not() {
    let (wide, long) = ("wide line ".repeat(11), "x".repeat(120));
    let text = format!("# Title\n{wide}\n| {wide} |\n```text\n{wide}\n```\n    {wide}\n- {long}\n- {wide}\n");
    let found = problems(&[Source::new("docs/a.md", &text)]);
    assert_eq!(places(&found), ["docs/a.md:2", "docs/a.md:9"]);
    assert!(found[0].text.contains("110 columns"), "{found:?}");

    let wide = "wide line ".repeat(12);
    let text = format!(
        "/// {wide}\nlet x = \"{wide}\"; // {wide}\n    // {long}\n//! ```\n//! {wide}\n//! ```\n    // {wide}\n"
    );
    assert_eq!(places(&problems(&[Source::new("a.rs", &text)])), ["a.rs:1", "a.rs:7"]);
}
