//! The links of the documents, and the sections that they name.

use crate::{documents, read, root};
use std::collections::BTreeSet;

/// The name that a section has in links: small letters and digits, hyphens for spaces, nothing else.
fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    heading.chars().filter_map(kept).collect()
}

fn sections(text: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        inside ^= line.starts_with("```");
        if !inside && line.starts_with('#') {
            found.insert(anchor(line.trim_start_matches('#').trim()));
        }
    }
    found
}

/// The targets of the links of a text. Blocks of code have none.
fn targets(text: &str) -> Vec<String> {
    let (mut prose, mut inside) = (String::new(), false);
    for line in text.lines() {
        inside ^= line.starts_with("```");
        if !inside {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_string()).collect()
}

#[test]
fn links_have_their_targets() {
    let mut seen = 0;
    for document in documents() {
        for target in targets(&read(&document)).iter().filter(|target| !target.contains("://")) {
            let (path, section) = target.split_once('#').unwrap_or((target, ""));
            let folder = root().join(&document);
            let file = if path.is_empty() { folder.clone() } else { folder.parent().unwrap().join(path) };
            assert!(file.exists(), "{document} links to {target}, which is not there");
            if !section.is_empty() {
                let text = std::fs::read_to_string(&file).unwrap();
                assert!(sections(&text).contains(section), "{document} links to {target}, which has no such section");
            }
            seen += 1;
        }
    }
    assert!(seen >= 100, "{seen}");
}
