//! Imports between the crates of the workspace point one way, and the crates that are linked into a user's process
//! depend on few others.

use crate::source::{those, Source};
use crate::{demand_none, places, Problem};

/// A crate, and what it may depend on.
struct Layer {
    name: &'static str,
    /// Crates of this workspace. All of them come earlier in the table: so no arrow runs back.
    ours: &'static [&'static str],
    /// Others; `None`: any, for it is a program or for development only.
    others: Option<&'static [&'static str]>,
}

const LAYERS: &[Layer] = &[
    Layer { name: "hashmere-format", ours: &[], others: Some(&["rapidhash"]) },
    Layer { name: "hashmere-os", ours: &[], others: Some(&["libc"]) },
    // The model checker is for tests.
    Layer { name: "hashmere-mem", ours: &["hashmere-os"], others: Some(&["shuttle"]) },
    Layer { name: "hashmere-engine", ours: &["hashmere-format", "hashmere-os", "hashmere-mem"], others: Some(&[]) },
    // Regular expressions, behind a feature.
    Layer { name: "hashmere", ours: &["hashmere-engine", "hashmere-format", "hashmere-os"], others: Some(&["regex"]) },
    Layer {
        name: "hashmere-queue",
        ours: &["hashmere-engine", "hashmere-format", "hashmere-mem", "hashmere-os"],
        others: Some(&[]),
    },
    // Adapters, each behind a feature.
    Layer {
        name: "hashmere-log",
        ours: &["hashmere-engine", "hashmere-format", "hashmere-mem", "hashmere-os"],
        others: Some(&["log", "tracing", "tracing-subscriber"]),
    },
    Layer {
        name: "hashmere-feed",
        ours: &["hashmere", "hashmere-engine", "hashmere-format", "hashmere-os"],
        others: Some(&["base64", "serde_json"]),
    },
    Layer { name: "hashmere-dump", ours: &["hashmere"], others: Some(&["base64", "serde", "serde_json"]) },
    Layer { name: "hashmere-tls", ours: &[], others: Some(&["rustls"]) },
    Layer { name: "hashmere-uring", ours: &[], others: Some(&["io-uring", "libc"]) },
    // Protocols are spoken directly: its lib.rs has the measurement.
    Layer {
        name: "hashmere-sinks",
        ours: &["hashmere", "hashmere-feed", "hashmere-format", "hashmere-os", "hashmere-tls"],
        others: Some(&["base64", "serde_json"]),
    },
    Layer {
        name: "hashmere-replica",
        ours: &[
            "hashmere",
            "hashmere-engine",
            "hashmere-feed",
            "hashmere-format",
            "hashmere-mem",
            "hashmere-os",
            "hashmere-tls",
        ],
        others: Some(&[]),
    },
    Layer {
        name: "hashmere-observe",
        ours: &[
            "hashmere",
            "hashmere-engine",
            "hashmere-format",
            "hashmere-log",
            "hashmere-os",
            "hashmere-queue",
            "hashmere-replica",
        ],
        others: Some(&[]),
    },
    Layer {
        name: "hashmere-ffi",
        ours: &["hashmere", "hashmere-dump", "hashmere-engine", "hashmere-feed", "hashmere-log", "hashmere-queue"],
        others: Some(&[]),
    },
    Layer {
        name: "hashmere-server",
        ours: &[
            "hashmere",
            "hashmere-engine",
            "hashmere-feed",
            "hashmere-format",
            "hashmere-observe",
            "hashmere-os",
            "hashmere-replica",
            "hashmere-tls",
            "hashmere-uring",
        ],
        others: None,
    },
    Layer {
        name: "hashmere-cli",
        ours: &[
            "hashmere",
            "hashmere-dump",
            "hashmere-feed",
            "hashmere-log",
            "hashmere-observe",
            "hashmere-os",
            "hashmere-queue",
            "hashmere-replica",
            "hashmere-server",
            "hashmere-sinks",
        ],
        others: None,
    },
    Layer { name: "hashmere-demo", ours: &["hashmere"], others: None },
    Layer {
        name: "hashmere-testkit",
        ours: &[
            "hashmere",
            "hashmere-engine",
            "hashmere-feed",
            "hashmere-format",
            "hashmere-log",
            "hashmere-mem",
            "hashmere-os",
            "hashmere-queue",
            "hashmere-replica",
        ],
        others: None,
    },
    Layer {
        name: "hashmere-bench",
        ours: &[
            "hashmere",
            "hashmere-engine",
            "hashmere-feed",
            "hashmere-log",
            "hashmere-mem",
            "hashmere-observe",
            "hashmere-os",
            "hashmere-queue",
            "hashmere-replica",
        ],
        others: None,
    },
];

