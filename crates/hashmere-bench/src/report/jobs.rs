//! Runs every measurement as a process of its own.

use super::figures::Figures;
use super::plan::Plan;
use super::systems::{System, MEMCACHED};
use crate::results::Metrics;
use crate::Outcome;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One measurement of one system.
pub struct Job<'a> {
    /// What is measured.
    pub system: &'a System,
    /// The test's name.
    pub test: &'static str,
    /// Its size.
    pub records: u32,
    /// Its length.
    pub operations: u64,
}

/// Starts processes and remembers which of them failed.
pub struct Jobs {
    peers: Option<PathBuf>,
    folder: PathBuf,
    runs: usize,
    quick: bool,
    folders: u64,
    failures: Vec<String>,
    groups: Groups,
}

/// For each group the figures of each system.
pub type Groups = BTreeMap<String, BTreeMap<String, Metrics>>;

impl Jobs {
    /// None run yet.
    pub fn new(plan: &Plan) -> Jobs {
        Jobs {
            peers: plan.peers.clone(),
            folder: plan.folder.clone(),
            runs: plan.runs,
            quick: plan.quick,
            folders: 0,
            failures: Vec::new(),
            groups: Groups::new(),
        }
    }

    /// Keeps the figures of a group.
    pub fn keep(&mut self, group: &str, figures: &Figures) {
        self.groups.insert(group.to_string(), figures.by_system());
    }

    /// The figures that were kept.
    pub fn take_groups(&mut self) -> Groups {
        std::mem::take(&mut self.groups)
    }

    /// Those that failed, in words.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Remembers a failure.
    pub fn failed(&mut self, what: String) {
        eprintln!("  FAILED {what}");
        self.failures.push(what);
    }

    /// Whether a system can be measured here.
    pub fn can_run(&self, system: &System) -> bool {
        self.peers.is_some() || !system.is_peer()
    }

    /// Runs them all, `runs` times over, each round starting with another one so that drift of the machine falls on
    /// all.
    pub fn interleaved(&mut self, jobs: &[Job]) -> Outcome<Figures> {
        self.rounds(jobs, self.runs)
    }

    /// The same for what takes seconds, at least three times over: one run of it says little.
    pub fn interleaved_short(&mut self, jobs: &[Job]) -> Outcome<Figures> {
        self.rounds(jobs, if self.quick { 1 } else { self.runs.max(3) })
    }

    fn rounds(&mut self, jobs: &[Job], runs: usize) -> Outcome<Figures> {
        let mut figures = Figures::default();
        for round in 0..runs {
            for i in 0..jobs.len() {
                let job = &jobs[(i + round) % jobs.len()];
                if !self.can_run(job.system) {
                    continue;
                }
                eprintln!("  {} {}/{runs} {}", job.test, round + 1, job.system.label);
                let folder = self.new_folder()?;
                // The same keys for every system of a round.
                self.one(job, &folder, round as u64 + 1, &mut figures);
                fs::remove_dir_all(&folder)?;
            }
        }
        Ok(figures)
    }

    /// Runs one in a folder that stays.
    pub fn one(&mut self, job: &Job, folder: &Path, seed: u64, figures: &mut Figures) {
        match self.output_of(job, folder, seed) {
            Ok(text) => figures.read(job.system.id, &text),
            Err(error) => self.failed(format!("{} of {}: {error}", job.test, job.system.label)),
        }
    }

    fn output_of(&self, job: &Job, folder: &Path, seed: u64) -> Outcome<String> {
        let output = self.command(job, folder, seed)?.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The command line of a job.
    pub fn command(&self, job: &Job, folder: &Path, seed: u64) -> Outcome<Command> {
        let mut command = match (job.system.id.split_once(' '), &self.peers) {
            (Some((program, variant)), Some(peers)) => {
                let mut command = Command::new(peers.join(program));
                command.arg(variant);
                command
            }
            _ if job.system.id == MEMCACHED.id => {
                // Server and client on one core: ten times as fast here as on two, so the best that it can do.
                let mut command = Command::new("taskset");
                command.args(["-c", "0"]).arg(std::env::current_exe()?).args(["work", job.system.id]);
                command
            }
            _ => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["work", job.system.id]);
                command
            }
        };
        command
            .args([job.test, &job.records.to_string(), &job.operations.to_string()])
            .arg(folder)
            .arg(seed.to_string());
        Ok(command)
    }

    /// A fresh folder for a store.
    pub fn new_folder(&mut self) -> Outcome<PathBuf> {
        self.folders += 1;
        let folder = self.folder.join(format!("job-{}", self.folders));
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}
