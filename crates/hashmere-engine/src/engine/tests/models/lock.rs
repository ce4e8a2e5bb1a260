//! One bucket lock, three clients: never two of them inside.
//!
//! One of them dies or stops at some access on its way in, inside, or on its way out. Catches a lock that is taken over
//! from a client that lives, and two clients that both repair a dead one.

use super::explore::{explore, must_find, wrong};
use super::stage::{Gate, Play, Player, Stage, FOREVER};
use crate::engine::commit::held::HeldKey;
use crate::engine::tests::fixture::strict;
use crate::error::WriteError;
use crate::fault::Fault;
use hashmere_mem::shuttle::rand::{thread_rng, Rng};
use hashmere_mem::shuttle::thread;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The client inside, plus one.
type Inside = Arc<AtomicU64>;

/// Accesses inside.
const WORK: usize = 12;

/// Locks the key, works a little, unlocks.
fn section(client: &Player, me: u64, inside: &Inside) -> Result<(), WriteError> {
    let writer = &mut *client.writer()?;
    let hash = client.hash(b"key").hash;
    let root = client.enter(writer);
    let locked = client.lock_key(writer, root, hash)?.expect("no leaf is split here");
    let before = inside.swap(me, Ordering::Relaxed);
    if before != 0 {
        wrong(format!("{me} was let in while {before} is inside"));
    }
    for _ in 0..WORK {
        client.root_word();
    }
    if inside.swap(0, Ordering::Relaxed) != me {
        wrong(format!("another client was let in while {me} was inside"));
    }
    client.unlock_key(writer, &HeldKey::key(locked));
    Ok(())
}

fn stage() -> Stage {
    Stage::new(strict(8).small_leaves(), |_| {})
}

/// Three clients with a writer each, and how many accesses the first needs.
fn cast(play: &Play) -> ([Player; 3], u64) {
    let players = [play.client(), play.client(), play.client()];
    players.iter().for_each(|player| drop(player.writer().unwrap()));
    // The first time some things are looked up that are known afterwards.
    let length = [(); 2].map(|()| players[0].accesses(|player| section(player, 1, &Inside::default()).unwrap()));
    (players, length[1])
}

fn owner_dies() -> impl Fn() + Send + Sync + 'static {
    let stage = stage();
    move || {
        let play = stage.play(FOREVER);
        let ([owner, a, b], length) = cast(&play);
        owner.die_at(thread_rng().gen_range(0..length));
        let inside = Inside::default();
        play.begin();
        let others = [(a, 2), (b, 3)].map(|(player, me)| {
            let inside = inside.clone();
            thread::spawn(move || (section(&player, me, &inside).unwrap(), player))
        });
        let owner = thread::spawn(move || {
            let done = owner.until_death(|owner| section(owner, 1, &inside));
            if done.is_none() {
                // A crashed client is not inside; until its death was proved no other was let in.
                let _ = inside.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
            owner
        });
        let _alive = (owner.join().unwrap(), others.map(|other| other.join().unwrap()));
        play.end(&[Default::default()]);
    }
}

/// The same with an owner that has been dead for a while: the two who wait meet over its locks.
fn owner_is_dead() -> impl Fn() + Send + Sync + 'static {
    let stage = stage();
    move || {
        let play = stage.play(FOREVER);
        let ([owner, a, b], length) = cast(&play);
        owner.die_at(thread_rng().gen_range(0..length));
        assert!(owner.until_death(|owner| section(owner, 1, &Inside::default())).is_none());
        let inside = Inside::default();
        play.begin();
        let others = [(a, 2), (b, 3)].map(|(player, me)| {
            let inside = inside.clone();
            thread::spawn(move || (section(&player, me, &inside).unwrap(), player))
        });
        let _alive = others.map(|other| other.join().unwrap());
        play.end(&[Default::default()]);
    }
}

fn owner_stops() -> impl Fn() + Send + Sync + 'static {
    let stage = stage();
    move || {
        let play = stage.play(Duration::from_millis(4));
        let ([owner, a, b], length) = cast(&play);
        let gate = Arc::new(Gate::default());
        owner.stop_at(thread_rng().gen_range(0..length), &gate);
        let inside = Inside::default();
        play.begin();
        let others = [(a, 2), (b, 3)].map(|(player, me)| {
            let inside = inside.clone();
            thread::spawn(move || {
                let done = section(&player, me, &inside);
                assert!(matches!(done, Ok(()) | Err(WriteError::Busy { .. })), "{done:?}");
                player
            })
        });
        let owner = thread::spawn(move || {
            let done = section(&owner, 1, &inside);
            assert!(matches!(done, Ok(()) | Err(WriteError::Busy { .. })), "{done:?}");
            owner
        });
        let _alive = others.map(|other| other.join().unwrap());
        gate.open();
        let owner = owner.join().unwrap();
        let takeovers = owner.stats(0, 0).takeovers;
        if takeovers != 0 {
            wrong("a client was recovered although it lives");
        }
        play.end(&[Default::default()]);
    }
}

#[test]
fn one_at_a_time_when_the_owner_dies() {
    explore("lock/death", owner_dies());
}

#[test]
fn one_at_a_time_when_the_owner_is_dead() {
    explore("lock/dead", owner_is_dead());
}

#[test]
fn one_at_a_time_when_the_owner_stops() {
    explore("lock/stop", owner_stops());
}

#[test]
fn finds_a_robbed_owner() {
    must_find(Fault::OwnerRobbed, owner_stops());
}

#[test]
fn finds_two_who_repair() {
    must_find(Fault::RepairUnguarded, owner_is_dead());
}

#[test]
fn finds_a_lock_that_lets_all_threads_in() {
    must_find(Fault::LockIgnored, owner_stops());
}
