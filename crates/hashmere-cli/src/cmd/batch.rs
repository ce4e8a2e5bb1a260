//! `batch`.

use super::step::{Amount, CountArgs, Step};
use super::Outcome;
use crate::args::{AttributeArgs, CreatorArgs, Escape, TtlArgs};
use crate::failure::{code, Failure};
use crate::output::Output;
use clap::{Args, Parser, Subcommand, ValueHint};
use hashmere::{BatchResult, Branch, Condition, Pair, Version, WriteBatch};
use hashmere_dump::json;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Do several operations at one moment, under conditions or not.
///
/// The operations are read from a file or standard input, one a line, written as the commands of the same names
/// without the store: set, delete, incr, decr, append, prepend, touch, get. Words are separated by blanks and quoted
/// as in a shell; # begins a comment. They are done in order, all at one moment, or none of them if one fails.
///
/// Lines before them that begin with `if` are conditions: if absent KEY, if present KEY, if version KEY N,
/// if value KEY VALUE. If not all hold, the operations behind a line `else` are done instead, if there are any, and
/// the exit status is 1.
///
/// incr and decr take --signed and --float. What get finds and what incr and decr come to is printed, in lines of key
/// TAB value.
#[derive(Args, Debug)]
pub struct Batch {
    #[command(flatten)]
    store: CreatorArgs,
    /// The file; `-` or missing: standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    #[command(flatten)]
    escape: Escape,
    /// Print a line of JSON with which batch it was and the result of each operation
    #[arg(short, long)]
    json: bool,
    /// Fail if the store does not exist, instead of creating it
    #[arg(long)]
    no_create: bool,
}

/// One line of the input.
#[derive(Parser, Debug)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    #[command(subcommand)]
    If(Asked),
    Else,
    Set {
        key: OsString,
        #[arg(allow_negative_numbers = true)]
        value: OsString,
        #[command(flatten)]
        attributes: AttributeArgs,
    },
    #[command(alias = "del")]
    Delete {
        key: OsString,
    },
    Incr {
        key: OsString,
        #[arg(default_value = "1", allow_negative_numbers = true)]
        by: Amount,
        #[command(flatten)]
        kind: CountArgs,
    },
    Decr {
        key: OsString,
        #[arg(default_value = "1")]
        by: Amount,
        #[command(flatten)]
        kind: CountArgs,
    },
    Append {
        key: OsString,
        #[arg(allow_negative_numbers = true)]
        value: OsString,
    },
    Prepend {
        key: OsString,
        #[arg(allow_negative_numbers = true)]
        value: OsString,
    },
    Touch {
        key: OsString,
        #[command(flatten)]
        ttl: TtlArgs,
    },
    Get {
        key: OsString,
    },
}

#[derive(Subcommand, Debug)]
enum Asked {
    Absent {
        key: OsString,
    },
    Present {
        key: OsString,
    },
    Version {
        key: OsString,
        version: u64,
    },
    Value {
        key: OsString,
        #[arg(allow_negative_numbers = true)]
        value: OsString,
    },
}

/// Adds a step to a batch.
fn count(batch: &mut WriteBatch, key: &[u8], step: Step) -> Result<(), Failure> {
    let signed = |by: i128| {
        let range = || Failure::Usage("in a batch BY must be from -2^63 to 2^63 - 1".into());
        i64::try_from(by).map_err(|_| range())
    };
    match step {
        Step::Up(by, counter) => batch.incr(key, signed(by.into())?, counter),
        Step::Down(by, counter) => batch.incr(key, signed(-i128::from(by))?, counter),
        Step::Signed(by, counter) => batch.incr_signed(key, by, counter),
        Step::Float(by, counter) => batch.incr_float(key, by, counter),
    };
    Ok(())
}

/// What a refusal of arguments says.
fn reason_of(failure: Failure) -> String {
    match failure {
        Failure::Usage(text) => text,
        other => format!("{other:?}"),
    }
}

/// A condition that owns its bytes.
enum Owned {
    Absent(Vec<u8>),
    Present(Vec<u8>),
    Version(Vec<u8>, u64),
    Value(Vec<u8>, Vec<u8>),
}

