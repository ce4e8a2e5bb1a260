//! A backup is made while two others write.
//!
//! Catches a copy without a key that was there all the while, one that has a write without the one before it, and what
//! was deleted in one backup and comes back in the next.

use super::explore::{explore, must_find, wrong};
use super::stage::{Player, Stage, FOREVER};
use crate::engine::tests::crash::{dump, State};
use crate::engine::tests::fixture::{strict, Fixture};
use crate::fault::Fault;
use hashmere_mem::shuttle::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

const KEYS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

fn backup(client: &Player) -> State {
    let copy = Fixture::new(strict(32));
    let target = copy.client();
    let mut writer = client.writer().unwrap_or_else(|error| wrong(error));
    let held = client.begin_snapshot(&mut writer).unwrap_or_else(|error| wrong(error));
    let mut to = target.writer().unwrap();
    held.copy_to(&mut writer, &target, &mut to, &mut |_, _| ()).unwrap_or_else(|error| wrong(error));
    drop(to);
    dump(&target, &State::new()).unwrap_or_else(|text| wrong(text))
}

fn set(client: &Player, key: &[u8]) {
    client.t_set(key, b"new").unwrap_or_else(|error| wrong(error));
}

fn beside_writers() -> impl Fn() + Send + Sync + 'static {
    let stage = Stage::new(strict(8).small_leaves(), |fixture| {
        let mut client = fixture.client();
        KEYS.iter().for_each(|key| client.t_set(key, b"old").unwrap());
        client.retire();
    });
    move || {
        let play = stage.play(FOREVER);
        let players = [(); 3].map(|()| play.client());
        players.iter().for_each(|player| player.t_set(b"other", b"").unwrap());
        let [keeper, first, second] = players;
        let done = Arc::new(AtomicBool::new(false));
        play.begin();
        let seen = done.clone();
        let keeper = thread::spawn(move || {
            let acknowledged = seen.load(Ordering::SeqCst);
            (backup(&keeper), acknowledged, keeper)
        });
        let first = thread::spawn(move || {
            set(&first, b"a");
            done.store(true, Ordering::SeqCst);
            set(&first, b"b");
            first
        });
        let second = thread::spawn(move || {
            set(&second, b"c");
            second.t_del(b"d").unwrap_or_else(|error| wrong(error));
            second
        });
        let (copy, acknowledged, keeper) = keeper.join().unwrap();
        let _alive = (first.join().unwrap(), second.join().unwrap());
        let is_new = |key: &[u8]| match copy.get(key).map(Vec::as_slice) {
            Some(b"new") => true,
            Some(b"old") => false,
            other => wrong(format!("{} is {other:?} in the copy", key.escape_ascii())),
        };
        let news = [b"a", b"b", b"c"].map(|key| is_new(key));
        if (acknowledged || news[1]) && !news[0] {
            wrong(format!("the copy has a write without the one before it: {news:?}, {acknowledged}"));
        }
        if !copy.contains_key(&b"d"[..]) && !news[2] {
            wrong("d is deleted in the copy, and c, which was written before, is old");
        }
        let now: State = [(b"a", "new"), (b"b", "new"), (b"c", "new")].map(|(k, v)| (k.to_vec(), v.into())).into();
        let now = now.into_iter().chain([(b"other".to_vec(), vec![])]).collect::<State>();
        if backup(&keeper) != now {
            wrong("the next copy is not the store as it is");
        }
        play.end(&[now]);
    }
}

#[test]
fn a_copy_is_of_one_moment() {
    explore("backup", beside_writers());
}

#[test]
fn finds_a_floor_that_is_too_low() {
    must_find(Fault::FloorUnawaited, beside_writers());
}

#[test]
fn finds_a_moment_that_is_missed() {
    must_find(Fault::MomentMissed, beside_writers());
}

#[test]
fn finds_a_value_that_is_replaced_though_the_backup_wants_it() {
    must_find(Fault::ReplacedForBackup, beside_writers());
}

#[test]
fn finds_a_mark_that_comes_too_late() {
    must_find(Fault::MarksUnawaited, beside_writers());
}
