//! Death at every store: each operation is cut off before each of its stores in turn, beside another endpoint that acts
//! before any of its accesses, and so is the clearing up after it. Afterwards every element is in exactly one queue,
//! the queues work, and what was not touched keeps its order. Of what is many a sample is tried, unless
//! `HASHMERE_WHOLE` is set: `make test-whole`.

use super::fixture::{client, Actor, Fixture, Gone};
use crate::fault;
use crate::layout::Kind;
use crate::ring::EndpointLayout;
use crate::transfer::{pop_many, pop_one, push_many, push_one, Push};
use hashmere_mem::scenarios;
use hashmere_mem::traced::{until_death, Traced};
use hashmere_mem::Mem;

const ELEMENTS: u64 = 12;
const KINDS: [Kind; 3] = [Kind::Mpmc, Kind::Mpsc, Kind::Spsc];

/// Moves elements about. It is deterministic.
type Script = fn(&Actor<Traced>, &EndpointLayout);

fn move_one<M: Mem>(actor: &Actor<M>, endpoint: &EndpointLayout, from: u64, to: u64) {
    if let Some(element) = pop_one(&actor.mem, &actor.ring(from), endpoint, 3) {
        if push_one(&actor.mem, &actor.ring(to), endpoint, 3, element) == Push::Full {
            actor.core().give_back(endpoint, 3);
        }
    }
}

fn move_many<M: Mem>(actor: &Actor<M>, endpoint: &EndpointLayout, from: u64, to: u64, n: u64) {
    pop_many(&actor.mem, &actor.ring(from), endpoint, n);
    if push_many(&actor.mem, &actor.ring(to), endpoint, n) == Push::Full {
        actor.core().return_batch(endpoint);
    }
}

fn singles(actor: &Actor<Traced>, endpoint: &EndpointLayout) {
    move_one(actor, endpoint, 0, 1);
    move_one(actor, endpoint, 1, 2);
    move_one(actor, endpoint, 2, 0);
}

fn batches(actor: &Actor<Traced>, endpoint: &EndpointLayout) {
    move_many(actor, endpoint, 0, 1, 3);
    move_many(actor, endpoint, 1, 2, 2);
    move_many(actor, endpoint, 2, 0, 5);
}

fn keeping(actor: &Actor<Traced>, endpoint: &EndpointLayout) {
    pop_one(&actor.mem, &actor.ring(0), endpoint, 0);
    pop_many(&actor.mem, &actor.ring(1), endpoint, 3);
    push_many(&actor.mem, &actor.ring(2), endpoint, 1);
    pop_one(&actor.mem, &actor.ring(2), endpoint, 63);
    pop_many(&actor.mem, &actor.ring(0), endpoint, 2);
}

/// A fixture in which the queues were used for more than one round, with elements everywhere.
fn used(kind: Kind, bound: u64, on_death: u64) -> Fixture {
    let fixture = Fixture::new(ELEMENTS, kind, bound, on_death);
    let actor = fixture.actor();
    let endpoint = actor.endpoint(9);
    actor.take_roles(&endpoint);
    for _ in 0..20 {
        move_one(&actor, &endpoint, 0, 1);
        move_one(&actor, &endpoint, 1, 2);
        move_one(&actor, &endpoint, 2, 0);
    }
    (0..4).for_each(|_| move_one(&actor, &endpoint, 0, 1));
    (0..2).for_each(|_| move_one(&actor, &endpoint, 1, 2));
    actor.core().release_endpoint(endpoint.who - 1);
    fixture.census().unwrap();
    fixture
}

/// Recovers and looks.
fn recover_and_look(fixture: &Fixture, gone: &Gone, by: u64) -> Result<Vec<Vec<u32>>, String> {
    let survivor = fixture.actor();
    survivor.core().recover(client(by), gone).unwrap();
    let census = fixture.census()?;
    // Everything can be moved round.
    let endpoint = survivor.endpoint(by);
    survivor.take_roles(&endpoint);
    for (from, to) in [(0, 3), (1, 3), (2, 3), (3, 0)] {
        while pop_many(&survivor.mem, &survivor.ring(from), &endpoint, 5) > 0 {
            assert_ne!(push_many(&survivor.mem, &survivor.ring(to), &endpoint, 5), Push::Full);
        }
    }
    survivor.core().release_endpoint(endpoint.who - 1);
    fixture.census().map(|_| census)
}

/// Those of `before` that are in the same queue still, in their order, come before all others.
fn keeps_order(before: &[Vec<u32>], after: &[Vec<u32>]) -> Result<(), String> {
    for (id, (before, after)) in before.iter().zip(after).enumerate() {
        let mut last = None;
        for place in after.iter().filter_map(|element| before.iter().position(|b| b == element)) {
            let returned = place < before.len().min(8);
            if last > Some(place) && !returned {
                return Err(format!("queue {id} was {before:?} and is {after:?}"));
            }
            last = last.max(Some(place));
        }
    }
    Ok(())
}

/// A sample has about this many deaths of the one who clears up behind each death.
const REPAIRS: u64 = if cfg!(miri) { 3 } else { 6 };
/// And of about this many interruptions everything.
const INTERRUPTIONS: u64 = if cfg!(miri) { 2 } else { 12 };

