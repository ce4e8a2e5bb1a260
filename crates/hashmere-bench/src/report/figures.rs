//! What the processes reported.

use super::systems::System;
use crate::results::{median, Metrics};
use std::collections::{BTreeMap, HashMap};

/// For each system and metric the figures of all runs.
#[derive(Default)]
pub struct Figures {
    of: HashMap<(String, String), Vec<f64>>,
}

impl Figures {
    /// Takes in the `metric value` lines of one process.
    pub fn read(&mut self, system: &str, text: &str) {
        for line in text.lines() {
            if let Some((metric, value)) = line.split_once(' ') {
                if let Ok(value) = value.parse() {
                    self.add(system, metric, value);
                }
            }
        }
    }

    /// Takes in one figure.
    pub fn add(&mut self, system: &str, metric: &str, value: f64) {
        self.of.entry((system.to_string(), metric.to_string())).or_default().push(value);
    }

    /// All figures, smallest first.
    pub fn sorted(&self, system: &System, metric: &str) -> Vec<f64> {
        let mut all = self.of.get(&(system.id.to_string(), metric.to_string())).cloned().unwrap_or_default();
        all.sort_by(f64::total_cmp);
        all
    }

    /// The median; none when there is no figure.
    pub fn median(&self, system: &System, metric: &str) -> Option<f64> {
        median(&self.sorted(system, metric))
    }

    /// All of them, by system and metric.
    pub fn by_system(&self) -> BTreeMap<String, Metrics> {
        let mut systems: BTreeMap<String, Metrics> = BTreeMap::new();
        for ((system, metric), figures) in &self.of {
            systems.entry(system.clone()).or_default().insert(metric.clone(), figures.clone());
        }
        systems
    }

    /// Smallest and largest, in words.
    pub fn range(&self, system: &System, metric: &str) -> String {
        match self.sorted(system, metric).as_slice() {
            [] => String::new(),
            [first, .., last] => format!("{}-{}", number(Some(*first)), number(Some(*last))),
            [one] => number(Some(*one)),
        }
    }
}

/// A figure with as many digits as mean something.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_string(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

/// How many times as large the first is.
pub fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b?)
}

/// A ratio, in words.
pub fn times(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| format!("{value:.2}x"))
}

#[cfg(test)]
mod tests {
    use super::super::systems::HASHMERE;
    use super::*;

    #[test]
    fn medians() {
        let mut figures = Figures::default();
        figures.read("hashmere", "get_ns 3\nnoise\nget_ns 1.5\nget_ns 2\n");
        assert_eq!(figures.median(&HASHMERE, "get_ns"), Some(2.0));
        figures.add("hashmere", "get_ns", 4.0);
        assert_eq!(figures.median(&HASHMERE, "get_ns"), Some(2.5));
        assert_eq!(figures.median(&HASHMERE, "set_ns"), None);
        assert_eq!(figures.range(&HASHMERE, "get_ns"), "1.50-4.00");
    }
}
