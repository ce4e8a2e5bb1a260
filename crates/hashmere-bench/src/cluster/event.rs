//! A signal to a server in the middle of the load, and when its successor answers.

use super::client::Client;
use crate::Outcome;
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than a server takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is to happen.
#[derive(Clone, Debug)]
pub struct Event {
    /// Milliseconds after the start of the load.
    at_ms: u64,
    /// Name of the signal.
    signal: String,
    /// File with the id of the process, which the process that restarts the server writes.
    pid_file: String,
    /// Where the server listens.
    address: String,
}

/// What happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Happened {
    /// When the signal was sent, in milliseconds after the start of the load.
    pub at_ms: u64,
    /// Its name.
    pub signal: String,
    /// Milliseconds from the signal to the first answer of another process.
    pub answered_ms: f64,
    /// Keys that the first answer had.
    pub warm: usize,
    /// Keys that the server had before.
    pub asked: usize,
}

impl Event {
    /// Reads `MS SIGNAL PIDFILE ADDRESS`.
    pub fn read(words: &[String]) -> Outcome<Event> {
        let [at_ms, signal, pid_file, address] = words else { return Err("an event has four words".into()) };
        let (signal, pid_file, address) = (signal.clone(), pid_file.clone(), address.clone());
        Ok(Event { at_ms: at_ms.parse()?, signal, pid_file, address })
    }

    /// Lets it happen when it is time. `keys`: some of those that are in the cluster.
    pub fn happen(&self, start: Instant, keys: &[String]) -> Outcome<Happened> {
        std::thread::sleep((start + Duration::from_millis(self.at_ms)).saturating_duration_since(Instant::now()));
        let asked = Client::new(&self.address).count(keys).ok_or("the server did not answer before its signal")?;
        let before = std::fs::read_to_string(&self.pid_file)?;
        let sent = Instant::now();
        if !Command::new("kill").args([&format!("-{}", self.signal), before.trim()]).status()?.success() {
            return Err(format!("no process {} to send {} to", before.trim(), self.signal).into());
        }
        // A stopping server answers what it has: only another process counts.
        let is_another =
            || std::fs::read_to_string(&self.pid_file).is_ok_and(|now| now != before && now.ends_with('\n'));
        while sent.elapsed() < PATIENCE {
            if is_another() {
                if let Some(warm) = Client::new(&self.address).count(keys) {
                    let answered_ms = sent.elapsed().as_secs_f64() * 1000.0;
                    let at_ms = (sent - start).as_millis() as u64;
                    return Ok(Happened { at_ms, signal: self.signal.clone(), answered_ms, warm, asked });
                }
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Err(format!("nothing answers at {} after {}", self.address, self.signal).into())
    }
}
