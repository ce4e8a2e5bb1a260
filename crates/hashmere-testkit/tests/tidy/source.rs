//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// A file: its path from the root of the repository, and what it says.
pub struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    #[cfg(test)]
    pub fn new(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether it is below one of these folders, or one of these files.
    pub fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| {
            self.path
                .strip_prefix(place.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The ending of its name.
    pub fn ending(&self) -> &str {
        self.path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending)
    }
}

/// Where the sources are; nothing that is built is below them but in the folders of [`BUILT`].
const ROOTS: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "README.md",
    "bench",
    "bindings",
    "crates",
    "docs",
    "fuzz",
    "packaging",
    "scripts",
];

/// Names of folders that tools fill.
const BUILT: &[&str] = &["target", "build", "corpus", "artifacts", "node_modules", "__pycache__", "results"];

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Every text file of the repository, sorted by path.
pub fn all() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    for place in ROOTS {
        read(&root, &root.join(place), &mut found);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 500, "only {} files were found below {}", found.len(), root.display());
    found
}

/// Those that a rule is about.
pub fn those(wanted: impl Fn(&Source) -> bool) -> Vec<Source> {
    all().into_iter().filter(wanted).collect()
}

fn read(root: &Path, path: &Path, found: &mut Vec<Source>) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
    if path.is_dir() {
        if !BUILT.contains(&name) && !name.starts_with('.') {
            let entries = fs::read_dir(path).unwrap();
            entries.for_each(|entry| read(root, &entry.unwrap().path(), found));
        }
    } else if let Ok(text) = fs::read_to_string(path) {
        // What is not text, or a link that leads nowhere, is none of our business.
        let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        found.push(Source { path, text });
    }
}

#[test]
fn places_are_whole_names() {
    let source = Source::new("crates/hashmere/src/lib.rs", "");
    assert!(source.is_in(&["docs", "crates/hashmere"]) && source.is_in(&["crates/hashmere/src/lib.rs"]));
    assert!(!source.is_in(&["crates/hash", "crates/hashmere-log"]));
    assert_eq!((source.ending(), Source::new("scripts/setup", "").ending()), ("rs", ""));
}
