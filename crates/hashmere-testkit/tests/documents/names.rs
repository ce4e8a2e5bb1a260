//! `docs/reference/names.md` beside the declarations of each language: a name of the table exists, and a public call is
//! in the table.

use crate::{between, kebab, read, root};
use std::collections::BTreeSet;

type Names = BTreeSet<String>;

const LANGUAGES: [&str; 6] = ["Rust", "C", "C++", "Python", "Ruby", "command"];

/// What objects of C++ and Ruby have because containers and values of their standard libraries do, and which the table
/// leaves out.
const OF_CPP_CONTAINERS: &[&str] = &["begin", "end", "data", "empty", "bool", "c", "expected"];
const OF_RUBY_CONTAINERS: &[&str] =
    &["[]", "[]=", "bytesize", "byteslice", "getbyte", "initialize", "==", "hash", "inspect", "to_h", "to_i", "to_s"];
/// Files of C++ and Ruby whose classes are what users call. Options, which the page of options has, and values are in
/// others.
const CPP_CALLS: &[&str] = &["store", "held", "scan", "transaction", "queue", "lock", "log", "log_drain", "feed"];
const RUBY_CALLS: &[&str] = &["store", "scans", "habits", "transaction", "queue", "log", "feed"];
/// Classes of options within those files, and one of the implementation.
const CPP_OPTIONS: &[&str] = &["pool_options", "log_options", "output", "shown_lines", "feed_options"];

/// The names of a column, those of the languages in the order of [`LANGUAGES`].
fn columns(table: &str) -> [Names; 6] {
    let mut columns: [Names; 6] = Default::default();
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        assert_eq!(cells.len(), 1 + LANGUAGES.len(), "a row has another number of cells: {row}");
        for (column, cell) in columns.iter_mut().zip(&cells[1..]) {
            column.extend(cell.split('`').skip(1).step_by(2).map(String::from));
        }
    }
    columns
}

/// The identifiers directly behind `mark`, ends with `?`, `!` and `=` of Ruby included.
fn behind(text: &str, mark: &str) -> Names {
    let end = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '?' | '!' | '[' | ']' | '=');
    text.split(mark).skip(1).map(|rest| rest[..rest.find(end).unwrap_or(rest.len())].to_string()).collect()
}

/// The identifiers directly before a bracket.
fn called(text: &str) -> Names {
    let before = |rest: &str| rest.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().map(String::from);
    text.split('(').filter_map(before).filter(|name| !name.is_empty()).collect()
}

/// The public functions of the classes of a header of C++, but for `try_...`, the sisters that return a result.
fn cpp_calls(header: &str) -> Names {
    let (mut class, mut public) = ("", false);
    let mut calls = Names::new();
    for line in header.lines() {
        let starts = line.strip_prefix("class ").or(line.strip_prefix("struct "));
        if let Some(rest) = starts.filter(|_| !line.ends_with(';')) {
            class = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            public = line.starts_with("struct");
        }
        match line {
            "public:" => public = true,
            "private:" | "protected:" | "};" => public = false,
            _ => {}
        }
        let Some(member) = line.strip_prefix("    ").filter(|member| !member.starts_with([' ', '/', '#', '~'])) else {
            continue;
        };
        // What is before the name is the type; where there is none, it is a constructor.
        let Some((before, _)) = member.split_once('(') else { continue };
        let Some((kind, name)) = before.rsplit_once([' ', '*', '&']) else { continue };
        let is_call = !["friend", "return", "using", "throw", "explicit"].iter().any(|word| kind.starts_with(word));
        let is_named = !name.starts_with("try_") && !name.starts_with("operator") && name != class;
        if public && is_call && is_named && !kind.ends_with("operator") && !CPP_OPTIONS.contains(&class) {
            calls.insert(name.to_string());
        }
    }
    calls
}

/// The public methods of a file of Ruby; a comment `@private` takes out the one behind it.
fn ruby_calls(file: &str) -> Names {
    let (mut public, mut hidden) = (true, false);
    let mut calls = Names::new();
    for line in file.lines().map(str::trim) {
        match line {
            "private" => public = false,
            "# @private" => hidden = true,
            _ if line.starts_with("class ") || line.starts_with("module ") => public = true,
            _ => {}
        }
        let name = line.strip_prefix("def ").map(|rest| rest.strip_prefix("self.").unwrap_or(rest));
        if let Some(name) = name {
            if public && !hidden {
                calls.insert(name.split(['(', ' ', ';']).next().unwrap_or_default().to_string());
            }
            hidden = false;
        }
    }
    calls
}

