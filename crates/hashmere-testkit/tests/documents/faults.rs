//! The table of seeded faults in `docs/internals/testing.md`: its comment in the code says what each does wrong.
//! `HASHMERE_DOCS=write cargo test -p hashmere-testkit --test documents` writes these texts into the table.

use crate::{read, root};
use std::collections::BTreeMap;

const TABLE: &str = "docs/internals/testing.md";
const LISTS: [&str; 3] =
    ["crates/hashmere-engine/src/fault.rs", "crates/hashmere-queue/src/fault.rs", "crates/hashmere-log/src/fault.rs"];

/// Each fault of a list with its comment, without the full stop.
fn faults(source: &str) -> BTreeMap<String, String> {
    let (mut found, mut text) = (BTreeMap::new(), String::new());
    for line in source.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("/// ") {
            text = format!("{text} {comment}").trim().to_string();
        } else {
            let name = line.strip_suffix(',').filter(|name| name.chars().all(char::is_alphanumeric));
            if let Some(name) = name.filter(|_| !text.is_empty()) {
                found.insert(name.to_string(), text.trim_end_matches('.').to_string());
            }
            text.clear();
        }
    }
    found
}

#[test]
fn seeded_faults_are_those_of_the_code() {
    let mut known: BTreeMap<String, String> = LISTS.iter().flat_map(|list| faults(&read(list))).collect();
    assert!(known.len() >= 120, "{}", known.len());
    let (mut written, mut wrong) = (String::new(), Vec::new());
    for line in read(TABLE).lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let name = cells[0].strip_prefix("| `").and_then(|name| name.strip_suffix('`'));
        let text = name.filter(|_| cells.len() == 3).and_then(|name| known.remove(name));
        let row = text.map(|text| format!("{} | {text} | {}", cells[0], cells[2]));
        if let Some(row) = row.as_ref().filter(|row| *row != line) {
            wrong.push(format!("{row}\n"));
        }
        written += &format!("{}\n", row.as_deref().unwrap_or(line));
    }
    assert!(known.is_empty(), "{TABLE} does not have {:?}", known.keys());
    if std::env::var("HASHMERE_DOCS").as_deref() == Ok("write") {
        std::fs::write(root().join(TABLE), written).unwrap();
    } else {
        assert!(wrong.is_empty(), "{TABLE} should say (HASHMERE_DOCS=write writes it):\n{}", wrong.concat());
    }
}
