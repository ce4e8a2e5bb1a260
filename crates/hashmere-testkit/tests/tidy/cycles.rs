//! Modules of a crate do not import each other in circles, so that each can be read with those before it only. Nor do
//! the parts of the engine, which are the folders and files of one folder, each taken as a whole.
//!
//! A module is a file. Its imports are its `use` declarations and paths from `crate::` and `super::` on, followed
//! through the re-exports of other modules. What a module takes from its own children is no import, and neither are
//! tests.

use crate::source::{those, Source};
use crate::{demand_none, places, Problem};
use std::collections::{BTreeMap, BTreeSet};

/// Circles that are there today: the crate, and the modules of each. Break one, and remove it from here.
const CIRCLES: &[(&str, &[&str])] = &[];

/// The folder whose folders and files are parts: they import each other in one direction only.
const PARTS: &str = "engine";

/// Circles of parts that are there today. Break one, and remove it from here.
const PART_CIRCLES: &[(&str, &[&str])] = &[];

/// What each module, or part, imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate.
#[derive(Default)]
struct Crate {
    /// Their texts without comments and tests, by module path (`""` is the root).
    texts: BTreeMap<String, String>,
    paths: BTreeMap<String, String>,
}

impl Crate {
    fn new(sources: &[&Source]) -> Crate {
        let mut all = Crate::default();
        // A crate that is only a program has its root there.
        let root = if sources.iter().any(|source| source.path.ends_with("/src/lib.rs")) { "lib" } else { "main" };
        for source in sources {
            let Some((_, file)) = source.path.split_once("/src/") else { continue };
            let name = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
            let is_program = name != root && (name == "main" || name.starts_with("bin::"));
            let is_test = name.split("::").any(|part| part == "tests");
            if is_program || is_test {
                continue;
            }
            let name = if name == root { String::new() } else { name };
            all.paths.insert(name.clone(), source.path.clone());
            all.texts.insert(name, without_comments_and_tests(&source.text));
        }
        all
    }

    /// What each module imports.
    fn imports(&self) -> Imports {
        let imports = self.texts.iter().map(|(module, text)| {
            let targets = imported_paths(module, text).into_iter().map(|path| self.module_of(&path));
            (module.clone(), targets.filter(|target| !is_below(target, module)).collect())
        });
        imports.collect()
    }

    /// What each part below a folder imports of the others.
    fn imports_of_parts(&self, folder: &str) -> Imports {
        let part_of = |module: &str| {
            let name = module.strip_prefix(folder)?.strip_prefix("::")?.split("::").next()?;
            Some(format!("{folder}::{name}"))
        };
        let mut parts = Imports::new();
        for (module, targets) in self.imports() {
            let Some(part) = part_of(&module) else { continue };
            let others = targets.iter().filter_map(|target| part_of(target)).filter(|target| *target != part);
            let others: Vec<_> = others.collect();
            parts.entry(part).or_default().extend(others);
        }
        parts
    }

    /// The module that an item is from: the deepest one on its path, or where that re-exports it from.
    fn module_of(&self, path: &[String]) -> String {
        let mut at = path.len();
        while at > 0 && !self.texts.contains_key(&path[..at].join("::")) {
            at -= 1;
        }
        let module = path[..at].join("::");
        let Some(item) = path.get(at) else { return module };
        let text = self.texts.get(&module).map_or("", String::as_str);
        for reexport in reexported_paths(&module, text) {
            if reexport.last() == Some(item) && reexport.as_slice() != path {
                return self.module_of(&reexport);
            }
        }
        module
    }
}

/// Text before the module of tests at its end, without comments.
fn without_comments_and_tests(text: &str) -> String {
    let before = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = before.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// All paths in it that begin at the crate or above the module, as paths from the root of the crate.
fn imported_paths(module: &str, text: &str) -> Vec<Vec<String>> {
    let declarations: Vec<_> = statements(text).filter(|(is_public, _)| !is_public).map(|(_, tree)| tree).collect();
    let mut paths: Vec<_> =
        declarations.iter().flat_map(|tree| expand(tree)).filter_map(|path| absolute(module, &path)).collect();
    // In the text: `crate::wait::now()`, `super::read::Found`.
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let is_path = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$');
            let end =
                text[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').map_or(text.len(), |n| at + n);
            let path = text[at..end].trim_end_matches(':');
            let is_declared = text[..at].rfind("use ").is_some_and(|from| !text[from..at].contains(';'));
            if is_path && !is_declared {
                paths.extend(absolute(module, path));
            }
        }
    }
    paths
}

