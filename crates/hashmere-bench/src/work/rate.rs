//! Operations in a fixed time, for several processes at once: each says `ready` when it has warmed up, reads the
//! common start time (nanoseconds since 1970) from its standard input, spins until then, and works for as long as
//! its arguments say. So all of them work during the whole of the measurement.

use super::{say, Call};
use crate::tables::{must_hold, Table};
use crate::workload::{eight_digits, shuffled, Random};
use crate::Outcome;
use std::io::{stdin, stdout, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One operation in this many is a set in the mixed test.
const SET_EVERY: u64 = 50;

/// Loads the records, in shuffled order.
pub fn fill<T: Table>(call: &Call, table: &mut T) -> Outcome {
    for n in shuffled(call.records, 1) {
        let text = eight_digits(n);
        table.set(&text, &text)?;
    }
    Ok(())
}

/// Runs it: `operations` is the time in milliseconds.
pub fn run<T: Table>(call: &Call, table: &mut T) -> Outcome {
    for n in 0..call.records {
        let text = eight_digits(n);
        must_hold(table, &text, &text)?;
    }
    let length = Duration::from_millis(call.operations);
    let mixed = call.test == "rate-mixed";
    wait_for_start()?;
    let mut random = Random(call.seed);
    let mut operations = 0;
    let start = Instant::now();
    let elapsed = loop {
        for _ in 0..256 {
            let text = eight_digits(random.below(call.records.into()) as u32);
            if mixed && operations % SET_EVERY == 0 {
                table.set(&text, &text)?;
            } else {
                must_hold(table, &text, &text)?;
            }
            operations += 1;
        }
        let elapsed = start.elapsed();
        if elapsed >= length {
            break elapsed;
        }
    };
    say("ops_per_s", operations as f64 / elapsed.as_secs_f64());
    Ok(())
}

/// Says `ready`, and waits for the moment that all begin at.
pub fn wait_for_start() -> Outcome {
    println!("ready");
    stdout().flush()?;
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    let start = UNIX_EPOCH + Duration::from_nanos(line.trim().parse()?);
    while SystemTime::now() < start {
        std::hint::spin_loop();
    }
    Ok(())
}
