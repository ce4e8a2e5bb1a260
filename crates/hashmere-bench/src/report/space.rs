//! The empty store, the opening of a full one, and what deleting gives back.

use super::bars::Bars;
use super::figures::{number, ratio, Figures};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::HASHMERE;
use crate::Outcome;

const OPENS: usize = 20;

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let records = plan.size(10_000_000, 100_000);
    let job = |test| Job { system: &HASHMERE, test, records, operations: 0 };
    let mut figures = jobs.interleaved(&[job("empty"), job("shrink")])?;
    opens(&job, jobs, &mut figures)?;

    jobs.keep("space", &figures);
    let median = |metric| figures.median(&HASHMERE, metric);
    let kib = |metric| number(median(metric).map(|bytes| bytes / 1024.0));
    let mib = |metric| number(median(metric).map(|bytes| bytes / 1048576.0));
    println!(
        "\nEmpty store  allocated {} KiB, apparent {} KiB; with one record {} KiB allocated",
        kib("empty_allocated"),
        kib("empty_apparent"),
        kib("one_record_allocated")
    );
    println!(
        "Open of {records} records, {OPENS} fresh processes: median {} us, range {}; the first get after it {} us",
        number(median("open_us")),
        figures.range(&HASHMERE, "open_us"),
        number(median("first_get_us"))
    );
    println!(
        "Shrink  full {} MiB; nine tenths deleted, one by one at {} ns each: {} MiB; after compact ({} ms): {} MiB",
        mib("full_bytes"),
        number(median("delete_ns")),
        mib("deleted_bytes"),
        number(median("compact_ms")),
        mib("maintained_bytes")
    );

    let allocated = median("empty_allocated").map(|bytes| bytes / 1024.0);
    bars.at_most("Empty store, allocated", 128.0, " KiB", allocated);
    bars.at_most("Empty store, apparent size", 2.0, " MiB", median("empty_apparent").map(|bytes| bytes / 1048576.0));
    bars.below("Open of an existing store", 2.0, " ms", median("open_us").map(|us| us / 1e3));
    let left = ratio(median("deleted_bytes"), median("full_bytes")).map(|share| share * 100.0);
    bars.below("File after deleting 90 % (half is \"most of its memory\")", 50.0, " %", left);
    Ok(())
}

fn opens<'a>(job: &impl Fn(&'static str) -> Job<'a>, jobs: &mut Jobs, figures: &mut Figures) -> Outcome {
    let folder = jobs.new_folder()?;
    jobs.one(&job("fill"), &folder, 1, figures);
    for i in 0..OPENS {
        jobs.one(&job("open"), &folder, i as u64, figures);
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