fn reexported_paths(module: &str, text: &str) -> Vec<Vec<String>> {
    let public = statements(text).filter(|(is_public, _)| *is_public);
    let relative = |path: String| {
        absolute(module, &path).unwrap_or_else(|| {
            let inside = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned);
            inside.chain(path.split("::").map(str::to_owned)).collect()
        })
    };
    public.flat_map(|(_, tree)| expand(&tree)).map(relative).collect()
}

/// The `use` declarations, and whether each is public.
fn statements(text: &str) -> impl Iterator<Item = (bool, String)> + '_ {
    text.match_indices("use ").filter_map(|(at, _)| {
        let before = text[..at].rsplit('\n').next().unwrap_or_default().trim();
        let is_public = before.starts_with("pub");
        let tree = text[at + 4..].split(';').next().unwrap_or_default();
        (before.is_empty() || is_public).then(|| (is_public, tree.split_whitespace().collect::<Vec<_>>().join(" ")))
    })
}

/// The paths of a declaration with braces.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.trim_end_matches("::self").trim_end_matches("::*").to_owned()];
    };
    let (prefix, inside) = (&tree[..open], tree[open + 1..].trim_end().trim_end_matches('}'));
    let (mut depth, mut parts) = (0, vec![String::new()]);
    // The last brace is gone already, those of the parts are balanced but perhaps for that.
    for c in inside.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().unwrap().push(c);
        }
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    let closed = |part: &str| format!("{part}{}", "}".repeat(part.matches('{').count() - part.matches('}').count()));
    let whole = |part: &str| {
        if part == "self" {
            prefix.trim_end_matches("::").to_owned()
        } else {
            format!("{prefix}{}", closed(part))
        }
    };
    parts.flat_map(|part| expand(&whole(part))).collect()
}

/// A path from the root of the crate; `None`: it begins in another crate, or in the module itself.
fn absolute(module: &str, path: &str) -> Option<Vec<String>> {
    let mut parts: Vec<_> = path.split("::").map(str::trim).collect();
    let mut base: Vec<_> = module.split("::").filter(|part| !part.is_empty()).collect();
    match parts[0] {
        "crate" => base.clear(),
        "super" => {}
        _ => return None,
    }
    while parts.first() == Some(&"super") {
        base.pop();
        parts.remove(0);
    }
    if parts.first() == Some(&"crate") {
        parts.remove(0);
    }
    Some(base.into_iter().chain(parts).map(str::to_owned).collect())
}

