//! The report: every system side by side, in processes of their own, in interleaved order; then the bars.

mod bars;
mod cache;
pub mod figures;
mod growth;
mod hot;
mod jobs;
mod log;
mod million;
mod plan;
mod queue;
mod scale;
mod sizes;
mod space;
pub mod systems;
mod together;
mod transactions;

use crate::results::{Results, SCHEMA};
use crate::{machine, Outcome};
use bars::Bars;
use jobs::Jobs;
use plan::Plan;

/// Runs `report ...`. False when a system failed or, if that was asked for, a bar is missed.
pub fn main(arguments: &[String]) -> Outcome<bool> {
    let plan = Plan::parse(arguments)?;
    let (load, machine) = (machine::load(), machine::describe());
    print!("Hashmere benchmark, {}\n{machine}", plan.describe());
    let mut jobs = Jobs::new(&plan);
    let mut bars = Bars::new(plan.quick);
    type Group = fn(&Plan, &mut Jobs, &mut Bars) -> Outcome;
    let groups: [(&str, Group); plan::GROUPS.len()] = [
        ("w1", hot::report),
        ("w2", million::report),
        ("sizes", sizes::report),
        ("scale", scale::report),
        ("growth", growth::report),
        ("empty", space::report),
        ("cache", cache::report),
        ("queue", queue::report),
        ("log", log::report),
        ("transactions", transactions::report),
    ];
    for (name, report) in groups {
        if plan.wants(name) {
            report(&plan, &mut jobs, &mut bars)?;
        }
    }
    println!(
        "\nload after {} (above 1 or 2 other programs were at work, and the figures are worth little)",
        machine::load()
    );
    let all_met = bars.print();
    if let Some(path) = &plan.json {
        let (machine, costs) = machine.split_once('\n').unwrap_or((&machine, ""));
        let results = Results {
            schema: SCHEMA,
            command: plan.command.clone(),
            date: machine::date()?,
            commit: machine::commit()?,
            machine: machine.split(", load").next().unwrap_or_default().to_string(),
            costs: costs.trim_start_matches("today:").trim().to_string(),
            load: (load, machine::load()),
            runs: plan.runs,
            quick: plan.quick,
            versions: machine::versions(),
            groups: jobs.take_groups(),
            bars: bars.into_all(),
        };
        results.write(path)?;
    }
    for failure in jobs.failures() {
        println!("FAILED {failure}");
    }
    Ok(jobs.failures().is_empty() && (all_met || !plan.strict))
}