impl Owned {
    fn condition(&self) -> Condition<'_> {
        match self {
            Owned::Absent(key) => Condition::Absent(key),
            Owned::Present(key) => Condition::Present(key),
            Owned::Version(key, version) => Condition::Version(key, Version(*version)),
            Owned::Value(key, value) => Condition::Value(key, value),
        }
    }
}

/// A batch, and of each operation its name and its key.
#[derive(Default)]
struct Named {
    batch: WriteBatch,
    names: Vec<(&'static str, Vec<u8>)>,
}

/// The whole input.
struct Script {
    escape: Escape,
    conditions: Vec<Owned>,
    then: Named,
    otherwise: Option<Named>,
}

impl Script {
    /// Takes a line. The error says what is wrong with it.
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let words = shlex::bytes::split(line).ok_or("a quotation mark or `\\` is not followed by another")?;
        if words.is_empty() {
            return Ok(());
        }
        let line = Line::try_parse_from(words.into_iter().map(OsString::from_vec)).map_err(|error| reason(&error))?;
        match line.what {
            What::If(_) if self.otherwise.is_some() || !self.then.names.is_empty() => {
                Err("an `if` behind an operation: all conditions come first".into())
            }
            What::If(asked) => {
                let condition = self.condition(asked)?;
                self.conditions.push(condition);
                Ok(())
            }
            What::Else if self.otherwise.is_some() => Err("a second `else`".into()),
            What::Else if self.conditions.is_empty() => Err("an `else` without an `if` before".into()),
            What::Else => {
                self.otherwise = Some(Named::default());
                Ok(())
            }
            operation => self.add(operation),
        }
    }

    fn bytes(&self, argument: &OsStr) -> Result<Vec<u8>, String> {
        self.escape.bytes("a word", argument).map_err(reason_of)
    }

    fn condition(&self, asked: Asked) -> Result<Owned, String> {
        Ok(match asked {
            Asked::Absent { key } => Owned::Absent(self.bytes(&key)?),
            Asked::Present { key } => Owned::Present(self.bytes(&key)?),
            Asked::Version { key, version } => Owned::Version(self.bytes(&key)?, version),
            Asked::Value { key, value } => Owned::Value(self.bytes(&key)?, self.bytes(&value)?),
        })
    }

    fn add(&mut self, operation: What) -> Result<(), String> {
        let (What::Set { key, .. }
        | What::Delete { key }
        | What::Incr { key, .. }
        | What::Decr { key, .. }
        | What::Append { key, .. }
        | What::Prepend { key, .. }
        | What::Touch { key, .. }
        | What::Get { key }) = &operation
        else {
            return Err("it is no operation".into());
        };
        let key = self.bytes(key)?;
        let value = match &operation {
            What::Set { value, .. } | What::Append { value, .. } | What::Prepend { value, .. } => self.bytes(value)?,
            _ => Vec::new(),
        };
        let Named { batch, names } = self.otherwise.as_mut().unwrap_or(&mut self.then);
        let name = match operation {
            What::Set { attributes, .. } => {
                batch.set_with(&key, &value, attributes.attributes());
                "set"
            }
            What::Delete { .. } => {
                batch.delete(&key);
                "delete"
            }
            What::Incr { by, kind, .. } => {
                kind.step(by).and_then(|step| count(batch, &key, step)).map_err(reason_of)?;
                "incr"
            }
            What::Decr { by, kind, .. } => {
                kind.step(by.negative()).and_then(|step| count(batch, &key, step)).map_err(reason_of)?;
                "decr"
            }
            What::Append { .. } => {
                batch.append(&key, &value);
                "append"
            }
            What::Prepend { .. } => {
                batch.prepend(&key, &value);
                "prepend"
            }
            What::Touch { ttl, .. } => {
                batch.touch(&key, ttl.ttl());
                "touch"
            }
            _ => {
                batch.get(&key);
                "get"
            }
        };
        names.push((name, key));
        Ok(())
    }
}

