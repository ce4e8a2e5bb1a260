//! Lines that were lost are reported under the name of the thread that lost them, whichever thread has its ring by
//! then.

use super::fixture::{client, lost, Actor, Fixture, Gone, Policy};
use crate::layout::Geometry;
use crate::ring::Cursor;
use hashmere_mem::traced::until_death;
use std::collections::BTreeMap;

/// As many rings.
fn fixture(rings: u64) -> Fixture {
    Fixture::of(Geometry { rings, ring_bytes: 256, history_bytes: 4096 })
}

/// A line that takes a quarter of a ring or less.
fn text(who: u64, n: u32) -> String {
    format!("w{who}.{n}{}", "x".repeat(n as usize * 7 % 30))
}

/// A thread that logs `lines` lines, beginning with a number of its own.
fn log(actor: &Actor, cursor: &mut Cursor, who: u64, from: u32, lines: u32, policy: Policy) {
    for n in from..from + lines {
        actor.log(cursor, policy, &text(who, n));
    }
}

/// How many lines of each came out or were reported lost; those of several threads are of 0.
fn told(lines: &[String]) -> BTreeMap<u64, u32> {
    let mut told = BTreeMap::new();
    for line in lines {
        let (count, who) = lost(line).unwrap_or_else(|| (1, line[1..].split_once('.').unwrap().0.parse().unwrap()));
        *told.entry(who).or_default() += count;
    }
    told
}

fn all_told(fixture: &Fixture, wanted: &[(u64, u32)], when: &str) {
    assert_eq!(told(&fixture.lines()), wanted.iter().copied().collect(), "{when}: {:?}", fixture.lines());
}

#[test]
fn what_a_thread_dropped_last_is_reported_when_it_has_left() {
    for is_killed in [false, true] {
        let fixture = fixture(2);
        let actor = fixture.actor();
        let mut cursor = actor.claim(1);
        log(&actor, &mut cursor, 1, 0, 30, Policy::Drop);
        if !is_killed {
            actor.core().release(&cursor);
        }
        actor.drain(9, &Gone(vec![client(1)]));
        all_told(&fixture, &[(1, 30)], "at once");
        assert!(lost(fixture.lines().last().unwrap()).is_some());
        actor.drain(9, &Gone(vec![client(1)]));
        all_told(&fixture, &[(1, 30)], "and not again");
        assert!(!actor.core().has_lines());
    }
}

#[test]
pub(super) fn the_next_owner_of_a_ring_is_not_blamed() {
    for policy in [Policy::Drop, Policy::Overwrite] {
        let fixture = fixture(1);
        let actor = fixture.actor();
        for who in 1..=5 {
            let mut cursor = actor.claim(who);
            log(&actor, &mut cursor, who, 0, 4 + who as u32, policy);
            actor.core().release(&cursor);
        }
        actor.drain(9, &Gone(Vec::new()));
        all_told(&fixture, &[(1, 5), (2, 6), (3, 7), (4, 8), (5, 9)], "five in one ring");
    }
}

#[test]
fn losses_of_many_are_told_of_several() {
    let fixture = fixture(1);
    let actor = fixture.actor();
    for who in 1..=12 {
        let mut cursor = actor.claim(who);
        log(&actor, &mut cursor, who, 0, 10, Policy::Drop);
        actor.core().release(&cursor);
    }
    actor.drain(9, &Gone(Vec::new()));
    let told = told(&fixture.lines());
    assert_eq!(told.values().sum::<u32>(), 120);
    assert!(told[&0] > 0 && told.keys().copied().filter(|who| *who > 6).eq(7..=12), "{told:?}");
    assert!((8..=12).all(|who| told[&who] == 10), "{told:?}");
}

/// A thread that claims a ring dies at each store of that; then others have it.
#[test]
pub(super) fn an_heir_dies_at_every_store() {
    let start = fixture(1);
    let first = start.actor();
    let mut cursor = first.claim(1);
    log(&first, &mut cursor, 1, 0, 12, Policy::Drop);
    first.core().release(&cursor);
    let stores = {
        let fixture = start.image();
        let victim = fixture.actor();
        victim.claim(2);
        victim.mem.stores()
    };
    for at in 0..=stores {
        let fixture = start.image();
        let victim = fixture.actor();
        victim.mem.die_at(at);
        let _ = until_death(|| victim.claim(2));
        let actor = fixture.actor();
        actor.core().recover_rings(client(9), &Gone(vec![client(2)])).unwrap();
        let mut cursor = actor.claim(3);
        log(&actor, &mut cursor, 3, 0, 5, Policy::Drop);
        actor.core().release(&cursor);
        actor.drain(9, &Gone(Vec::new()));
        all_told(&fixture, &[(1, 12), (3, 5)], &format!("death at {at}"));
    }
}

