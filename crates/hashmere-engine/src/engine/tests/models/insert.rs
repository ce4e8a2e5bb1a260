//! Two clients create keys at the same time.
//!
//! Catches two who both create one key, and two keys of which one takes the slot that the other just took.

use super::explore::{explore, must_find, wrong};
use super::stage::{Play, Player, Stage, FOREVER};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{strict, Client, Fixture};
use crate::engine::When;
use crate::fault::Fault;
use crate::types::Attributes;
use hashmere_format::hash::buckets;
use hashmere_mem::shuttle::thread;

/// Creates a key, if it is not there.
fn create(client: &Player, key: &[u8], value: &[u8]) -> bool {
    client.t_put(key, value, Attributes::NONE, When::Absent).unwrap_or_else(|error| wrong(error)).is_some()
}

fn cast(play: &Play) -> [Player; 2] {
    let players = [play.client(), play.client()];
    players.iter().for_each(|player| player.t_set(b"other", b"").unwrap());
    players
}

fn one_key() -> impl Fn() + Send + Sync + 'static {
    let stage = Stage::new(strict(8).small_leaves(), |_| {});
    move || {
        let play = stage.play(FOREVER);
        let players = cast(&play);
        play.begin();
        let mut n = 0u8;
        let threads = players.map(|player| {
            n += 1;
            let value = [b'0' + n];
            thread::spawn(move || {
                let created = create(&player, b"key", &value);
                let seen = player.t_get(b"key");
                if seen.is_err() || created && !matches!(&seen, Ok(Some(seen)) if *seen == value) {
                    wrong(format!("who created the key with {value:?} then read {seen:?}"));
                }
                (created.then_some(value), player)
            })
        });
        let [(a, _alive), (b, _too)] = threads.map(|thread| thread.join().unwrap());
        let [value] = [a, b].into_iter().flatten().collect::<Vec<_>>()[..] else {
            wrong(format!("created by {a:?} and {b:?}"))
        };
        play.end(&[State::from([(b"key".to_vec(), value.to_vec()), (b"other".to_vec(), vec![])])]);
    }
}

/// Two keys with different locks that both want the same slot: each has the other's first bucket for its second, and
/// one of these is emptier.
fn rivals(client: &Client) -> [String; 2] {
    let of = |key: &String| buckets(client.hash(key.as_bytes()).hash, client.layout.buckets);
    let keys = |wanted| (0..).map(|n| format!("key{n}")).find(|key| of(key) == wanted).unwrap();
    let (first, second) = of(&"other".into());
    [keys((first, second)), keys((second, first))]
}

fn two_keys() -> impl Fn() + Send + Sync + 'static {
    let mut names = None;
    let stage = Stage::new(strict(8).small_leaves(), |fixture: &Fixture| {
        let mut client = fixture.client();
        // It is in its first bucket, so its second is emptier.
        client.t_set(b"other", b"").unwrap();
        names = Some(rivals(&client));
        client.retire();
    });
    let names = names.unwrap();
    move || {
        let play = stage.play(FOREVER);
        let players = cast(&play);
        play.begin();
        let mut keys = names.clone().into_iter();
        let threads = players.map(|player| {
            let key = keys.next().unwrap();
            thread::spawn(move || {
                assert!(create(&player, key.as_bytes(), b"1"));
                player
            })
        });
        let _alive = threads.map(|thread| thread.join().unwrap());
        let mut state: State = names.iter().map(|key| (key.clone().into_bytes(), b"1".to_vec())).collect();
        state.insert(b"other".to_vec(), vec![]);
        play.end(&[state]);
    }
}

#[test]
fn one_of_two_creates_a_key() {
    explore("insert/one key", one_key());
}

#[test]
fn two_keys_find_two_slots() {
    explore("insert/two keys", two_keys());
}

#[test]
fn finds_a_writer_that_does_not_look_again() {
    must_find(Fault::AbsenceBelieved, one_key());
}

#[test]
fn finds_a_slot_that_is_taken_twice() {
    must_find(Fault::SlotBelieved, two_keys());
}
