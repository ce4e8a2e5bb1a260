//! The lists of `docs/reference` beside those of the code.

use crate::{between, kebab, read, root};
use std::collections::BTreeSet;

type Names = BTreeSet<String>;

/// The words behind `mark` and up to the next character that no identifier has.
fn words_behind<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(mark)
        .skip(1)
        .map(|rest| &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())])
}

/// The names in the first cells of the tables of a text, or in the bold beginnings of its items.
fn listed(text: &str) -> Names {
    let mut names = Names::new();
    for line in text.lines() {
        let first = match (line.strip_prefix("| `"), line.strip_prefix("- **`")) {
            (Some(row), _) => row.split(" |").next(),
            (_, Some(item)) => item.split_once("**:").map(|(names, _)| names).or(item.split("** (").next()),
            _ => None,
        };
        for name in first.into_iter().flat_map(|cell| cell.split('`').step_by(2)) {
            names.insert(name.to_string());
        }
    }
    names
}

fn camel(constant: &str) -> String {
    let word = |word: &str| word[..1].to_string() + &word[1..].to_lowercase();
    constant.split('_').map(word).collect()
}

/// What the library calls its positive results, and the command its own.
fn errors_of_the_code() -> BTreeSet<(u32, String)> {
    let mut errors = BTreeSet::new();
    let results = read("crates/hashmere-ffi/src/result.rs");
    for line in results.lines() {
        if let Some((code, name)) = line.trim().split_once(" => c\"") {
            let value = match code.starts_with(|c: char| c.is_ascii_uppercase()) {
                true => between(&results, &format!("pub const {code}: c_int = "), ";"),
                false => code,
            };
            // Results that are no errors are negative; what has no number is `_`.
            if let Some(value) = value.parse().ok().filter(|value| *value > 0) {
                errors.insert((value, name.trim_end_matches("\",").to_string()));
            }
        }
    }
    let own = ["crates/hashmere-cli/src/failure.rs", "crates/hashmere-replica/src/error.rs"];
    let own = own.map(|file| between(&read(file), "pub mod code {", "\n}").to_string());
    for line in own.iter().flat_map(|text| text.lines()) {
        if let Some((name, code)) = line.trim().strip_prefix("pub const ").and_then(|rest| rest.split_once(": i32 = "))
        {
            errors.insert((code.trim_end_matches(';').parse().unwrap(), camel(name)));
        }
    }
    errors
}

#[test]
fn errors_are_those_of_the_library_and_the_command() {
    let mut listed = BTreeSet::new();
    for line in read("docs/reference/errors.md").lines() {
        let Some((head, _)) = line.strip_prefix("- **").and_then(|rest| rest.split_once("**:")) else { continue };
        let (code, name) = head.split_once(' ').unwrap();
        assert!(listed.insert((code.parse().unwrap(), name.to_string())), "{line} is listed twice");
    }
    let known = errors_of_the_code();
    assert!(known.len() >= 55, "{known:?}");
    assert_eq!(listed, known);
}

/// The methods of a builder: its options.
fn methods(source: &str, own: &str, returns: &str) -> Names {
    let lines = source.lines().filter(|line| line.contains(own) && line.contains(&format!("-> {returns} ")));
    lines.flat_map(|line| words_behind(line, "pub fn ").map(String::from).collect::<Vec<_>>()).collect()
}

#[test]
fn options_are_those_of_the_builders() {
    let page = read("docs/reference/options.md");
    let store = methods(&read("crates/hashmere/src/options.rs"), "(mut self", "Options");
    assert!(store.len() >= 15, "{store:?}");
    assert_eq!(listed(between(&page, "## Store\n", "\n## ")), store);

    let queue = ["options", "queue_options"].map(|file| read(&format!("crates/hashmere-queue/src/{file}.rs"))).concat();
    let mut expected = methods(&queue, "(self", "PoolOptions");
    expected.extend(methods(&queue, "(self", "QueueOptions"));
    let (elements, bytes) = ("elements".to_string(), "bytes".to_string());
    expected.extend([elements, bytes]);
    let mut names = listed(between(&page, "## Pools and queues\n", "\n## "));
    names.remove("free");
    assert_eq!(names, expected);

    let log = methods(&read("crates/hashmere-log/src/options.rs"), "(self", "LogOptions");
    assert_eq!(listed(between(&page, "## Logs\n", "\n## ")), log);
}

#[test]
fn options_of_the_server_are_those_of_the_command() {
    let source = read("crates/hashmere-cli/src/serve/mod.rs");
    let listed = listed(between(&read("docs/reference/options.md"), "## The server\n", "\n## "));
    let mut seen = 0;
    let mut attribute = "";
    for line in between(&source, "pub struct Serve {", "\n}").lines().map(str::trim) {
        if let Some(new) = line.strip_prefix("#[arg(") {
            attribute = new;
        } else if line.contains(": ") && !line.starts_with("//") {
            let letter = match attribute.split("short = '").nth(1) {
                Some(letter) => &letter[..1],
                None if attribute.contains("short") => &line[..1],
                None => "",
            };
            let hidden = attribute.contains("hide = true");
            attribute = "";
            if !letter.is_empty() && !hidden && letter != "o" {
                seen += 1;
                assert!(
                    listed.contains(&format!("-{letter}")),
                    "-{letter} ({line}) is not in docs/reference/options.md"
                );
            }
        }
    }
    assert!(seen >= 25, "{seen}");
}

#[test]
fn commands_are_those_of_the_command() {
    let source = read("crates/hashmere-cli/src/cli.rs");
    let mut commands = Names::new();
    let mut hidden = false;
    for line in between(&source, "pub enum Command {", "\n}").lines().map(str::trim) {
        if line.contains("hide = true") {
            hidden = true;
        } else if let Some((variant, _)) =
            line.split_once('(').filter(|(name, _)| name.chars().all(char::is_alphanumeric))
        {
            if !std::mem::take(&mut hidden) {
                commands.insert(kebab(variant));
            }
        }
    }
    assert!(commands.len() >= 35, "{commands:?}");
    let page = read("docs/reference/command.md");
    let names = listed(&page);
    let first = |name: &String| name.split(' ').next().unwrap_or_default().to_string();
    let mut listed: Names = names.iter().map(first).collect();
    // An alias is listed beside its command.
    assert!(listed.remove("del"));
    assert_eq!(listed, commands);
}

#[test]
fn promises_are_the_files_of_the_tests() {
    let mut files = Names::new();
    for entry in std::fs::read_dir(root().join("crates/hashmere-testkit/tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        files.insert(name.trim_end_matches(".rs").to_string());
    }
    let page = read("docs/internals/testing.md");
    let items = between(&page, "## By promise\n", "\n## ").lines().filter_map(|line| line.strip_prefix("- `"));
    let listed: Names = items.filter_map(|item| item.split('`').next()).map(String::from).collect();
    assert_eq!(listed, files);
}
