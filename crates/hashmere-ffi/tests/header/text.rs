//! Reads the header and the Rust sources as far as their rules of style go.

use std::collections::BTreeMap;

/// A function's parameters: `const void *key`, `size_t key_len` and so on.
pub type Parameters = Vec<String>;

/// What the header declares.
pub struct Header {
    /// Structures with their fields, in order.
    pub structures: Vec<(String, Vec<String>)>,
    /// Constants, in order.
    pub constants: Vec<(String, i64)>,
    /// Functions, by name.
    pub functions: BTreeMap<String, Parameters>,
}

impl Header {
    pub fn parse(source: &str) -> Header {
        let text = without_comments(source);
        let mut header = Header { structures: Vec::new(), constants: Vec::new(), functions: BTreeMap::new() };
        let mut rest = text.as_str();
        while let Some((statement, behind)) = next_statement(rest) {
            header.take(&statement);
            rest = behind;
        }
        header
    }

    fn take(&mut self, statement: &str) {
        if let Some((head, body)) = statement.split_once('{') {
            let body = body.rsplit_once('}').expect("a closing brace").0;
            if head.starts_with("typedef struct") {
                let name = head.split_whitespace().nth(2).expect("a name").to_string();
                self.structures.push((name, body.split(';').filter_map(field).collect()));
            } else if head.starts_with("enum") {
                self.constants.extend(body.split(',').filter_map(constant));
            }
        } else if !statement.starts_with("typedef") {
            let (head, parameters) = statement.split_once('(').expect("a function");
            let name = head.split([' ', '*']).next_back().expect("a name");
            let parameters = parameters.trim_end_matches(')');
            let parameters = parameters.split(',').map(str::trim).filter(|p| *p != "void").map(String::from).collect();
            self.functions.insert(name.into(), parameters);
        }
    }
}

fn without_comments(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source;
    while let Some((before, comment)) = rest.split_once("/*") {
        text.push_str(before);
        rest = comment.split_once("*/").expect("a comment's end").1;
    }
    text.push_str(rest);
    let mut is_for_cpp = false;
    let lines = text.lines().filter(|line| {
        is_for_cpp = (is_for_cpp || line.starts_with("#ifdef __cplusplus")) && !line.starts_with("#endif");
        !is_for_cpp && !line.starts_with('#')
    });
    lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Up to the semicolon that is in no braces; what is inline is code of the caller's, and left out.
fn next_statement(text: &str) -> Option<(String, &str)> {
    let mut depth = 0;
    if text.trim_start().starts_with("static inline") {
        let end = text.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == '}' && depth == 0
        })?;
        return next_statement(&text[end + 1..]);
    }
    let end = text.find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ';' && depth == 0
    })?;
    Some((text[..end].trim().to_string(), &text[end + 1..]))
}

fn field(declaration: &str) -> Option<String> {
    let name = declaration.split('[').next()?.split([' ', '*']).rfind(|word| !word.is_empty())?;
    Some(name.to_string())
}

fn constant(text: &str) -> Option<(String, i64)> {
    let (name, value) = text.split_once('=')?;
    let value = value.trim();
    let number = match value.split_once("<<") {
        Some((one, by)) => one.trim().parse::<i64>().ok()? << by.trim().parse::<u32>().ok()?,
        None => value.parse().ok()?,
    };
    Some((name.trim().to_string(), number))
}

/// The exported functions of a source file, with the parameters of C that they have.
pub fn collect_exports(source: &str, into: &mut BTreeMap<String, Parameters>) {
    for function in source.split("fn hm_").skip(1) {
        let (names, rest) = function.split_once('(').expect("parameters");
        // The parameters end where the body begins; functions that are not exported have a result type there.
        let Some((parameters, _)) = rest.split_once(") {\n") else { continue };
        match names.split_once(" | ") {
            Some((name, sister)) => {
                into.insert(format!("hm_{name}"), in_c(KEY_BYTES, parameters));
                into.insert(sister.into(), in_c(KEY_OF_ANY_KIND, parameters));
            }
            None if !parameters.contains("->") && parameters.contains(" = (") => {
                into.insert(format!("hm_{names}"), in_c(&[], parameters));
            }
            None => {}
        }
    }
}

/// How the first parameters of `export_by_key!` begin, in C.
const KEY_BYTES: &[&str] = &["hm_store *store", "const void *key", "size_t key_len"];
const KEY_OF_ANY_KIND: &[&str] = &["hm_store *store", "const hm_key *key"];

fn in_c(first: &[&str], parameters: &str) -> Parameters {
    let raw = parameters.split(" = (").skip(1).flat_map(|kind| kind.split(')').next().unwrap_or("").split(", "));
    let first = first.iter().map(|parameter| String::from(*parameter));
    first.chain(raw.map(parameter_in_c)).chain(["hm_error *error".into()]).collect()
}

/// `const void *key` from `key: *const c_void`.
fn parameter_in_c(parameter: &str) -> String {
    let (name, kind) = parameter.split_once(": ").expect("a type");
    format!("{}{name}", type_in_c(kind.trim()))
}

fn type_in_c(kind: &str) -> String {
    if let Some(callback) = kind.strip_prefix("Option<") {
        return type_in_c(callback.trim_end_matches('>'));
    }
    if let Some(target) = kind.strip_prefix("*mut *const ").or(kind.strip_prefix("*mut *mut ")) {
        return format!("{}**", type_in_c(target));
    }
    if let Some(target) = kind.strip_prefix("*mut ") {
        return format!("{}*", type_in_c(target));
    }
    if let Some(target) = kind.strip_prefix("*const ") {
        return format!("const {}*", type_in_c(target));
    }
    let name = match kind {
        "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        "usize" => "size_t",
        "u64" => "uint64_t",
        "u32" => "uint32_t",
        "i64" => "int64_t",
        "f64" => "double",
        structure => return format!("{} ", super::shout(structure).to_lowercase()),
    };
    format!("{name} ")
}