/// The sets of modules that import each other in circles, the largest first.
fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let reached = |from: &str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(module) = next.pop() {
            for target in imports.get(&module).into_iter().flatten() {
                if seen.insert(target.clone()) {
                    next.push(target.clone());
                }
            }
        }
        seen
    };
    let all: BTreeMap<_, _> = imports.keys().map(|module| (module, reached(module))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (module, reaches) in &all {
        if reaches.contains(*module) && !found.iter().any(|circle| circle.contains(*module)) {
            let back = |other: &&String| all.get(other).is_some_and(|reaches| reaches.contains(*module));
            found.push(reaches.iter().filter(back).cloned().collect());
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// Whether it is this module or a child of it. The root has all others as children, which import from it what it
/// re-exports.
fn is_below(module: &str, place: &str) -> bool {
    place.is_empty() || module.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn problems(sources: &[Source], allowed: &[(&str, &[&str])], imports: impl Fn(&Crate) -> Imports) -> Vec<Problem> {
    let crate_of = |source: &Source| source.path.split('/').nth(1).unwrap_or_default().to_owned();
    let mut names: BTreeSet<_> = sources.iter().map(crate_of).collect();
    names.extend(allowed.iter().map(|(name, _)| (*name).to_owned()));
    let mut found = Vec::new();
    for name in names {
        let its: Vec<_> = sources.iter().filter(|source| crate_of(source) == name).collect();
        let all = Crate::new(&its);
        let circles = circles(&imports(&all));
        let is_allowed = |circle: &BTreeSet<String>| {
            allowed.iter().any(|(of, modules)| *of == name && circle.iter().eq(modules.iter()))
        };
        for circle in circles.iter().filter(|circle| !is_allowed(circle)) {
            let list = circle.iter().map(|module| format!("{module:?}")).collect::<Vec<_>>().join(", ");
            let text = format!(
                "modules import each other in a circle: {list}; move what both sides need into a module before them"
            );
            let path = circle.first().and_then(|module| all.paths.get(module));
            found.push(Problem::new(path.unwrap_or(&name), text));
        }
        for (_, modules) in allowed.iter().filter(|(of, _)| *of == name) {
            if !circles.iter().any(|circle| circle.iter().eq(modules.iter())) {
                let text = format!(
                    "the circle of {modules:?} is gone, or another one: remove or change it in tests/tidy/cycles.rs"
                );
                found.push(Problem::new(format!("crates/{name}"), text));
            }
        }
    }
    found
}

/// The code of all crates.
fn rust() -> Vec<Source> {
    those(|source| source.is_in(&["crates"]) && source.ending() == "rs")
}

#[test]
fn modules_do_not_import_each_other_in_circles() {
    demand_none(&problems(&rust(), CIRCLES, Crate::imports));
}

#[test]
fn parts_of_the_engine_import_each_other_in_one_direction() {
    demand_none(&problems(&rust(), PART_CIRCLES, |all| all.imports_of_parts(PARTS)));
}

#[test]
fn a_circle_of_parts_is_found_though_no_files_are_in_one() {
    let file = |path: &str, text: &str| Source::new(&format!("crates/x/src/{path}"), text);
    let files = [
        file("engine/mod.rs", "mod a;\nmod b;\nmod c;\npub use b::two::Item;\n"),
        file("engine/a/one.rs", "use crate::engine::Item;\nuse crate::engine::a::two::X;\n"),
        file("engine/a/two.rs", "pub struct X;\n"),
        file("engine/b/one.rs", "use crate::engine::a::two::X;\n"),
        file("engine/b/two.rs", "pub struct Item;\n"),
        file("engine/c.rs", "use crate::engine::{a::two::X, Item};\n"),
        file("outside.rs", "use crate::engine::Item;\n"),
    ];
    let parts = |all: &Crate| all.imports_of_parts("engine");
    assert!(problems(&files, &[], Crate::imports).is_empty());
    let found = problems(&files, &[], parts);
    assert!(found.len() == 1 && found[0].text.contains("\"engine::a\", \"engine::b\";"), "{found:?}");
    assert!(problems(&files, &[("x", &["engine::a", "engine::b"])], parts).is_empty());
}

#[test]
fn a_circle_is_found_through_braces_and_reexports() {
    let files = [
        Source::new("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use b::{Item, Other};\n"),
        Source::new("crates/x/src/a.rs", "use crate::{c::{self, D}, Item};\n"),
        Source::new(
            "crates/x/src/b.rs",
            "// crate::c is only named here.\nuse std::fmt;\npub struct Item;\nfn f() { super::a::g() }\n",
        ),
        Source::new("crates/x/src/c.rs", "pub struct D;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
    ];
    let found = problems(&files, &[], Crate::imports);
    assert_eq!(places(&found), ["crates/x/src/a.rs"]);
    assert!(found[0].text.contains("\"a\", \"b\";"), "{found:?}");
    assert!(problems(&files, &[("x", &["a", "b"])], Crate::imports).is_empty());
    let found = problems(&files, &[("x", &["a", "b"]), ("x", &["b", "c"]), ("y", &["a"])], Crate::imports);
    assert_eq!(places(&found), ["crates/x", "crates/y"], "exceptions that are not needed");
}

#[test]
fn a_folder_may_import_from_its_own_files_and_they_from_it() {
    let parent = |more: &str| {
        Source::new("crates/x/src/a/mod.rs", &format!("mod b;\nuse crate::a::b::B;\n{more}pub struct A(B);\n"))
    };
    let child = Source::new("crates/x/src/a/b.rs", "use super::A;\npub struct B;\n");
    let other = Source::new("crates/x/src/c.rs", "use crate::a::A;\n");
    assert!(problems(&[parent(""), child, other], &[], Crate::imports).is_empty());
    let other = Source::new("crates/x/src/c.rs", "use crate::a::A;\n");
    let found = problems(&[parent("use crate::c::C;\n"), other], &[], Crate::imports);
    assert!(found[0].text.contains("\"a\", \"c\";"), "{found:?}");
}
