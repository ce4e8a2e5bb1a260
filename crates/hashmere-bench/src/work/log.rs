//! The log: bursts of lines, as many lines as go, and four processes at once. What comes out is read back.

use super::{say, Call};
use crate::Outcome;
use hashmere::{Options, Store};
use hashmere_log::{Format, Level, Log, LogFile, LogOptions, OnFull, OnNoDrainer, Sink};
use rustix::thread::{sched_setaffinity, CpuSet};
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// After each burst, for both systems, so that nothing is left when the next begins.
const PAUSE: Duration = Duration::from_millis(5);
const PROCESSES: u32 = 4;

/// The tests of the log.
pub fn run(call: &Call) -> Outcome {
    match call.test.as_str() {
        "log" => bursts(call),
        "log-four" => four(call),
        "log-one-of-four" => one_of_four(call),
        other => Err(format!("no such test of the log: {other}").into()),
    }
}

fn open(folder: &Path) -> Outcome<(Store, Log)> {
    let store = Options::new().open(folder.join("log.mere"))?;
    // Room for 8,192 lines, as spdlog has.
    let options = LogOptions::new()
        .rings(8)
        .ring_bytes(1 << 19)
        .on_no_drainer(OnNoDrainer::Keep)
        .on_full(OnFull::Block(Duration::from_secs(60)));
    let log = Log::open(&store, "log", options)?;
    Ok((store, log))
}

fn pin(core: usize) -> Outcome {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The lines of a file: time, process, text.
struct Reader(Lines<BufReader<File>>);

impl Reader {
    fn next(&mut self) -> Outcome<Option<(String, String)>> {
        let Some(line) = self.0.next().transpose()? else { return Ok(None) };
        let (head, text) = line.split_once(": ").ok_or("half a line")?;
        Ok(Some((head.split(' ').next().unwrap_or_default().to_owned(), text.to_owned())))
    }

    fn must_be(&mut self, text: &str) -> Outcome {
        match self.next()? {
            Some((_, found)) if found == text => Ok(()),
            other => Err(format!("not the line {text}: {other:?}").into()),
        }
    }
}

fn bursts(call: &Call) -> Outcome {
    let (_store, log) = open(&call.folder)?;
    let path = call.folder.join("log");
    let drainer = log.drain(Sink::file(LogFile::new(&path), Format::Text))?;
    pin(0)?;
    let numbers = || 10_000_000..10_000_000 + call.records;
    let texts: Vec<String> = numbers().map(|n| format!("request of user {n} is done")).collect();
    let (mut plain, mut formatted) = (Vec::new(), Vec::new());
    let per_line = |start: Instant, lines: u64| start.elapsed().as_nanos() as f64 / lines as f64;
    for _ in 0..call.operations {
        let start = Instant::now();
        for text in &texts {
            log.line(Level::Info, text)?;
        }
        plain.push(per_line(start, call.records.into()));
        std::thread::sleep(PAUSE);
        let start = Instant::now();
        for n in numbers() {
            log.format(Level::Info, format_args!("request of user {n} is done"))?;
        }
        formatted.push(per_line(start, call.records.into()));
        std::thread::sleep(PAUSE);
    }
    let many = call.operations * u64::from(call.records);
    let start = Instant::now();
    for n in 0..many {
        log.format(Level::Info, format_args!("line {n}"))?;
    }
    drainer.stop()?;
    let sustained = per_line(start, many);
    let mut reader = Reader(BufReader::new(File::open(&path)?).lines());
    for _ in 0..2 * call.operations {
        texts.iter().try_for_each(|text| reader.must_be(text))?;
    }
    let mut text = String::new();
    for n in 0..many {
        text.clear();
        write!(text, "line {n}")?;
        reader.must_be(&text)?;
    }
    if reader.next()?.is_some() {
        return Err("too many lines".into());
    }
    say("line_ns", median(plain));
    say("format_ns", median(formatted));
    say("sustained_ns", sustained);
    Ok(())
}

/// Four processes log as many lines each; their order is looked at, and that none is missing.
fn four(call: &Call) -> Outcome {
    let (_store, log) = open(&call.folder)?;
    let path = call.folder.join("log");
    let drainer = log.drain(Sink::file(LogFile::new(&path), Format::Text))?;
    let each = call.operations * u64::from(call.records) / u64::from(PROCESSES);
    let start = |number: u32| {
        let arguments = ["work", "hashmere", "log-one-of-four", &number.to_string(), &each.to_string()];
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).arg(&call.folder).arg("0").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn()
    };
    let mut children = (0..PROCESSES).map(start).collect::<Result<Vec<_>, _>>()?;
    for child in &mut children {
        let mut ready = [0];
        child.stdout.as_mut().ok_or("no output")?.read_exact(&mut ready)?;
    }
    let begin = Instant::now();
    children.iter_mut().for_each(|child| drop(child.stdin.take()));
    for mut child in children {
        if !child.wait()?.success() {
            return Err("one of four failed".into());
        }
    }
    drainer.stop()?;
    let four_ns = begin.elapsed().as_nanos() as f64 / (each * u64::from(PROCESSES)) as f64;
    let mut reader = Reader(BufReader::new(File::open(&path)?).lines());
    let (mut counts, mut last, mut disorder) = ([0u64; PROCESSES as usize], String::new(), 0u64);
    while let Some((time, text)) = reader.next()? {
        let (number, n) = text.split_once(' ').ok_or("not one of our lines")?;
        let count = counts.get_mut(number.parse::<usize>()?).ok_or("not one of our processes")?;
        if n.parse::<u64>()? != *count {
            return Err(format!("line {count} of process {number} is missing, {n} comes").into());
        }
        *count += 1;
        disorder += u64::from(time < last);
        last = time;
    }
    if counts != [each; PROCESSES as usize] {
        return Err(format!("lines are missing: {counts:?} of {each}").into());
    }
    say("four_ns", four_ns);
    say("disorder", disorder as f64);
    Ok(())
}

fn one_of_four(call: &Call) -> Outcome {
    let (_store, log) = open(&call.folder)?;
    println!("r");
    // Until all processes are there.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    for n in 0..call.operations {
        log.format(Level::Info, format_args!("{} {n}", call.records))?;
    }
    Ok(())
}
