//! What a run of the report measured, as it is kept in `bench/results`: every figure of every run, and what it ran on.

use crate::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The figures of one system: for each metric those of all runs.
pub type Metrics = BTreeMap<String, Vec<f64>>;

/// One run of the report.
#[derive(Serialize, Deserialize)]
pub struct Results {
    /// Of this structure: 1.
    pub schema: u32,
    /// What was run.
    pub command: String,
    /// Day of the run.
    pub date: String,
    /// The commit that was measured; with a plus if files had changed since.
    pub commit: String,
    /// The machine in words.
    pub machine: String,
    /// What simple things cost on it that day.
    pub costs: String,
    /// Processes that wanted a core before and after.
    pub load: (String, String),
    /// How often each figure was measured.
    pub runs: usize,
    /// Sizes at which the figures mean nothing.
    pub quick: bool,
    /// The versions of the peers.
    pub versions: BTreeMap<String, String>,
    /// For each group the figures of each system.
    pub groups: BTreeMap<String, BTreeMap<String, Metrics>>,
    /// What was promised, and what was measured.
    pub bars: Vec<Bar>,
}

/// A promise and what was measured.
#[derive(Clone, Serialize, Deserialize)]
pub struct Bar {
    /// In words.
    pub what: String,
    /// The limit.
    pub bar: String,
    /// In words.
    pub measured: String,
    /// Whether it was met.
    pub met: bool,
}

impl Results {
    /// Reads a file.
    pub fn read(path: &Path) -> Outcome<Results> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let results: Results = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if results.schema != SCHEMA {
            return Err(format!("{}: schema {}, this program knows {SCHEMA}", path.display(), results.schema).into());
        }
        Ok(results)
    }

    /// Writes a file.
    pub fn write(&self, path: &Path) -> Outcome {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// All figures of a metric, smallest first; none if it was not measured.
    pub fn sorted(&self, group: &str, system: &str, metric: &str) -> Vec<f64> {
        let figures = self.groups.get(group).and_then(|systems| systems.get(system)?.get(metric));
        let mut figures = figures.cloned().unwrap_or_default();
        figures.sort_by(f64::total_cmp);
        figures
    }

    /// The median.
    pub fn median(&self, group: &str, system: &str, metric: &str) -> Option<f64> {
        median(&self.sorted(group, system, metric))
    }
}

/// The schema that is written.
pub const SCHEMA: u32 = 1;

/// The median of sorted figures.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}
