//! Stores that come late: what the compiler or the processor may make of the order in which the source has them.
//!
//! A relaxed store need not be there when a later one is, up to the next store that releases; and a relaxed store
//! behind one that releases may be there before it. Tried is one late store at a time: every relaxed and every
//! releasing store of the operation, missing while the relaxed ones behind it are there, up to the next that releases,
//! the next of the same word, or the next fence. Nothing passes a read-modify-write or a system call. The same, for
//! some deaths, of the stores of the repair.

use super::crash::{attempt, bulks, sample, Counts, Effort, Frame, Scenario, State};
use super::fixture::Fixture;
use super::probe::{until_death, Kind, Stored};
use hashmere_mem::Mem;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::Ordering;

/// In a longer row between two stores that release, each is only tried late past the next one, and past all.
const SHORT: usize = if cfg!(miri) { 2 } else { 12 };

/// How many stores may be there (from the first, the late one aside) while store `late` is missing: the first such
/// number and the last.
fn reach(trace: &[Stored], late: usize) -> RangeInclusive<usize> {
    let store = trace[late];
    let passes = |next: &&Stored| next.kind == Kind::Relaxed && next.off != store.off && next.fences == store.fences;
    let passed = if store.kind == Kind::Full { 0 } else { trace[late + 1..].iter().take_while(passes).count() };
    late + 2..=late + 1 + passed
}

/// The late stores to try: by how many are there, which are missing.
fn cases(trace: &[Stored], short: usize) -> BTreeMap<usize, Vec<usize>> {
    let bulks = bulks(trace);
    let mut cases: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for late in 0..trace.len() {
        // Of bytes that are copied or zeroed in a row the first and the last.
        let inside = |bulk: &Range<u64>| bulk.start < late as u64 && (late as u64) < bulk.end - 1;
        let reach = reach(trace, late);
        let (first, last) = (*reach.start(), *reach.end());
        if last < first || bulks.iter().any(inside) {
            continue;
        }
        if last - first < short {
            reach.for_each(|there| cases.entry(there).or_default().push(late));
        } else {
            cases.entry(first).or_default().push(late);
            cases.entry(last).or_default().push(late);
        }
    }
    cases
}

/// Takes a store back that others have passed.
fn undo(fixture: &Fixture, store: &Stored) {
    fixture.heap.store(store.off, store.before, Ordering::Relaxed);
}

impl Scenario {
    /// Stores of the operation.
    pub(super) fn come_late(&self, frame: &Frame, effort: Effort, counts: &mut Counts) {
        let cases = cases(&frame.trace, if effort.step == 1 { SHORT } else { 1 });
        let (first, step) = sample(cases.len() as u64);
        for (there, late) in cases.into_iter().skip(first as usize).step_by(step as usize) {
            if counts.is_enough() {
                return;
            }
            let fixture = Fixture::new(self.geometry);
            let mut cast = (self.setup)(&fixture);
            cast.victim.probe.die_after(there as u64);
            let _ = until_death(|| (self.act)(&mut cast.victim));
            cast.victim.kill();
            for late in late {
                let image = fixture.image();
                undo(&image, &frame.trace[late]);
                counts.late += 1;
                let outcome = attempt(|| self.is_survived(&image, frame));
                counts.add(format!("death {there}, store {late} late"), outcome);
            }
        }
    }

    fn is_survived(&self, fixture: &Fixture, frame: &Frame) -> Result<(), String> {
        let seen = self.look(fixture, frame)?;
        let survivor = fixture.client();
        survivor.sweep().map_err(|e| format!("sweep: {e}"))?;
        self.is_repaired(fixture, &survivor, &seen, frame)?;
        self.work(fixture, &survivor, seen).map(drop)
    }

    /// Stores of a repair, whose owner dies as well. `fixture` is what the first death left.
    pub(super) fn come_late_in_repair(
        &self,
        fixture: &Fixture,
        (trace, seen): (&[Stored], &State),
        frame: &Frame,
        most: u64,
        log: &mut Vec<(u64, Result<(), String>)>,
    ) {
        let cases: Vec<(usize, usize)> =
            cases(trace, 1).into_iter().flat_map(|(there, late)| late.into_iter().map(move |l| (there, l))).collect();
        for (there, late) in cases.iter().step_by(cases.len().div_ceil(most as usize).max(1)) {
            let outcome = attempt(|| {
                let image = fixture.image();
                let repairer = image.client();
                repairer.probe.die_after(*there as u64);
                let _ = until_death(|| repairer.sweep());
                repairer.kill();
                undo(&image, &trace[*late]);
                let survivor = image.client();
                survivor.sweep().map_err(|e| format!("sweep after a late store of a repair: {e}"))?;
                self.is_repaired(&image, &survivor, seen, frame)
            });
            log.push((*there as u64, outcome));
        }
    }
}
