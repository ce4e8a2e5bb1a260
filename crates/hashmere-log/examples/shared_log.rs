//! Several processes log into one stream; one of them is killed.
//!
//!     cargo run --release -p hashmere-log --example shared_log

use hashmere::Store;
use hashmere_log::{Format, Level, Log, LogOptions, Sink};
use std::process::Command;
use std::time::Duration;

const STORE: &str = "shared-log-sample";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(name) = std::env::args().nth(1) {
        return worker(&name);
    }
    let store = Store::open(STORE)?;
    let log = Log::open(&store, "log", LogOptions::new())?;
    let drainer = log.drain(Sink::stdout(Format::Text)?)?;
    log.line(Level::Info, "three workers start")?;
    let start = |name: &str| Command::new(std::env::current_exe()?).arg(name).spawn();
    let mut workers = ["a", "b", "c"].map(start).into_iter().collect::<Result<Vec<_>, _>>()?;
    std::thread::sleep(Duration::from_millis(30));
    workers[0].kill()?;
    log.record(Level::Warn, "one was killed", &[("pid", workers[0].id().into())])?;
    for worker in &mut workers {
        worker.wait()?;
    }
    drainer.stop()?;
    drop((log, store));
    Store::remove(STORE)?;
    Ok(())
}

fn worker(name: &str) -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open(STORE)?;
    let log = Log::open(&store, "log", LogOptions::new())?;
    for n in 0..5 {
        log.format(Level::Info, format_args!("worker {name} does step {n}"))?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