fn all_of(folder: &str, ends: &[&str]) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| ends.contains(&end.to_str().unwrap())) {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    text
}

fn files(folder: &str, names: &[&str]) -> String {
    names.iter().map(|name| read(&format!("{folder}/{name}.rs"))).collect()
}

fn without<'a>(names: &'a Names, from: &'a Names) -> Vec<&'a String> {
    names.difference(from).collect()
}

/// What each language declares, and what of it has to be in the table.
fn declared() -> [(Names, Names); 6] {
    let of_store = files(
        "crates/hashmere/src",
        &["store", "write", "scan", "wait", "many", "by_id", "into", "key", "backup", "each", "filter", "transaction"],
    );
    let of_queue = files(
        "crates/hashmere-queue/src",
        &["pool", "queue", "endpoint", "element", "mutex", "rwlock", "semaphore", "barrier", "wait"],
    );
    let of_log = files("crates/hashmere-log/src", &["log", "drainer", "manual_drainer", "follow"]);
    let of_feed = files("crates/hashmere-feed/src", &["feed", "ready_fd"]);
    let rest = ["hashmere", "hashmere-dump", "hashmere-queue", "hashmere-log", "hashmere-feed"]
        .map(|name| format!("crates/{name}/src"))
        .map(|folder| all_of(&folder, &["rs"]))
        .concat();
    let rust = behind(
        &(rest
            + &read("crates/hashmere-engine/src/view.rs")
            + &read("crates/hashmere-engine/src/types.rs")
            + &read("crates/hashmere-engine/src/transaction/batch.rs")),
        "pub fn ",
    );
    let rust_needed = behind(&(of_store + &of_queue + &of_log + &of_feed), "    pub fn ");

    let headers = all_of("crates/hashmere-ffi/include", &["h"]);
    let c: Names = called(&headers).into_iter().filter(|name| name.starts_with("hm_")).collect();

    let cpp = all_of("bindings/cpp/include/hashmere", &["hpp"]);
    let cpp: Names = cpp.split(|c: char| !c.is_alphanumeric() && c != '_').map(String::from).collect();
    let header = |name: &&str| cpp_calls(&read(&format!("bindings/cpp/include/hashmere/{name}.hpp")));
    let mut cpp_needed: Names = CPP_CALLS.iter().flat_map(header).collect();
    cpp_needed.retain(|name| !OF_CPP_CONTAINERS.contains(&name.as_str()));

    let stub = read("bindings/python/python/hashmere/_hashmere.pyi");
    let types = read("bindings/python/python/hashmere/_types.py");
    let python = behind(&(stub.clone() + &types + &read("bindings/python/python/hashmere/_store.py")), "def ");
    // `open` is another name of `Store`, and `code` is an attribute of each error.
    let of_module = behind(&read("bindings/python/python/hashmere/__init__.py"), "\n");
    let python = &(&python | &of_module) | &behind(&read("bindings/python/python/hashmere/errors.py"), "\n    ");
    let python = &python | &behind(&(stub.clone() + &types), "\nclass ");
    let mut python_needed = &behind(&stub, "    def ") | &behind(&stub, "    async def ");
    python_needed.retain(|name| !name.starts_with('_'));

    let ruby_files = all_of("bindings/ruby/lib/hashmere", &["rb"]) + &read("bindings/ruby/lib/hashmere.rb");
    let extension = all_of("bindings/ruby/ext/hashmere", &["c"]);
    let mut ruby = &behind(&ruby_files, "def ") | &behind(&ruby_files, "\n  class ");
    for mark in ["def self.", "alias ", "@!method ", "NAMES.each_key { |level| define_method(:"] {
        ruby.extend(behind(&ruby_files, mark));
    }
    let classes = ["endpoint", "element", "queue", "pool", "log", "drainer", "follower", "manual_drainer", "feed"];
    for class in
        ["store", "scan", "view", "reservation", "guard", "barrier", "error", "transaction"].iter().chain(&classes)
    {
        ruby.extend(behind(&extension, &format!("rb_define_method({class}_class, \"")));
    }
    let mut ruby_needed = Names::new();
    for class in ["store", "scan", "view", "reservation", "guard", "barrier", "transaction"].iter().chain(&classes) {
        ruby_needed.extend(behind(&extension, &format!("rb_define_method({class}_class, \"")));
    }
    let file = |name: &&str| ruby_calls(&read(&format!("bindings/ruby/lib/hashmere/{name}.rb")));
    ruby_needed.extend(RUBY_CALLS.iter().flat_map(file));
    ruby_needed.retain(|name| !name.starts_with('_') && !OF_RUBY_CONTAINERS.contains(&name.as_str()));

    let commands = read("crates/hashmere-cli/src/cli.rs");
    let commands = between(&commands, "pub enum Command {", "\n}");
    let shown = commands.split("    #[command(hide = true)]").next().unwrap_or(commands);
    let variants = shown.lines().filter_map(|line| line.trim().split_once('(').map(|(name, _)| name));
    let command: Names =
        variants.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase())).map(kebab).collect();

    [
        (rust, rust_needed),
        (c.clone(), c),
        (cpp, cpp_needed),
        (python, python_needed),
        (ruby, ruby_needed),
        (command.clone(), command),
    ]
}

