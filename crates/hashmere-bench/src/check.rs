//! Holds the ratios of a run against those of another: whether Hashmere has become slower beside its peers.

use crate::report::systems;
use crate::results::{median, Results};
use crate::Outcome;

const OURS: &str = systems::HASHMERE.id;
/// A ratio may be this much worse, whatever the spread of the runs says.
const NOISE: f64 = 0.15;
/// What does not depend on the hour may be this much worse: bytes of a record.
const EXACT: f64 = 0.02;
/// Points of a hit ratio, in percent.
const POINTS: f64 = 1.0;

/// Runs `check BEFORE NOW`. False if something has become worse.
pub fn main(arguments: &[String]) -> Outcome<bool> {
    let [before, now] = arguments else { return Err(crate::USAGE.into()) };
    let findings = compare(&Results::read(before.as_ref())?, &Results::read(now.as_ref())?);
    if findings.is_empty() {
        return Err("the two have no group in common: nothing was compared".into());
    }
    for finding in &findings {
        println!("{}", finding.text);
    }
    let worse = findings.iter().filter(|finding| finding.worse).count();
    println!("{} compared, {worse} worse", findings.len());
    Ok(worse == 0)
}

/// One figure beside that of before.
struct Finding {
    text: String,
    worse: bool,
}

fn compare(before: &Results, now: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (group, systems) in &now.groups {
        let Some(ours) = systems.get(OURS) else { continue };
        for metric in ours.keys() {
            let what = |of: &str| format!("{group} {metric}{of}");
            let figure = |results: &Results| results.median(group, OURS, metric);
            let (Some(was), Some(is)) = (figure(before), figure(now)) else { continue };
            if metric.starts_with("bytes_per_record") {
                findings.push(finding(what(""), was, is, is > was * (1.0 + EXACT), EXACT));
            } else if metric.starts_with("hits@") {
                findings.push(finding(what(""), was, is, is < was - POINTS, POINTS / 100.0));
            } else if metric.split('@').next().is_some_and(|name| name.ends_with("_ns")) {
                for peer in systems.keys().filter(|system| *system != OURS) {
                    let ratio = |results: &Results| {
                        Some(results.median(group, OURS, metric)? / results.median(group, peer, metric)?)
                    };
                    let (Some(was), Some(is)) = (ratio(before), ratio(now)) else { continue };
                    let spread = [before, now]
                        .into_iter()
                        .flat_map(|results| [OURS, peer].map(|system| spread(&results.sorted(group, system, metric))))
                        .fold(NOISE, f64::max);
                    let of = format!(" / {}", systems::label(peer));
                    findings.push(finding(what(&of), was, is, is > was * (1.0 + spread), spread));
                }
            }
        }
    }
    findings
}

fn finding(what: String, was: f64, is: f64, worse: bool, noise: f64) -> Finding {
    let verdict = if worse { "WORSE" } else { "ok" };
    Finding { text: format!("{verdict:<6}{what:<72} {was:>9.3} -> {is:>9.3}  (noise {:.0} %)", noise * 100.0), worse }
}

/// How far the runs of one figure lie apart.
fn spread(sorted: &[f64]) -> f64 {
    match (sorted.first(), sorted.last(), median(sorted)) {
        (Some(first), Some(last), Some(middle)) if middle > 0.0 => (last - first) / middle,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::SCHEMA;

    fn results(ours: &[f64], peer: &[f64], bytes: f64, hits: f64) -> Results {
        let mut results = Results {
            schema: SCHEMA,
            command: String::new(),
            date: String::new(),
            commit: String::new(),
            machine: String::new(),
            costs: String::new(),
            load: Default::default(),
            runs: ours.len(),
            quick: false,
            versions: Default::default(),
            groups: Default::default(),
            bars: Vec::new(),
        };
        let mut add = |system: &str, metric: &str, figures: &[f64]| {
            let systems = results.groups.entry("w2".into()).or_default();
            systems.entry(system.into()).or_default().insert(metric.into(), figures.to_vec());
        };
        add(OURS, "get_ns", ours);
        add(systems::STASH.id, "get_ns", peer);
        add(OURS, "bytes_per_record", &[bytes]);
        add(OURS, "hits@0.99@64", &[hits]);
        results
    }

    #[test]
    fn what_became_worse_is_found_and_a_slow_hour_is_not() {
        let before = results(&[100.0, 101.0, 102.0], &[200.0, 201.0, 202.0], 38.0, 85.0);
        let worse = |now: &Results| compare(&before, now).iter().filter(|finding| finding.worse).count();
        assert_eq!(compare(&before, &before).len(), 3);
        assert_eq!(worse(&before), 0);
        // Everything takes twice as long.
        assert_eq!(worse(&results(&[200.0, 201.0, 203.0], &[400.0, 402.0, 405.0], 38.0, 85.0)), 0);
        // Only we do; the runs lie so far apart that it means nothing; we need more space; we answer less.
        assert_eq!(worse(&results(&[130.0, 131.0, 132.0], &[200.0, 201.0, 202.0], 38.0, 85.0)), 1);
        assert_eq!(worse(&results(&[90.0, 130.0, 180.0], &[200.0, 201.0, 202.0], 38.0, 85.0)), 0);
        assert_eq!(worse(&results(&[100.0, 101.0, 102.0], &[200.0, 201.0, 202.0], 39.0, 85.0)), 1);
        assert_eq!(worse(&results(&[100.0, 101.0, 102.0], &[200.0, 201.0, 202.0], 38.0, 83.5)), 1);
    }
}
