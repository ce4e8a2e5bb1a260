//! Death at every store: of writers, of the process that recovers what they left, of drainers one after the other; and
//! drainers that are interrupted by writers at every access. What was logged comes out once and in order; what was lost
//! is reported.

use super::fixture::{client, lost, Actor, Fixture, Gone, Policy};
use hashmere_mem::traced::until_death;
use std::sync::{Arc, Mutex};

/// Lines of different lengths, more than a ring takes.
fn text(who: &str, n: u32) -> String {
    format!("{who}{n}{}", "x".repeat((n as usize * 13) % 31))
}

/// Claims a ring and logs; says which lines are in the log.
fn write(actor: &Actor, who: u64, policy: Policy, lines: u32, logged: &Mutex<Vec<String>>) {
    let mut cursor = actor.claim(who);
    for n in 0..lines {
        let text = text(&format!("w{who}."), n);
        if actor.log(&mut cursor, policy, &text) {
            logged.lock().unwrap().push(text);
        }
    }
    actor.core().release(&cursor);
}

/// What came out is what was logged, the oldest lines perhaps given up, and as many as are reported.
fn compare(came_out: &[String], logged: &[String], policy: Policy, tried: u32) -> Result<(), String> {
    let is_loss = |line: &&String| line.starts_with("lost");
    let lines: Vec<_> = came_out.iter().filter(|line| !is_loss(line)).cloned().collect();
    let lost: u32 = came_out.iter().filter_map(|line| lost(line)).map(|(count, _)| count).sum();
    let fits = match policy {
        Policy::Drop => lines == logged,
        Policy::Overwrite => logged.ends_with(&lines),
    };
    let total = lines.len() as u32 + lost;
    // Lines that the crashed writer had not come to.
    if !fits || total > tried || policy == Policy::Overwrite && total != logged.len() as u32 {
        return Err(format!("logged {logged:?}, came out {came_out:?}"));
    }
    Ok(())
}

#[test]
pub(super) fn a_writer_dies_at_every_store() {
    let mut deaths = 0;
    for policy in [Policy::Drop, Policy::Overwrite] {
        for lines in [3, 20] {
            let start = Fixture::new();
            let stores = {
                let fixture = start.image();
                let victim = fixture.actor();
                write(&victim, 0, policy, lines, &Mutex::default());
                victim.mem.stores()
            };
            for at in 0..=stores {
                let fixture = start.image();
                let victim = fixture.actor();
                let logged = Mutex::default();
                victim.mem.die_at(at);
                let lived = until_death(|| write(&victim, 0, policy, lines, &logged)).is_some();
                assert_eq!(lived, at == stores);
                recover_and_look(&fixture, &logged.into_inner().unwrap(), policy, lines)
                    .unwrap_or_else(|error| panic!("{policy:?}, {lines} lines, death at {at}: {error}"));
                deaths += 1;
            }
        }
    }
    println!("{deaths} deaths of writers");
}

/// The process that recovers the ring dies at each store as well; then another drains, and another thread uses the
/// ring.
fn recover_and_look(fixture: &Fixture, logged: &[String], policy: Policy, tried: u32) -> Result<(), String> {
    let gone = || Gone(vec![client(0), client(1)]);
    let halves = {
        let fixture = fixture.image();
        fixture.actor().core().recover_rings(client(1), &gone()).unwrap();
        fixture.core().halves()
    };
    let stores = {
        let second = fixture.image();
        let repairer = second.actor();
        repairer.core().recover_rings(client(1), &gone()).unwrap();
        repairer.mem.stores()
    };
    for at in 0..=stores {
        let fixture = fixture.image();
        let repairer = fixture.actor();
        repairer.mem.die_at(at);
        let _ = until_death(|| repairer.core().recover_rings(client(1), &gone()));
        fixture.actor().drain(2, &gone());
        compare(&fixture.lines(), logged, policy, tried)?;
        if fixture.core().halves() != halves || halves > 1 {
            return Err(format!("{} half lines, not {halves}", fixture.core().halves()));
        }
        let before = fixture.lines().len();
        let again = Mutex::default();
        for who in 3..7 {
            write(&fixture.actor(), who, Policy::Drop, 2, &again);
        }
        fixture.actor().drain(2, &gone());
        let more: Vec<_> = fixture.lines()[before..].iter().filter(|line| !line.starts_with("lost")).cloned().collect();
        if more != *again.lock().unwrap() {
            return Err(format!("a ring that was used again gave {more:?}"));
        }
    }
    Ok(())
}

