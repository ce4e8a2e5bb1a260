//! Promise: whatever the words of a pool say, and be it something else each time, no call panics, leaves the pool or
//! goes on forever. Catches: elements, positions, kinds and slots that are used as they were found.

use super::fixture::{client, Actor, Fixture, Gone, BASE};
use crate::layout::{Geometry, Kind};
use crate::ring::EndpointLayout;
use crate::transfer::{peek, pop_many, pop_one, push_many, push_one, wake_sleepers, Push};
use hashmere_mem::traced::{until_death, Traced};
use hashmere_mem::Scribbler;
use std::panic::{self, AssertUnwindSafe};

const ELEMENTS: u64 = 12;

/// Bits of a seed, one part after the other.
struct Choice(u64);

impl Choice {
    fn below(&mut self, n: u64) -> u64 {
        let chosen = self.0 % n;
        self.0 = self.0.rotate_right(11) ^ self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        chosen
    }
}

fn act(actor: &Actor<Traced>, endpoint: &EndpointLayout, choice: &mut Choice) {
    let (from, to) = (choice.below(4), choice.below(4));
    let core = actor.core();
    let (Some(source), Some(target)) = (core.ring(from), core.ring(to)) else { return };
    match choice.below(8) {
        0 | 1 => {
            let slot = choice.below(64);
            if let Some(element) = pop_one(&actor.mem, &source, endpoint, slot) {
                if push_one(&actor.mem, &target, endpoint, slot, element) == Push::Full {
                    core.give_back(endpoint, slot);
                }
            }
        }
        2 | 3 => {
            pop_many(&actor.mem, &source, endpoint, 1 + choice.below(6));
            if choice.below(3) == 0 || push_many(&actor.mem, &target, endpoint, 1 + choice.below(6)) == Push::Full {
                core.return_batch(endpoint);
            }
        }
        4 => drop(peek(&actor.mem, &source, &actor.geometry, BASE)),
        5 => drop((source.len(&actor.mem), source.room(&actor.mem, source.tail(&actor.mem)))),
        6 => wake_sleepers(&actor.mem, &source),
        _ => drop(Geometry::read(&actor.mem, BASE, actor.geometry.size())),
    }
}

fn round(seed: u64) {
    let mut choice = Choice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let kind = [Kind::Mpmc, Kind::Mpsc, Kind::Spsc][choice.below(3) as usize];
    let fixture = Fixture::new(ELEMENTS, kind, 1 + choice.below(ELEMENTS), choice.below(4));
    // A process was killed in the middle.
    let victim = fixture.actor();
    let endpoint = victim.endpoint(1);
    victim.take_roles(&endpoint);
    victim.mem.die_at(victim.mem.stores() + choice.below(120));
    let _ = until_death(|| (0..20).for_each(|_| act(&victim, &endpoint, &mut choice)));
    let actor = fixture.actor();
    let rate = [8, 40, 200, 1000][choice.below(4) as usize];
    actor.mem.scribble(Scribbler::new(seed, rate, BASE..BASE + fixture.geometry.size()));
    let _ = actor.core().recover(client(2), &Gone(vec![client(1)]));
    let Some(endpoint) = actor.core().take_endpoint(client(2)) else { return };
    (0..30).for_each(|_| act(&actor, &endpoint, &mut choice));
    actor.core().release_endpoint(endpoint.who - 1);
}

#[test]
fn no_word_is_trusted() {
    let first = std::env::var("HASHMERE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("HASHMERE_SEED={first}");
    let rounds = if cfg!(miri) { 10 } else { 20_000 };
    for seed in (first..).take(rounds) {
        panic::catch_unwind(AssertUnwindSafe(|| round(seed))).unwrap_or_else(|payload| {
            eprintln!("again with HASHMERE_SEED={seed}, as the first round");
            panic::resume_unwind(payload)
        });
    }
}
