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
    only: Option<String>,
}

const GROUPS: [&str; 7] = ["w1", "w2", "scale", "growth", "empty", "queue", "log"];

impl Plan {
    /// Reads the arguments of `report`.
    pub fn parse(arguments: &[String]) -> Outcome<Plan> {
        let (mut quick, mut strict, mut no_peers) = (false, false, false);
        let (mut runs, mut only, mut peers, mut folder) = (None, None, None, None);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().cloned().ok_or_else(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "--quick" => quick = true,
                "--strict" => strict = true,
                "--no-peers" => no_peers = true,
                "--runs" => runs = Some(value()?.parse::<usize>()?.max(1)),
                "--only" => only = Some(value()?),
                "--peers" => peers = Some(value()?.into()),
                "--folder" => folder = Some(value()?.into()),
                other => return Err(format!("what is {other}?\n{}", crate::USAGE).into()),
            }
        }
        if let Some(group) = only.as_deref().filter(|group| !GROUPS.contains(group)) {
            return Err(format!("--only {group}: the groups are {}", GROUPS.join(", ")).into());
        }
        Ok(Plan {
            quick,
            strict,
            runs: runs.unwrap_or(if quick { 1 } else { 3 }),
            peers: peers.filter(|_| !no_peers),
            folder: folder.ok_or("--folder is missing")?,
            only,
        })
    }

    /// Whether a group is to be measured.
    pub fn wants(&self, group: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == group)
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
        format!("{quick}medians of {} interleaved runs, every value read is compared", self.runs)
    }
}
