//! The server's benchmark (W5): a client of one thread that speaks the text protocol, compares every byte of every
//! answer, and reads the server's CPU time from the kernel's accounting. `bench/serve` starts the servers and pins
//! everything.

mod bars;
mod connection;
mod jobs;
mod local;

use crate::workload::{durations, Random};
use crate::Outcome;
use connection::Connection;
use hdrhistogram::Histogram;
use jobs::Job;
use mio::{Events, Poll, Token};
use std::time::{Duration, Instant};

/// Keys of all jobs but the last.
pub const KEYS: u64 = 100_000;
/// The kernel counts CPU time in these.
const TICKS_A_SECOND: u64 = 100;

/// Runs `serve PID [redis:]ADDRESS|PATH SECONDS [JOB...]` and prints `job requests/s cpu-ns/request p50-us p99-us`
/// lines; `serve local STORE ADDRESS` compares a local process with a client; `serve bars FILE` judges the lines of
/// several runs.
pub fn main(arguments: &[String]) -> Outcome {
    match arguments {
        [what, store, address] if what == "local" => return local::run(store, address),
        [what, file] if what == "bars" => return bars::judge(file),
        _ => {}
    }
    let [pid, address, seconds, wanted @ ..] = arguments else { return Err(crate::USAGE.into()) };
    let time = Duration::from_secs_f64(seconds.parse()?);
    let mut random = Random(11);
    load(address)?;
    for job in jobs::all() {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == job.name) {
            continue;
        }
        // Once to warm up.
        if job.answers().is_none() {
            run(&job, address, time / 4, &mut random)?;
        }
        let before = cpu(pid)?;
        let measured = run(&job, address, time, &mut random)?;
        let cpu = cpu(pid)? - before;
        let requests = measured.requests.max(1);
        println!(
            "{:<8} {:>10.0} requests/s {:>7.0} ns CPU a request   p50 {:>6.0} us   p99 {:>6.0} us",
            job.name,
            measured.requests as f64 / measured.time.as_secs_f64(),
            cpu as f64 * 1e9 / TICKS_A_SECOND as f64 / requests as f64,
            measured.times.value_at_quantile(0.5) as f64 / 1e3,
            measured.times.value_at_quantile(0.99) as f64 / 1e3,
        );
    }
    Ok(())
}

/// User and system time of a process, in ticks.
fn cpu(pid: &str) -> Outcome<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let field = |number: usize| fields.get(number).ok_or("no such field").map(|text| text.parse::<u64>());
    Ok(field(11)?? + field(12)??)
}

fn load(address: &str) -> Outcome {
    let mut connection = Connection::open(address)?;
    for start in (0..KEYS).step_by(100) {
        connection.begin();
        for key in start..start + 100 {
            connection.set(key);
        }
        connection.finish_blocking()?;
    }
    Ok(())
}

struct Measured {
    requests: u64,
    time: Duration,
    times: Histogram<u64>,
}

fn run(job: &Job, address: &str, time: Duration, random: &mut Random) -> Outcome<Measured> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(256);
    let mut connections = Vec::new();
    for token in 0..job.connections {
        let mut connection = Connection::open(address)?;
        connection.register(poll.registry(), Token(token))?;
        connections.push(connection);
    }
    let mut answered = vec![0u64; connections.len()];
    let start = Instant::now();
    let mut measured = Measured { requests: 0, time, times: durations()? };
    for (number, connection) in connections.iter_mut().enumerate() {
        job.ask(connection, random, number, 0)?;
    }
    let mut asking = connections.len();
    while asking > 0 {
        poll.poll(&mut events, Some(Duration::from_secs(10)))?;
        if events.is_empty() {
            return Err("the server does not answer".into());
        }
        for event in &events {
            let Token(number) = event.token();
            let (Some(connection), Some(answered)) = (connections.get_mut(number), answered.get_mut(number)) else {
                continue;
            };
            while connection.receive()? {
                measured.times.saturating_record(connection.asked.elapsed().as_nanos() as u64);
                measured.requests += job.requests();
                *answered += 1;
                let over = match job.answers() {
                    Some(answers) => *answered == answers,
                    None => start.elapsed() >= time,
                };
                if over {
                    asking -= 1;
                    break;
                }
                job.ask(connection, random, number, *answered)?;
            }
        }
    }
    measured.time = start.elapsed();
    Ok(measured)
}
