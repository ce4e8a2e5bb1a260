//! What is to be measured, and at what size.

use crate::Outcome;
use std::path::PathBuf;

/// The command line, and the sizes that follow from it.
pub struct Plan {
    /// A smoke test: sizes at which the figures mean little.
    pub quick: bool,
    /// A missed bar makes the exit status 1.
    pub strict: bool,
    /// How often everything is measured; the median counts.
    pub runs: usize,
    /// Where the programs of `bench/peers` are; none: Hashmere and `HashMap` alone.
    pub peers: Option<PathBuf>,
    /// A folder on tmpfs for the stores.
    pub folder: PathBuf,
    only: Option<Vec<String>>,
    /// Also sizes and memories that take long.
    pub full: bool,
    /// Where the figures are written to, for machines to read.
    pub json: Option<PathBuf>,
    /// How this was called, in words.
    pub command: String,
}

/// The groups, in the order in which they are measured.
pub const GROUPS: [&str; 10] =
    ["w1", "w2", "sizes", "scale", "growth", "empty", "cache", "queue", "log", "transactions"];

impl Plan {
    /// Reads the arguments of `report`.
    pub fn parse(arguments: &[String]) -> Outcome<Plan> {
        let (mut quick, mut strict, mut no_peers) = (false, false, false);
        let (mut runs, mut only, mut peers, mut folder) = (None, None, None, None);
        let (mut full, mut json) = (false, None);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // Without what names places of this machine.
        let places = ["--peers", "--folder", "--json"];
        let command = words.iter().enumerate().filter(|(i, word)| {
            !places.contains(word) && !i.checked_sub(1).is_some_and(|before| places.contains(&words[before]))
        });
        let command = command.fold("bench/run".to_string(), |text, (_, word)| text + " " + word);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().cloned().ok_or_else(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "--quick" => quick = true,
                "--full" => full = true,
                "--strict" => strict = true,
                "--json" => json = Some(value()?.into()),
                "--no-peers" => no_peers = true,
                "--runs" => runs = Some(value()?.parse::<usize>()?.max(1)),
                "--only" => only = Some(value()?),
                "--peers" => peers = Some(value()?.into()),
                "--folder" => folder = Some(value()?.into()),
                other => return Err(format!("what is {other}?\n{}", crate::USAGE).into()),
            }
        }
        let only: Option<Vec<String>> = only.map(|only: String| only.split(',').map(str::to_string).collect());
        if let Some(group) = only.iter().flatten().find(|group| !GROUPS.contains(&group.as_str())) {
            return Err(format!("--only {group}: the groups are {}", GROUPS.join(", ")).into());
        }
        Ok(Plan {
            quick,
            strict,
            runs: runs.unwrap_or(if quick { 1 } else { 3 }),
            peers: peers.filter(|_| !no_peers),
            folder: folder.ok_or("--folder is missing")?,
            only,
            full,
            json,
            command,
        })
    }

    /// Whether a group is to be measured.
    pub fn wants(&self, group: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == group))
    }

    /// The full size, or the quick one.
    pub fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick {
            quick
        } else {
            full
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        let quick = if self.quick { "QUICK (sizes too small to mean anything), " } else { "" };
        let short = if self.quick { self.runs } else { self.runs.max(3) };
        format!(
            "{quick}medians of {} interleaved runs ({short} of what takes seconds), every value read is compared",
            self.runs
        )
    }
}