/// A thread has the ring of one that left, and leaves it in turn, before any access of a drainer, which has drained
/// that ring before or not.
#[test]
pub(super) fn an_heir_interrupts_a_drainer_at_every_access() {
    let none = || Gone(Vec::new());
    for is_drained in [false, true] {
        let start = fixture(1);
        let first = start.actor();
        let mut cursor = first.claim(1);
        log(&first, &mut cursor, 1, 0, 12, Policy::Drop);
        if is_drained {
            start.actor().drain(9, &none());
        }
        first.core().release(&cursor);
        let accesses = {
            let drainer = start.image().actor();
            drainer.drain(9, &none());
            drainer.mem.accesses()
        };
        for at in 0..accesses {
            let fixture = start.image();
            let (drainer, other) = (fixture.actor(), fixture.share());
            drainer.mem.interrupt(at, move || {
                let actor = other.actor();
                let mut cursor = actor.claim(2);
                log(&actor, &mut cursor, 2, 0, 8, Policy::Drop);
                actor.core().release(&cursor);
            });
            drainer.drain(9, &none());
            fixture.actor().drain(9, &none());
            all_told(&fixture, &[(1, 12), (2, 8)], &format!("at {at}"));
        }
    }
}

/// Threads come and go, log more than there is room for, and are killed; now and then one of them drains, and dies of
/// it.
#[test]
fn every_dropper_is_reported_by_name() {
    let seed: u64 = 20_261_122;
    println!("seed {seed}");
    let mut state = seed;
    let mut below = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for round in 0..if cfg!(miri) { 2 } else { 300u64 } {
        let fixture = fixture(1 + round % 2);
        let (mut tried, mut open) = (BTreeMap::<u64, u32>::new(), Vec::<(u64, Cursor, Policy)>::new());
        let (mut dead, mut next, mut owners) = (Vec::new(), 1, 0);
        for _ in 0..60 {
            let actor = fixture.actor();
            match below(8) {
                // No more than an unread ring remembers.
                0 | 1 if (open.len() as u64) < 1 + round % 2 && owners < 6 => {
                    let policy = if below(2) == 0 { Policy::Drop } else { Policy::Overwrite };
                    actor.core().recover_rings(client(99), &Gone(dead.clone())).unwrap();
                    open.push((next, actor.claim(next), policy));
                    (next, owners) = (next + 1, owners + 1);
                }
                2 if !open.is_empty() => {
                    let (who, cursor, _) = open.swap_remove(below(open.len() as u64) as usize);
                    if below(2) == 0 {
                        dead.push(client(who));
                    } else {
                        actor.core().release(&cursor);
                    }
                }
                3 => {
                    actor.mem.die_at(below(120));
                    let _ = until_death(|| actor.drain(99, &Gone(dead.clone())));
                    fixture.actor().drain(98, &Gone(dead.clone()));
                    owners = 0;
                }
                _ if !open.is_empty() => {
                    let index = below(open.len() as u64) as usize;
                    let (who, cursor, policy) = &mut open[index];
                    let (lines, before) = (below(9) as u32, tried.entry(*who).or_default());
                    log(&actor, cursor, *who, *before, lines, *policy);
                    *before += lines;
                }
                _ => {}
            }
        }
        dead.extend(open.iter().map(|(who, ..)| client(*who)));
        fixture.actor().drain(97, &Gone(dead));
        tried.retain(|_, lines| *lines > 0);
        assert_eq!(told(&fixture.lines()), tried, "round {round}: {:?}", fixture.lines());
    }
}

/// The name of one thread is replaced by that of a later one before each access of who reads it, and the other way
/// round.
#[test]
pub(super) fn a_name_that_is_replaced_while_it_is_read_is_not_mixed() {
    const FIRST_WHO: u64 = 1 << 32 | 7;
    const FIRST: &[u8; 16] = b"the first of all";
    const LATER: &[u8; 16] = b"one of the later";
    let words = |name: &[u8; 16]| [0, 8].map(|at| u64::from_le_bytes(name[at..at + 8].try_into().unwrap()));
    let named = || {
        let fixture = fixture(1);
        fixture.core().write_name(1, FIRST_WHO, FIRST);
        fixture
    };
    let later_thread = 1 + named().core().geometry.names();
    let later_who = later_thread << 32 | 8;
    let is_right = move |read: [u64; 2]| read == words(FIRST) || read == [0; 2];

    let accesses = {
        let (fixture, reader) = (named(), named().actor());
        assert_eq!(reader.core().read_name(FIRST_WHO), words(FIRST));
        fixture.core().write_name(later_thread, later_who, LATER);
        assert_eq!(fixture.core().read_name(FIRST_WHO), [0; 2], "another thread has the entry");
        assert_eq!(fixture.core().read_name(later_who), words(LATER));
        reader.mem.accesses()
    };
    for at in 0..accesses {
        let fixture = named();
        let (reader, other) = (fixture.actor(), fixture.share());
        reader.mem.interrupt(at, move || other.core().write_name(later_thread, later_who, LATER));
        let read = reader.core().read_name(FIRST_WHO);
        assert!(is_right(read), "replaced before access {at}: {read:x?}");
    }

    let accesses = {
        let writer = named().actor();
        writer.core().write_name(later_thread, later_who, LATER);
        writer.mem.accesses()
    };
    for at in 0..accesses {
        let fixture = named();
        let (writer, other) = (fixture.actor(), fixture.share());
        writer.mem.interrupt(at, move || {
            let read = other.core().read_name(FIRST_WHO);
            assert!(is_right(read), "read before access {at} of the writer: {read:x?}");
            assert_eq!(other.core().read_name(later_who), [0; 2], "before access {at}");
        });
        writer.core().write_name(later_thread, later_who, LATER);
    }
}
