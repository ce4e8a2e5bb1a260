//! Commands by their names.

use super::parse::Args;
use super::state::{Command, CONTAINER};

/// A command by its name.
#[derive(Debug)]
pub enum Found {
    /// This one.
    Command(&'static Command),
    /// There is none.
    Unknown,
    /// The command has no such subcommand.
    UnknownSub,
}

/// Longest name.
pub const LONGEST: usize = 24;

/// The command of a request, among these.
#[inline]
pub fn find(commands: &'static [Command], args: Args<'_>) -> Found {
    let Some(command) = by_name(commands, args.at(0), b"") else { return Found::Unknown };
    if !command.has(CONTAINER) || args.count() < 2 {
        return Found::Command(command);
    }
    // An empty word is the name of none.
    let sub = Some(args.at(1)).filter(|sub| !sub.is_empty());
    sub.and_then(|sub| by_name(commands, args.at(0), sub)).map_or(Found::UnknownSub, Found::Command)
}

/// A command by its name, or a subcommand by both names.
#[inline]
pub fn by_name(commands: &'static [Command], name: &[u8], sub: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; LONGEST];
    let bar = usize::from(!sub.is_empty());
    let length = name.len() + bar + sub.len();
    if length > LONGEST {
        return None;
    }
    lower[..name.len()].copy_from_slice(name);
    if bar == 1 {
        lower[name.len()] = b'|';
        lower[name.len() + 1..length].copy_from_slice(sub);
    }
    lower.make_ascii_lowercase();
    let name = &lower[..length];
    let at = commands.binary_search_by(|command| command.name.as_bytes().cmp(name)).ok()?;
    commands.get(at)
}