/// What a manifest depends on when it is built for use: names and lines. What only tests need is not in it.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut is_one = false;
    let mut found = Vec::new();
    for (number, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            is_one = section == "dependencies"
                || section.ends_with(".dependencies")
                || section.contains("build-dependencies");
        } else if let Some((name, _)) = line.split_once('=').filter(|_| is_one) {
            let name = name.trim().trim_end_matches(".workspace");
            found.push((number, name.to_owned()));
        }
    }
    found
}

fn name_of(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("name"))?;
    line.split('"').nth(1)
}

fn problems(manifests: &[Source], layers: &[Layer]) -> Vec<Problem> {
    let mut found = Vec::new();
    let here = "tests/tidy/crates.rs";
    for (n, layer) in layers.iter().enumerate() {
        for back in layer.ours.iter().filter(|ours| !layers[..n].iter().any(|earlier| earlier.name == **ours)) {
            let text = format!("`{}` may not depend on `{back}`, which is not before it in the table", layer.name);
            found.push(Problem::new(here, text));
        }
        if !manifests.iter().any(|manifest| name_of(&manifest.text) == Some(layer.name)) {
            found.push(Problem::new(here, format!("there is no crate `{}`: remove its line", layer.name)));
        }
    }
    for manifest in manifests {
        let name = name_of(&manifest.text).unwrap_or_default();
        let Some(layer) = layers.iter().find(|layer| layer.name == name) else {
            found.push(Problem::new(&manifest.path, format!("`{name}` has no place in the table of {here}")));
            continue;
        };
        let wanted = dependencies(&manifest.text);
        for (line, other) in &wanted {
            let is_ours = layers.iter().any(|layer| layer.name == other);
            let allowed = if is_ours { Some(layer.ours) } else { layer.others };
            if allowed.is_some_and(|allowed| !allowed.contains(&other.as_str())) {
                let text =
                    format!("`{name}` may not depend on `{other}`: move what needs it, or change the table of {here}");
                found.push(Problem::on_line(&manifest.path, *line, text));
            }
        }
        for unused in layer.ours.iter().chain(layer.others.unwrap_or_default()) {
            if !wanted.iter().any(|(_, other)| other == unused) {
                let text = format!("does not depend on `{unused}`: take it out of the table of {here}");
                found.push(Problem::new(&manifest.path, text));
            }
        }
    }
    found
}

#[test]
fn imports_between_crates_point_one_way() {
    let is_manifest = |source: &Source| source.is_in(&["crates"]) && source.path.ends_with("/Cargo.toml");
    demand_none(&problems(&those(is_manifest), LAYERS));
}

#[cfg(test)]
const SMALL: &[Layer] = &[
    Layer { name: "low", ours: &[], others: Some(&["libc"]) },
    Layer { name: "high", ours: &["low"], others: Some(&[]) },
];

#[test]
fn a_dependency_that_is_not_in_the_table_is_found() {
    let low = "[package]\nname = \"low\"\n[dependencies]\nlibc.workspace = true\nhigh = { path = \"..\" }\n[dev-dependencies]\nrand = \"1\"\n";
    let high = "[package]\nname = \"high\"\n[dependencies]\nlow.workspace = true\n[target.'cfg(unix)'.dependencies]\nserde = \"1\" # why not\n";
    let manifests = [Source::new("low/Cargo.toml", low), Source::new("high/Cargo.toml", high)];
    assert_eq!(places(&problems(&manifests, SMALL)), ["low/Cargo.toml:5", "high/Cargo.toml:6"]);
}

#[test]
fn lines_of_the_table_that_are_not_needed_are_found() {
    let manifests =
        [Source::new("low/Cargo.toml", "name = \"low\"\n"), Source::new("new/Cargo.toml", "name = \"new\"\n")];
    let found = problems(&manifests, SMALL);
    assert_eq!(places(&found), ["tests/tidy/crates.rs", "low/Cargo.toml", "new/Cargo.toml"]);
    assert!(found[0].text.contains("`high`") && found[1].text.contains("`libc`"), "{found:?}");
}

#[test]
fn an_arrow_that_runs_back_in_the_table_is_found() {
    let table = [Layer { name: "low", ours: &["high"], others: None }, Layer { name: "high", ours: &[], others: None }];
    let found = problems(&[], &table);
    assert!(found.iter().any(|problem| problem.text.contains("`low` may not depend on `high`")), "{found:?}");
}