/// Three writers, whose lines alternate, and some that were drained before.
fn with_lines() -> (Fixture, Vec<String>) {
    let fixture = Fixture::new();
    let logged = Mutex::default();
    write(&fixture.actor(), 5, Policy::Drop, 5, &logged);
    fixture.actor().drain(9, &Gone(Vec::new()));
    let actor = fixture.actor();
    let mut cursors: Vec<_> = (6..9).map(|who| actor.claim(who)).collect();
    for n in 0..12u32 {
        let text = text(&format!("w{}.", 6 + n % 3), n);
        assert!(actor.log(&mut cursors[n as usize % 3], Policy::Drop, &text));
        logged.lock().unwrap().push(text);
    }
    (fixture, logged.into_inner().unwrap())
}

#[test]
pub(super) fn drainers_die_at_every_store_one_after_the_other() {
    let (start, logged) = with_lines();
    let gone = || Gone(vec![client(0), client(1)]);
    let stores_of = |fixture: &Fixture, who: u64| {
        let fixture = fixture.image();
        let drainer = fixture.actor();
        drainer.drain(who, &gone());
        drainer.mem.stores()
    };
    let mut deaths = 0;
    for first in 0..=stores_of(&start, 0) {
        let fixture = start.image();
        let drainer = fixture.actor();
        drainer.mem.die_at(first);
        let _ = until_death(|| drainer.drain(0, &gone()));
        let step = if first % 5 == 0 { 1 } else { 7 };
        for second in (0..=stores_of(&fixture, 1)).step_by(step) {
            let fixture = fixture.image();
            let drainer = fixture.actor();
            drainer.mem.die_at(second);
            let _ = until_death(|| drainer.drain(1, &gone()));
            fixture.actor().drain(2, &gone());
            assert_eq!(fixture.lines(), logged, "deaths at {first} and {second}");
            deaths += 1;
        }
    }
    println!("{deaths} deaths of two drainers");
}

#[test]
fn a_writer_interrupts_a_drainer_at_every_access() {
    for policy in [Policy::Drop, Policy::Overwrite] {
        let start = Fixture::new();
        let logged = Arc::new(Mutex::default());
        let writer = start.actor();
        let mut cursor = writer.claim(1);
        let fill = move |actor: &Actor, cursor: &mut _, from: u32, logged: &Mutex<Vec<String>>| {
            for n in from..from + 9 {
                let text = text("w", n);
                if actor.log(cursor, policy, &text) {
                    logged.lock().unwrap().push(text);
                }
            }
        };
        fill(&writer, &mut cursor, 0, &logged);
        let accesses = {
            let fixture = start.image();
            let drainer = fixture.actor();
            drainer.drain(0, &Gone(Vec::new()));
            drainer.mem.accesses()
        };
        for at in 0..accesses {
            let fixture = start.image();
            let all = Arc::new(Mutex::new(logged.lock().unwrap().clone()));
            let (other, list) = (fixture.share(), all.clone());
            let drainer = fixture.actor();
            drainer.mem.interrupt(at, move || {
                // The same writer: its ring is found as it left it.
                let writer = other.actor();
                writer.core().recover_rings(client(8), &Gone(vec![client(1)])).unwrap();
                let mut cursor = writer.claim(1);
                fill(&writer, &mut cursor, 9, &list);
                fill(&writer, &mut cursor, 18, &list);
            });
            drainer.drain(0, &Gone(Vec::new()));
            fixture.actor().drain(0, &Gone(Vec::new()));
            let all = all.lock().unwrap().clone();
            let came_out = fixture.lines();
            let lines: Vec<_> = came_out.iter().filter(|line| !line.starts_with("lost")).collect();
            let in_order = lines.windows(2).all(|pair| number(pair[0]) < number(pair[1]));
            let lost: u32 = came_out.iter().filter_map(|line| lost(line)).map(|(count, _)| count).sum();
            assert!(in_order && lines.iter().all(|line| all.contains(line)), "{policy:?} at {at}: {came_out:?}");
            let told = lines.len() as u32 + lost;
            match policy {
                Policy::Drop => assert_eq!(lines.len(), all.len(), "at {at}: {came_out:?}"),
                Policy::Overwrite => assert_eq!(told as usize, all.len(), "at {at}: {came_out:?}"),
            }
        }
    }
}

fn number(line: &str) -> u32 {
    line[1..].trim_end_matches('x').parse().unwrap()
}