/// What clap says of a line, without how a command is called.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\n\nUsage", "\n\nFor more"].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    text[..end].split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Batch {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let file = self.file.as_deref().filter(|file| *file != Path::new("-"));
        let (source, input) = match file {
            Some(file) => {
                let source = file.display().to_string();
                let input = std::fs::read(file).map_err(|e| Failure::io(format!("read {source}"), &e))?;
                (source, input)
            }
            None => {
                let (source, mut input) = ("standard input".to_string(), Vec::new());
                let read = std::io::stdin().lock().read_to_end(&mut input);
                read.map_err(|e| Failure::io("read standard input", &e))?;
                (source, input)
            }
        };
        let mut script =
            Script { escape: self.escape, conditions: Vec::new(), then: Named::default(), otherwise: None };
        for (number, line) in (1_u64..).zip(input.split(|byte| *byte == b'\n')) {
            script.take(line).map_err(|why| {
                Failure::error(code::MALFORMED, format!("{source}, line {number}: {why}; nothing was done"))
            })?;
        }
        let store = self.store.open(self.no_create)?;
        let conditions: Vec<_> = script.conditions.iter().map(Owned::condition).collect();
        let otherwise = script.otherwise.unwrap_or_default();
        let done = store.write_batch_if(&conditions, &script.then.batch, &otherwise.batch)?;
        let names = if done.succeeded { &script.then.names } else { &otherwise.names };
        let mut output = Output::new();
        if self.json {
            output.line(as_json(&done, names))?;
        } else {
            for ((_, key), result) in names.iter().zip(&done.results) {
                match result {
                    BatchResult::Item(Some(item)) => output.pair(key, &item.value)?,
                    BatchResult::Counted(Some(number)) => output.pair(key, number.to_string().as_bytes())?,
                    BatchResult::CountedSigned(Some(number)) => output.pair(key, number.to_string().as_bytes())?,
                    BatchResult::CountedFloat(Some(number)) => output.pair(key, number.to_string().as_bytes())?,
                    _ => {}
                }
            }
        }
        output.finish()?;
        match done.succeeded {
            true => Ok(()),
            false => Err(Failure::NotMet("the conditions do not hold".into())),
        }
    }
}

/// `{"succeeded":true,"results":[{"operation":"set","key":"a","version":7,...},...]}`
fn as_json(done: &Branch, names: &[(&'static str, Vec<u8>)]) -> Vec<u8> {
    let mut out = format!("{{\"succeeded\":{},\"results\":[", done.succeeded).into_bytes();
    for (at, ((name, key), result)) in names.iter().zip(&done.results).enumerate() {
        out.extend_from_slice(if at == 0 { b"" } else { b"," });
        out.extend_from_slice(format!("{{\"operation\":\"{name}\",").as_bytes());
        let rest = match result {
            BatchResult::Stored(stored) => {
                format!("\"version\":{},\"uid\":{},\"created\":{}", stored.version.0, stored.uid.0, stored.created)
            }
            BatchResult::Deleted(there) | BatchResult::Extended(there) | BatchResult::Touched(there) => {
                format!("\"present\":{there}")
            }
            BatchResult::Counted(Some(number)) => format!("\"present\":true,\"number\":{number}"),
            BatchResult::CountedSigned(Some(number)) => format!("\"present\":true,\"number\":{number}"),
            BatchResult::CountedFloat(Some(number)) => format!("\"present\":true,\"number\":{number}"),
            BatchResult::Item(Some(item)) => {
                let pair =
                    Pair { key: key.clone(), value: item.value.clone(), metadata: item.metadata, supplied_hash: None };
                let mut line = Vec::new();
                json::write_pair(&pair, true, &mut line);
                // Without its braces and its newline.
                out.extend_from_slice(b"\"present\":true,");
                out.extend_from_slice(&line[1..line.len() - 1]);
                continue;
            }
            _ => "\"present\":false".into(),
        };
        json::bytes_field("key", key, &mut out);
        out.extend_from_slice(format!(",{rest}}}").as_bytes());
    }
    out.extend_from_slice(b"]}");
    out
}