/// All words of the sources of each language, but the command, which prints its results.
fn words() -> [Names; 5] {
    let words = |text: String| text.split(|c: char| !c.is_alphanumeric() && c != '_').map(String::from).collect();
    [
        read("crates/hashmere-engine/src/types.rs"),
        all_of("crates/hashmere-ffi/include", &["h"]),
        all_of("bindings/cpp/include/hashmere", &["hpp"]),
        read("bindings/python/python/hashmere/_hashmere.pyi") + &read("bindings/python/python/hashmere/_types.py"),
        all_of("bindings/ruby/lib/hashmere", &["rb"]),
    ]
    .map(words)
}

/// The section of results: types and values, not calls.
fn results(page: &str) -> &str {
    between(page, "\n## Results\n", "\n## ")
}

#[test]
fn results_of_the_table_are_those_of_the_sources() {
    let page = read("docs/reference/names.md");
    let listed = columns(results(&page));
    assert!(listed[0].len() > 10, "only {:?} are results of Rust", listed[0]);
    for ((language, listed), words) in LANGUAGES.iter().zip(&listed).zip(&words()) {
        let unknown = without(listed, words);
        assert!(unknown.is_empty(), "{language}: results that are in no source: {unknown:?}");
    }
    // What C returns is named in the header, between the first and the last of these values.
    let header = read("crates/hashmere-ffi/include/hashmere.h");
    let values = between(&header, "HM_OK = 0", "HM_E_");
    let of_c: Names = values.lines().filter_map(|line| Some(line.trim().split_once(" = -")?.0.to_string())).collect();
    assert!(of_c.len() > 5 && without(&of_c, &listed[1]).is_empty(), "{:?}", without(&of_c, &listed[1]));
}

#[test]
fn names_of_each_language_are_in_the_table_and_the_other_way_round() {
    let page = read("docs/reference/names.md");
    let of_results = columns(results(&page));
    let columns = columns(&page.replace(results(&page), ""));
    let mut problems = String::new();
    let tables = columns.iter().zip(&of_results);
    for ((language, (listed, results)), (declared, needed)) in LANGUAGES.iter().zip(tables).zip(&declared()) {
        assert!(listed.len() > 30, "{language}: only {} names are in the table", listed.len());
        let unknown = without(listed, declared);
        let both = listed | results;
        let missing = without(needed, &both);
        if !unknown.is_empty() {
            problems += &format!("{language}: names that are not declared: {unknown:?}\n");
        }
        if !missing.is_empty() {
            problems += &format!("{language}: calls that docs/reference/names.md does not have: {missing:?}\n");
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn a_name_that_is_nowhere_and_a_call_that_is_not_listed_are_found() {
    let table = "| what | Rust | C | C++ | Python | Ruby | command |\n|---|---|\n| x | `old`, `kept` | | | | | |\n";
    let listed = &columns(table)[0];
    let declared = behind("    pub fn kept(&self)\n    pub fn new_one<T>(", "pub fn ");
    assert_eq!(without(listed, &declared), ["old"]);
    assert_eq!(without(&declared, listed), ["new_one"]);

    let header = "class options {\npublic:\n    int a() {\nclass x {\n    int b();\npublic:\n    x(int n) {}\n    bytes c(int n) {\n        return d(n);\n    \
                  int try_c(int n);\n    explicit operator bool() const;\nprotected:\n    int e();\n};\n";
    assert_eq!(cpp_calls(header).into_iter().collect::<Vec<_>>(), ["a", "c"]);
    let file = "class X\n  def a(n) = 1\n  # @private\n  def b\n  end\n  def self.c = 2\n  private\n  def d\n";
    assert_eq!(ruby_calls(file).into_iter().collect::<Vec<_>>(), ["a", "c"]);
}
