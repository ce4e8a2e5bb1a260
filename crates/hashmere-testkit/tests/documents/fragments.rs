//! The code that the guide shows, beside the samples that are run.

use crate::{documents, read, root};

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

#[test]
fn fragments_are_of_the_samples() {
    let mut seen = 0;
    for document in documents() {
        for (sample, lines) in fragments(&document, &read(&document)) {
            let source = read(&sample);
            let mut rest = source.lines().map(str::trim);
            for line in lines.iter().filter(|line| !line.is_empty()) {
                assert!(
                    rest.any(|other| other == line),
                    "{document} shows what {sample} does not have, in this order: {line}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen >= 10, "{seen}");
}
