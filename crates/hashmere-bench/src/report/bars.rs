//! The bars of the issue, and whether they are met.

use crate::results::Bar;

/// All of them.
pub struct Bars {
    quick: bool,
    all: Vec<Bar>,
}

impl Bars {
    /// None yet.
    pub fn new(quick: bool) -> Bars {
        Bars { quick, all: Vec::new() }
    }

    /// At most this much.
    pub fn at_most(&mut self, what: &str, limit: f64, unit: &str, measured: Option<f64>) {
        self.judge(what, format!("<= {limit}{unit}"), unit, measured, |value| value <= limit);
    }

    /// Less than this.
    pub fn below(&mut self, what: &str, limit: f64, unit: &str, measured: Option<f64>) {
        self.judge(what, format!("< {limit}{unit}"), unit, measured, |value| value < limit);
    }

    /// At least this much.
    pub fn at_least(&mut self, what: &str, limit: f64, unit: &str, measured: Option<f64>) {
        self.judge(what, format!(">= {limit}{unit}"), unit, measured, |value| value >= limit);
    }

    /// More than this.
    pub fn above(&mut self, what: &str, limit: f64, unit: &str, measured: Option<f64>) {
        self.judge(what, format!("> {limit}{unit}"), unit, measured, |value| value > limit);
    }

    fn judge(&mut self, what: &str, bar: String, unit: &str, measured: Option<f64>, test: impl Fn(f64) -> bool) {
        self.all.push(Bar {
            what: what.to_string(),
            bar,
            measured: measured.map_or("no figure".to_string(), |value| format!("{value:.2}{unit}")),
            met: measured.is_some_and(test),
        });
    }

    /// All of them.
    pub fn into_all(self) -> Vec<Bar> {
        self.all
    }

    /// Prints them; whether all are met.
    pub fn print(&self) -> bool {
        println!("\nBars{}", if self.quick { " (at these sizes they mean nothing)" } else { "" });
        for bar in &self.all {
            let verdict = if bar.met { "PASS" } else { "FAIL" };
            println!("  {verdict}  {:<66} {:>14}  bar {}", bar.what, bar.measured, bar.bar);
        }
        self.all.iter().all(|bar| bar.met)
    }
}
