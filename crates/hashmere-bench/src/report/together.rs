//! Several processes at one moment, and one against two.

use super::figures::Figures;
use super::jobs::{Job, Jobs};
use crate::Outcome;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Couples of one process and two, for each run.
pub const COUPLES: usize = 3;

/// What a number of processes did in a second, all together.
pub fn metric(test: &str, processes: usize) -> String {
    format!("{test}-{processes}")
}

/// How many times one process two are.
pub fn gain_of(test: &str) -> String {
    format!("{test}-gain")
}

/// One process and two, in either order.
pub fn couple(jobs: &Jobs, job: &Job, folder: &Path, one_first: bool, figures: &mut Figures) -> Outcome {
    let (first, second) = if one_first { (1, 2) } else { (2, 1) };
    let (first, second) = (together(jobs, job, folder, first)?, together(jobs, job, folder, second)?);
    let (one, two) = if one_first { (first, second) } else { (second, first) };
    figures.add(job.system.id, &metric(job.test, 1), one);
    figures.add(job.system.id, &metric(job.test, 2), two);
    figures.add(job.system.id, &gain_of(job.test), two / one);
    Ok(())
}

/// Starts processes, lets them warm up, and lets them go at one moment; their operations a second added up.
pub fn together(jobs: &Jobs, job: &Job, folder: &Path, processes: usize) -> Outcome<f64> {
    let mut children = Vec::new();
    for i in 0..processes {
        let child = jobs.command(job, folder, 100 + i as u64)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        children.push(Started(child));
    }
    let mut outputs = Vec::new();
    for Started(child) in &mut children {
        let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line != "ready\n" {
            return Err("it did not start".into());
        }
        outputs.push(output);
    }
    let start = SystemTime::now().duration_since(UNIX_EPOCH)? + Duration::from_millis(50);
    for Started(child) in &mut children {
        let mut input = child.stdin.take().ok_or("no input")?;
        writeln!(input, "{}", start.as_nanos())?;
    }
    let mut figures = Figures::default();
    for output in &mut outputs {
        let mut text = String::new();
        output.read_to_string(&mut text)?;
        figures.read(job.system.id, &text);
    }
    for Started(child) in &mut children {
        if !child.wait()?.success() {
            return Err("it failed".into());
        }
    }
    Ok(figures.sorted(job.system, "ops_per_s").iter().sum())
}

/// Ends the process when something else went wrong.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // Both fail only for a process that has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
