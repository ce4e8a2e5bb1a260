//! The parts of the engine call each other in one direction, as they import each other ([`crate::cycles`] holds that):
//! a method of a later part is not called by an earlier one, except where this page says that, and why.
//!
//! All methods are of one type, so the compiler does not see this. A method is known by its name; one whose name
//! several parts have is not looked at.

use crate::source::{those, Source};
use crate::{demand_none, places, Problem};
use std::collections::{BTreeMap, BTreeSet};

const ENGINE: &str = "crates/hashmere-engine/src/engine/";

/// The parts, each before those that use it. The files beside them are used by no part.
const PARTS: &[&str] =
    &["client", "log", "index", "read", "feed", "commit", "reclaim", "write", "transact", "durable", "backup", "check"];

/// Files beside the folders that every part may call: single words of the header, and what the header says for good.
const BELOW: &[&str] = &["mod", "layout", "store_state", "cells"];

/// What an earlier part asks of a later one.
const CALLBACKS: &[(&str, &str)] = &[
    ("recover", "a lock or a pin is waited for, and its owner turns out to have crashed: all that it left is repaired"),
    ("moved_on", "the lock word that such an owner left says nothing about the writes that it missed"),
    ("retire_writer", "a thread ends: what its writer has open or held back goes, in every part"),
    ("make_room_in_emergency", "an append finds no segment: records are moved or dropped"),
    ("clean_what_pays", "the same before the file grows"),
    ("make_extent", "the same for several segments side by side"),
    ("sync_for_room", "the same in a durable store, where segments wait for a sync"),
    ("sync_if_due", "an operation ends, and the last sync is older than was asked for"),
];

/// What a method of the engine is called on.
const CALLED_ON: &[&str] = &["self.", "engine."];

/// The part that a file is of.
fn part_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(ENGINE)?;
    let part = rest.split('/').next()?.trim_end_matches(".rs");
    (part != "tests").then_some(part)
}

fn place_of(part: &str) -> usize {
    if BELOW.contains(&part) {
        return 0;
    }
    PARTS.iter().position(|p| *p == part).map_or(PARTS.len() + 1, |place| place + 1)
}

/// Names behind a word or a sign, where something follows that makes them what is looked for.
fn names<'a>(line: &'a str, before: &'a str, after: &'a [char]) -> impl Iterator<Item = &'a str> + 'a {
    line.match_indices(before).filter_map(move |(at, _)| {
        let rest = &line[at + before.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (end > 0 && after.contains(&rest[end..].chars().next()?)).then(|| &rest[..end])
    })
}

fn code(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let lines = source.text.lines().enumerate();
    lines.map(|(n, line)| (n, line.split("//").next().unwrap_or_default()))
}

fn problems(sources: &[Source], callbacks: &[(&str, &str)]) -> Vec<Problem> {
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        let Some(part) = part_of(&source.path) else { continue };
        for (_, line) in code(source) {
            for name in names(line, "fn ", &['(', '<']) {
                owners.entry(name).or_default().insert(part);
            }
        }
    }
    let (mut found, mut used) = (Vec::new(), BTreeSet::new());
    for source in sources {
        let Some(part) = part_of(&source.path).filter(|part| PARTS.contains(part)) else { continue };
        for (line, text) in code(source) {
            for name in CALLED_ON.iter().flat_map(|receiver| names(text, receiver, &['('])) {
                let Some(owner) = owners.get(name).filter(|parts| parts.len() == 1).and_then(BTreeSet::first) else {
                    continue;
                };
                if place_of(owner) <= place_of(part) {
                    continue;
                }
                if callbacks.iter().any(|(allowed, _)| *allowed == name) {
                    used.insert(name.to_owned());
                    continue;
                }
                let text = format!(
                    "`{part}` calls `{name}` of `{owner}`, which is a later part: move it to the earlier one, or what calls it to the later one"
                );
                found.push(Problem::on_line(&source.path, line, text));
            }
        }
    }
    for (name, _) in callbacks.iter().filter(|(name, _)| !used.contains(*name)) {
        found.push(Problem::new(
            ENGINE,
            format!("no earlier part calls `{name}` any more: remove it from tests/tidy/calls.rs"),
        ));
    }
    found
}

#[test]
fn parts_of_the_engine_call_each_other_in_one_direction() {
    let engine = those(|source| source.is_in(&[ENGINE]) && source.ending() == "rs");
    assert!(engine.len() > 40);
    demand_none(&problems(&engine, CALLBACKS));
}

#[test]
fn a_call_of_a_later_part_is_found() {
    let file = |path: &str, text: &str| Source::new(&format!("{ENGINE}{path}"), text);
    let files = [
        file("client/lock.rs", "fn lock(&self) {\n    self.status();\n    self.recover(1); // self.clean()\n}\n"),
        file("log/append.rs", "fn append(&self) {\n    engine.lock();\n    self.clean();\n    self.twice();\n}\n"),
        file("reclaim/clean.rs", "fn clean(&self) {\n    self.append();\n}\nfn twice() {}\n"),
        file("write/set.rs", "fn twice() {}\n"),
        file("recover.rs", "fn recover<T>(&self) {\n    self.clean();\n}\n"),
        file("store_state.rs", "fn status(&self) {}\n"),
    ];
    let (lock, append) = (format!("{ENGINE}client/lock.rs:3"), format!("{ENGINE}log/append.rs:3"));
    assert_eq!(places(&problems(&files, &[])), [lock.as_str(), append.as_str()]);
    assert_eq!(places(&problems(&files, &[("recover", "")])), [append.as_str()]);
    assert_eq!(places(&problems(&files, &[("clean", ""), ("gone", "")])), [lock.as_str(), ENGINE]);
}
