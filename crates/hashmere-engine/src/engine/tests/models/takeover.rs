//! Three clients count one key up, which the first of them creates, and one dies or stops at some access.
//!
//! No number is given out twice, no step is lost, and at the end the store is sound. Catches a commit that is not
//! completed by the client that recovers it, and what `lock` catches, through a whole operation.

use super::explore::{explore, must_find, wrong};
use super::stage::{Gate, Play, Player, Stage, FOREVER};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::strict;
use crate::error::WriteError;
use crate::fault::Fault;
use hashmere_mem::shuttle::rand::{thread_rng, Rng};
use hashmere_mem::shuttle::thread;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn stage() -> Stage {
    Stage::new(strict(8).small_leaves(), |_| {})
}

/// One step, or none: the key may be locked for too long.
fn step(client: &Player) -> Option<u64> {
    match client.t_incr(b"n", 1, Some(1)) {
        Ok(n) => n,
        Err(WriteError::Busy { .. }) => None,
        Err(error) => wrong(error),
    }
}

/// Whether the key is there before the first step. Then a step looks it up before it takes the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counter {
    New,
    Present,
}

/// Three clients with a writer and an open segment each, and how many accesses a step of theirs takes.
fn cast(play: &Play, counter: Counter) -> ([Player; 3], u64) {
    let players = [play.client(), play.client(), play.client()];
    players.iter().for_each(|player| player.t_set(b"open", b"").unwrap());
    if counter == Counter::Present {
        players[0].t_set(b"n", b"0").unwrap();
        players[0].t_set(b"trial", b"0").unwrap();
    }
    let length = players[0].accesses(|player| drop(player.t_incr(b"trial", 1, Some(1))));
    players[0].t_del(b"trial").unwrap();
    (players, length)
}

/// The outcomes in which the key was counted up to `n`.
fn counted_to(n: impl IntoIterator<Item = u64>) -> Vec<State> {
    let state = |n: u64| State::from([(b"n".to_vec(), n.to_string().into_bytes()), (b"open".to_vec(), vec![])]);
    n.into_iter().map(state).collect()
}

/// No number was returned to two clients; returns how many were returned.
fn all_different(told: impl IntoIterator<Item = Option<u64>>) -> u64 {
    let told: Vec<u64> = told.into_iter().flatten().collect();
    let different: BTreeSet<u64> = told.iter().copied().collect();
    if different.len() != told.len() {
        wrong(format!("the same number was given out twice: {told:?}"));
    }
    told.len() as u64
}

fn owner_dies(counter: Counter) -> impl Fn() + Send + Sync + 'static {
    let stage = stage();
    move || {
        let play = stage.play(FOREVER);
        let ([owner, a, b], length) = cast(&play, counter);
        owner.die_at(thread_rng().gen_range(0..length));
        play.begin();
        let others = [a, b].map(|player| thread::spawn(move || (step(&player), player)));
        let owner = thread::spawn(move || (owner.until_death(step), owner));
        let (first, _dead) = owner.join().unwrap();
        let [(a, _alive), (b, _too)] = others.map(|other| other.join().unwrap());
        let told = all_different([a, b, first.flatten()]);
        // The step of a client that died before it returned may count or not.
        play.end(&counted_to(told..=told + u64::from(first.is_none())));
    }
}

fn owner_stops(counter: Counter) -> impl Fn() + Send + Sync + 'static {
    let stage = stage();
    move || {
        let play = stage.play(Duration::from_millis(4));
        let ([owner, a, b], length) = cast(&play, counter);
        let gate = Arc::new(Gate::default());
        owner.stop_at(thread_rng().gen_range(0..length), &gate);
        play.begin();
        let others = [a, b].map(|player| thread::spawn(move || (step(&player), player)));
        let owner = thread::spawn(move || (step(&owner), owner));
        let [(a, _alive), (b, _too)] = others.map(|other| other.join().unwrap());
        gate.open();
        let (first, owner) = owner.join().unwrap();
        if owner.stats(0, 0).takeovers != 0 {
            wrong("a client was recovered although it lives");
        }
        play.end(&counted_to([all_different([a, b, first])]));
    }
}

#[test]
fn no_step_is_lost_when_one_dies() {
    explore("takeover/death", owner_dies(Counter::New));
    explore("takeover/death, present", owner_dies(Counter::Present));
}

#[test]
fn no_step_is_lost_when_one_stops() {
    explore("takeover/stop", owner_stops(Counter::New));
    explore("takeover/stop, present", owner_stops(Counter::Present));
}

#[test]
fn finds_a_commit_that_is_not_completed() {
    must_find(Fault::CommitForgotten, owner_dies(Counter::New));
}

#[test]
fn finds_a_robbed_owner() {
    must_find(Fault::OwnerRobbed, owner_stops(Counter::New));
}

#[test]
fn finds_a_counter_that_is_read_too_early() {
    must_find(Fault::CountEarly, owner_stops(Counter::New));
}

#[test]
fn finds_a_counter_that_does_not_see_a_replacement_in_place() {
    must_find(Fault::ReplacementUnseen, owner_stops(Counter::Present));
}

#[test]
fn finds_a_counter_that_believes_what_it_saw_before_the_lock() {
    must_find(Fault::LookupBelieved, owner_stops(Counter::Present));
}
