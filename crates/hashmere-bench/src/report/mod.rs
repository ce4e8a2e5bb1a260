//! The report: every system side by side, in processes of their own, in interleaved order; then the bars.

mod bars;
mod figures;
mod growth;
mod hot;
mod jobs;
mod log;
mod million;
mod plan;
mod queue;
mod scale;
mod space;
mod systems;

use crate::Outcome;
use bars::Bars;
use jobs::Jobs;
use plan::Plan;

/// Runs `report ...`. False when a system failed or, if that was asked for, a bar is missed.
pub fn main(arguments: &[String]) -> Outcome<bool> {
    let plan = Plan::parse(arguments)?;
    print!("Hashmere benchmark, {}\n{}", plan.describe(), crate::machine::describe());
    let mut jobs = Jobs::new(&plan);
    let mut bars = Bars::new(plan.quick);
    type Group = fn(&Plan, &mut Jobs, &mut Bars) -> Outcome;
    let groups: [(&str, Group); 7] = [
        ("w1", hot::report),
        ("w2", million::report),
        ("scale", scale::report),
        ("growth", growth::report),
        ("empty", space::report),
        ("queue", queue::report),
        ("log", log::report),
    ];
    for (name, report) in groups {
        if plan.wants(name) {
            report(&plan, &mut jobs, &mut bars)?;
        }
    }
    println!(
        "\nload after {} (above 1 or 2 other programs were at work, and the figures are worth little)",
        crate::machine::load()
    );
    let all_met = bars.print();
    for failure in jobs.failures() {
        println!("FAILED {failure}");
    }
    Ok(jobs.failures().is_empty() && (all_met || !plan.strict))
}
