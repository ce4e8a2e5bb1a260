//! Three processes log into one stream, which a fourth writes to a file.

use hashmere::Store;
use hashmere_log::{Format, Level, Log, LogFile, LogOptions, Sink};
use std::collections::HashSet;
use std::error::Error;
use std::process::{Child, Command};

const STORE: &str = "sample-log";
const PROCESSES: usize = 3;
const LINES: usize = 100;

fn worker(log: &Log) -> Result<(), Box<dyn Error>> {
    for number in 0..LINES {
        log.format(Level::Info, format_args!("line {number}"))?;
        if number % 10 == 0 {
            log.format(Level::Debug, format_args!("line {number}, with all the details"))?;
        }
    }
    Ok(())
}

/// Looks at lines such as `2026-11-22T01:12:56.123456Z INFO  log[4711] 3: line 7`. Returns how many are those of debug.
fn check(text: &str, pids: &[u32]) -> Result<usize, Box<dyn Error>> {
    let (mut seen, mut last, mut debug) = (HashSet::new(), "", 0);
    for line in text.lines() {
        let (head, said) = line.split_once(": ").ok_or("a line without a colon")?;
        let [time, level, who, _thread] = head.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("not a line of the log: {line}").into());
        };
        let pid = who.strip_suffix(']').and_then(|who| who.rsplit_once('[')).ok_or("a line without a process")?.1;
        if time < last {
            return Err(format!("out of the order of time: {line}").into());
        }
        last = time;
        if level == "DEBUG" {
            debug += 1;
        } else if level != "INFO" || !pids.contains(&pid.parse()?) || !seen.insert((pid.to_owned(), said)) {
            return Err(format!("this was not logged, or it is there twice: {line}").into());
        }
    }
    for pid in pids {
        for number in 0..LINES {
            if !seen.contains(&(pid.to_string(), &*format!("line {number}"))) {
                return Err(format!("line {number} of process {pid} is lost").into());
            }
        }
    }
    Ok(debug)
}

fn main() -> Result<(), Box<dyn Error>> {
    let is_worker = std::env::args().nth(1).is_some();
    if !is_worker {
        Store::remove(STORE)?;
    }
    let store = Store::open(STORE)?;
    let log = Log::open(&store, "log", LogOptions::new())?;
    if is_worker {
        return worker(&log);
    }

    let path = std::env::temp_dir().join(format!("hashmere-{STORE}-{}.log", std::process::id()));
    log.set_level(Some(Level::Info));
    let drainer = log.drain(Sink::file(LogFile::new(&path), Format::Text))?;
    let start = || Command::new(std::env::current_exe()?).arg("worker").spawn();
    let mut workers = (0..PROCESSES).map(|_| start()).collect::<Result<Vec<_>, _>>()?;
    for worker in &mut workers {
        if !worker.wait()?.success() {
            return Err("a worker has failed".into());
        }
    }
    // What was not written yet is written now.
    drainer.stop()?;

    let text = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    let debug = check(&text, &workers.iter().map(Child::id).collect::<Vec<_>>())?;
    println!("{} lines of {PROCESSES} processes, none lost, none twice", PROCESSES * LINES);
    println!("in the order of time, with levels and process ids");
    println!("the debug lines were not wanted: {debug}");
    drop((log, store));
    Store::remove(STORE)?;
    Ok(())
}
