//! W1: hot keys. Draw one, set it to its own text, get it and compare; also only setting, only getting.

use super::{say, Call};
use crate::tables::{must_hold, Table};
use crate::workload::{Random, Text};
use crate::Outcome;
use std::time::Instant;

/// Runs it.
pub fn run<T: Table>(call: &Call, table: &mut T) -> Outcome {
    let texts: Vec<Text> = (0..call.records).map(Text::decimal).collect();
    for text in &texts {
        table.set(text.bytes(), text.bytes())?;
    }
    for text in &texts {
        must_hold(table, text.bytes(), text.bytes())?;
    }
    let pair = timed(call, &texts, |text| {
        table.set(text, text)?;
        must_hold(table, text, text)
    })?;
    say("pair_ns", pair / 2.0);
    say("set_ns", timed(call, &texts, |text| table.set(text, text))?);
    say("get_ns", timed(call, &texts, |text| must_hold(table, text, text))?);
    Ok(())
}

fn timed(call: &Call, texts: &[Text], mut one: impl FnMut(&[u8]) -> Outcome) -> Outcome<f64> {
    let mut random = Random(call.seed);
    let start = Instant::now();
    for _ in 0..call.operations {
        one(texts[random.below(texts.len() as u64) as usize].bytes())?;
    }
    Ok(start.elapsed().as_nanos() as f64 / call.operations as f64)
}
