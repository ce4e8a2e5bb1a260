//! Backups at an interval, the last of which are kept.

use crate::cmd::Outcome;
use crate::failure::Failure;
use crate::output::print_line;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The clock may be set during a sleep: so long at most it is not looked at.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// The backups of a store in a folder: `NAME-20260131T235959Z.mere`.
pub struct Series<'a> {
    folder: &'a Path,
    name: String,
    every: Duration,
    keep: usize,
}

impl<'a> Series<'a> {
    /// Makes the folder if it is missing.
    pub fn new(store: &Path, folder: &'a Path, every: Duration, keep: u32) -> Result<Series<'a>, Failure> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Failure::io(format!("make the folder {}", folder.display()), &error));
            }
            _ => {}
        }
        let name = store.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Series { folder, name, every, keep: keep as usize })
    }

    /// Makes them with `back_up`, until the command is ended or the first one fails.
    pub fn run(&self, back_up: impl Fn(&Path) -> Outcome) -> Outcome {
        let mut due = self.made()?.last().map_or_else(SystemTime::now, |(made, _)| *made + self.every);
        let mut is_first = true;
        loop {
            self.sleep_until(due);
            let now = SystemTime::now();
            let made = self.back_up(now, &back_up);
            match made {
                Err(error) if is_first => return Err(error),
                Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
                // What failed is printed, and the next one is tried in its turn.
                Err(error) => drop(error.report(false)),
                Ok(()) => {}
            }
            is_first = false;
            due = now + self.every;
        }
    }

    fn back_up(&self, now: SystemTime, back_up: &impl Fn(&Path) -> Outcome) -> Outcome {
        let path = self.folder.join(format!("{}-{}.mere", self.name, stamp(now)));
        back_up(&path)?;
        // Printed when it is there, before old ones go: a process that reads it may copy those.
        print_line(path.to_string_lossy().as_bytes())?;
        let made = self.made()?;
        for (_, old) in made.iter().take(made.len().saturating_sub(self.keep)) {
            std::fs::remove_file(old).map_err(|e| Failure::io(format!("remove {}", old.display()), &e))?;
        }
        Ok(())
    }

    /// Those that there are, the oldest first.
    fn made(&self) -> Result<Vec<(SystemTime, PathBuf)>, Failure> {
        let failed = |e: std::io::Error| Failure::io(format!("list {}", self.folder.display()), &e);
        let mut made = Vec::new();
        for entry in std::fs::read_dir(self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(text) = name.to_str().and_then(|name| name.strip_prefix(&self.name)?.strip_prefix('-')) else {
                continue;
            };
            if let Some(time) = text.strip_suffix(".mere").and_then(time_of) {
                made.push((time, self.folder.join(&name)));
            }
        }
        made.sort();
        Ok(made)
    }

    /// Sleeps until `due`, or for an interval if the clock was set back.
    fn sleep_until(&self, due: SystemTime) {
        let mut left = self.every;
        while let Ok(rest) = due.duration_since(SystemTime::now()) {
            let nap = rest.min(left).min(SLEEP_MAX);
            if nap.is_zero() {
                return;
            }
            std::thread::sleep(nap);
            left -= nap;
        }
    }
}

/// `20260131T235959Z`.
fn stamp(time: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.chars().filter(|c| !matches!(c, '-' | ':')).collect()
}

/// The time that a [`stamp`] is of.
fn time_of(stamp: &str) -> Option<SystemTime> {
    let is_digits =
        |range: std::ops::Range<usize>| stamp.get(range).is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
    if stamp.len() != 16 || !is_digits(0..8) || !is_digits(9..15) {
        return None;
    }
    let text = format!(
        "{}-{}-{}T{}:{}:{}Z",
        &stamp[..4],
        &stamp[4..6],
        &stamp[6..8],
        &stamp[9..11],
        &stamp[11..13],
        &stamp[13..15]
    );
    let time = humantime::parse_rfc3339(&text).ok()?;
    (self::stamp(time) == stamp).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_903_999);
        assert_eq!(stamp(time), "20260131T235959Z");
        assert_eq!(time_of("20260131T235959Z"), Some(time));
        for other in
            ["", "20260131T235959", "20261331T235959Z", "20260131x235959Z", "2026-131T235959Z", "é260131T23595Z"]
        {
            assert_eq!(time_of(other), None, "{other}");
        }
    }
}
