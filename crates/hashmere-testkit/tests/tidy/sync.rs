//! Orderings come in pairs: what one side releases, the other acquires. Each side has a comment `SYNC(name)`, and the
//! table of the names in docs/internals/concurrency.md says what each pair guarantees.

use crate::source::{those, Source};
use crate::{demand_none, places, Problem};
use std::collections::{BTreeMap, BTreeSet};

const TABLE: &str = "docs/internals/concurrency.md";
const HEADING: &str = "## The pairs";
const MARK: &str = "SYNC(";

/// Where a name is.
struct Mention {
    name: String,
    path: String,
    line: usize,
    /// The function around it; of documents, none.
    function: String,
}

fn mentions(sources: &[Source]) -> Vec<Mention> {
    let mut found = Vec::new();
    for source in sources {
        let mut function = String::new();
        for (line, text) in source.text.lines().enumerate() {
            if let Some(name) = function_in(text) {
                function = name.to_owned();
            }
            for rest in text.split(MARK).skip(1) {
                let Some((name, _)) = rest.split_once(')') else { continue };
                let (name, path) = (name.to_owned(), source.path.clone());
                found.push(Mention { name, path, line, function: function.clone() });
            }
        }
    }
    found
}

/// The function that a line begins.
fn function_in(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_word = before.is_empty() || before.ends_with([' ', '(']);
    let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    (is_word && !before.contains("//") && !name.is_empty()).then_some(name)
}

/// The names in the first column of the table, with their lines.
fn rows(document: &str) -> Vec<(usize, String)> {
    let lines = document.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let rows = lines.take_while(|(_, line)| !line.starts_with("## ")).filter(|(_, line)| line.starts_with('|'));
    // The first two are its head.
    rows.skip(2).map(|(n, line)| (n, line.split('|').nth(1).unwrap_or_default().trim().to_owned())).collect()
}

fn problems(code: &[Source], documents: &[Source]) -> Vec<Problem> {
    let table = documents.iter().find(|document| document.path == TABLE).map_or("", |document| document.text.as_str());
    let rows = rows(table);
    let mut found = Vec::new();
    let mut names: BTreeMap<String, (BTreeSet<(String, String)>, Mention)> = BTreeMap::new();
    for mention in mentions(code) {
        let end = (mention.path.clone(), mention.function.clone());
        names.entry(mention.name.clone()).or_insert((BTreeSet::new(), mention)).0.insert(end);
    }
    for (name, (ends, mention)) in &names {
        if ends.len() < 2 {
            let text =
                format!("SYNC({name}) is at one end only: put it at the other, in the function that this pairs with");
            found.push(Problem::on_line(&mention.path, mention.line, text));
        }
        if !rows.iter().any(|(_, row)| row == name) {
            let text = format!("SYNC({name}) is not in the table `{HEADING}` of {TABLE}: say there what it guarantees");
            found.push(Problem::on_line(&mention.path, mention.line, text));
        }
    }
    let mut seen = BTreeSet::new();
    for (line, row) in &rows {
        if !names.contains_key(row) {
            found.push(Problem::on_line(TABLE, *line, format!("the code has no SYNC({row}): remove the row")));
        }
        if !seen.insert(row) {
            found.push(Problem::on_line(TABLE, *line, format!("`{row}` is twice in the table: find another name")));
        }
    }
    for mention in mentions(documents).iter().filter(|mention| !names.contains_key(&mention.name)) {
        let text = format!("the code has no SYNC({})", mention.name);
        found.push(Problem::on_line(&mention.path, mention.line, text));
    }
    found
}

#[test]
fn each_ordering_is_named_at_both_ends() {
    let is_product = |source: &Source| {
        source.is_in(&["crates"])
            && source.ending() == "rs"
            && source.path.contains("/src/")
            && !source.path.contains("/tests")
    };
    let code = those(|source| is_product(source) && !source.is_in(&["crates/hashmere-testkit"]));
    demand_none(&problems(&code, &those(|source| source.ending() == "md")));
}

#[cfg(test)]
fn table(names: &[&str]) -> Source {
    let rows: String = names.iter().map(|name| format!("| {name} | a | b |\n")).collect();
    Source::new(
        TABLE,
        &format!(
            "# Title\n| x | y |\n{HEADING}\n\n| name | of | guarantees |\n|---|---|---|\n{rows}\n## Next\n| z |\n"
        ),
    )
}

#[test]
fn a_name_at_one_end_only_is_found() {
    let code = "fn one() {\n    // SYNC(a): pairs with `two`.\n    // SYNC(b): pairs with `two`.\n}\nfn two() {\n    // SYNC(a): so be it.\n}\n";
    let found = problems(&[Source::new("x.rs", code)], &[table(&["a", "b"])]);
    assert_eq!(places(&found), ["x.rs:3"]);
    let twice = "fn one() {\n    // SYNC(b): here,\n    // SYNC(b): and here.\n}\n";
    assert_eq!(places(&problems(&[Source::new("x.rs", twice)], &[table(&["b"])])), ["x.rs:2"]);
}

#[test]
fn the_table_has_the_names_of_the_code_and_no_others() {
    let code = "fn one() {\n// SYNC(a)\n}\npub fn two() {\n// SYNC(a)\n}\n";
    let found = problems(
        &[Source::new("x.rs", code)],
        &[table(&["b", "c", "c"]), Source::new("docs/d.md", "SYNC(d), SYNC(a)")],
    );
    let twice = format!("{TABLE}:9");
    assert_eq!(places(&found), ["x.rs:2", &format!("{TABLE}:7"), &format!("{TABLE}:8"), &twice, &twice, "docs/d.md:1"]);
}