/// The first of `n` cases that are tried, and every how manieth from there on. A seeded fault is hunted everywhere.
fn sample(n: u64, most: u64) -> (u64, u64) {
    if fault::switch::on().is_some() {
        return (0, 1);
    }
    scenarios::sample(n, most)
}

struct Counts {
    deaths: u64,
    repairs: u64,
}

/// Every death in a script, every death of the one who clears up.
fn enumerate(start: &Fixture, script: Script, name: &str, counts: &mut Counts) {
    let stores = {
        let fixture = start.image();
        let victim = fixture.actor();
        let endpoint = victim.endpoint(0);
        victim.take_roles(&endpoint);
        let before = victim.mem.stores();
        script(&victim, &endpoint);
        victim.mem.stores() - before
    };
    let before = start.census().unwrap();
    for at in 0..=stores {
        let fixture = start.image();
        let victim = fixture.actor();
        let endpoint = victim.endpoint(0);
        victim.take_roles(&endpoint);
        victim.mem.die_at(victim.mem.stores() + at);
        assert_eq!(until_death(|| script(&victim, &endpoint)).is_some(), at == stores, "{name}");
        counts.deaths += 1;
        let gone = Gone(vec![client(0)]);
        let after = recover_and_look(&fixture.image(), &gone, 1).unwrap_or_else(|e| panic!("{name}, death {at}: {e}"));
        keeps_order(&before, &after).unwrap_or_else(|e| panic!("{name}, death {at}: {e}"));
        let repairs = {
            let repairer = fixture.image().actor();
            repairer.core().recover(client(1), &gone).unwrap();
            repairer.mem.stores()
        };
        let (first, step) = sample(repairs, REPAIRS);
        for second in (first..repairs).step_by(step as usize) {
            let image = fixture.image();
            let repairer = image.actor();
            repairer.mem.die_at(second);
            let _ = until_death(|| repairer.core().recover(client(1), &gone));
            counts.repairs += 1;
            let gone = Gone(vec![client(0), client(1)]);
            recover_and_look(&image, &gone, 2)
                .unwrap_or_else(|e| panic!("{name}, death {at}, and of the repairer {second}: {e}"));
        }
    }
}

const SCRIPTS: [(&str, Script); 3] = [("singles", singles), ("batches", batches), ("keeping", keeping)];

#[test]
pub(super) fn death_at_every_store_and_during_its_repair() {
    let mut counts = Counts { deaths: 0, repairs: 0 };
    for kind in KINDS {
        for (bound, on_death) in [(ELEMENTS, 0), (5, 0), (ELEMENTS, 4)] {
            let fixture = used(kind, bound, on_death);
            for (name, script) in SCRIPTS {
                let name = format!("{name}, {kind:?}, bound {bound}, on death {on_death}");
                enumerate(&fixture, script, &name, &mut counts);
            }
            if cfg!(miri) {
                break;
            }
        }
    }
    println!("{} deaths, {} of the recovering process", counts.deaths, counts.repairs);
}

/// Beside a victim that dies at each of its stores, another endpoint does the same at each access before that.
fn beside(start: &Fixture, script: Script, other: Script, name: &str) -> u64 {
    let run = |fixture: &Fixture, interrupt: u64, death: Option<u64>| {
        let victim = fixture.actor();
        let endpoint = victim.endpoint(0);
        let (accesses, stores) = (victim.mem.accesses(), victim.mem.stores());
        let fixture = fixture.clone();
        victim.mem.interrupt(accesses.saturating_add(interrupt), move || {
            let rival = fixture.actor();
            let endpoint = rival.endpoint(1);
            other(&rival, &endpoint);
            rival.core().release_endpoint(endpoint.who - 1);
        });
        if let Some(death) = death {
            victim.mem.die_at(stores + death);
        }
        let _ = until_death(|| script(&victim, &endpoint));
        (victim.mem.accesses() - accesses, victim.mem.stores() - stores)
    };
    let mut cases = 0;
    let (accesses, _) = run(&start.image(), u64::MAX, None);
    let (first, step) = sample(accesses, INTERRUPTIONS);
    for interrupt in (first..accesses).step_by(step as usize) {
        let (_, stores) = run(&start.image(), interrupt, None);
        for death in 0..=stores {
            let fixture = start.image();
            run(&fixture, interrupt, Some(death));
            cases += 1;
            recover_and_look(&fixture, &Gone(vec![client(0), client(1)]), 2)
                .unwrap_or_else(|e| panic!("{name}, interrupted at {interrupt}, death {death}: {e}"));
        }
    }
    cases
}

#[test]
pub(super) fn death_at_every_store_beside_another_endpoint_at_every_access() {
    let mut cases = 0;
    for bound in [ELEMENTS, 5] {
        let fixture = used(Kind::Mpmc, bound, 0);
        for (a, script) in SCRIPTS {
            for (b, other) in SCRIPTS {
                cases += beside(&fixture, script, other, &format!("{a} beside {b}, bound {bound}"));
            }
        }
        if cfg!(miri) {
            break;
        }
    }
    println!("{cases} deaths beside another endpoint");
}
