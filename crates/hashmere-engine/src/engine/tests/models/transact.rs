//! Transactions beside readers, beside each other, and of one who dies.
//!
//! Catches a reader that sees one key of a transaction new and then another one old, a snapshot of no moment, a
//! transaction that commits on what is no more, and one that is completed the wrong way.

use super::explore::{explore, must_find, wrong};
use super::stage::{Gate, Play, Player, Stage, FOREVER};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{strict, Client};
use crate::engine::tests::transact::{Op, Parts};
use crate::engine::transact::{Guard, Outcome};
use crate::error::WriteError;
use crate::fault::Fault;
use crate::transaction::retry::run;
use crate::types::Attributes;
use hashmere_mem::shuttle::rand::{thread_rng, Rng};
use hashmere_mem::shuttle::thread;
use std::sync::Arc;

fn stage(pairs: &'static [(&[u8], &[u8])]) -> Stage {
    Stage::new(strict(8).small_leaves(), |fixture| {
        let mut client: Client = fixture.client();
        pairs.iter().for_each(|(key, value)| client.t_set(key, value).unwrap());
        client.retire();
    })
}

/// A client with an open segment, which no key is left of.
fn writer(play: &Play) -> Player {
    let writer = play.client();
    writer.t_set(b"open", b"").unwrap();
    writer.t_del(b"open").unwrap();
    writer
}

fn commit(client: &Player, ops: &[Op<'_>]) -> Outcome {
    Parts::of(&**client, ops).commit(client, &mut client.writer().unwrap()).unwrap_or_else(|error| wrong(error))
}

fn number(client: &Player, key: &[u8]) -> u64 {
    let text = client.t_get(key).unwrap_or_else(|error| wrong(error)).unwrap_or(b"0".to_vec());
    String::from_utf8_lossy(&text).parse().unwrap_or_else(|_| wrong(format!("{text:?} was never written")))
}

/// What both keys are at one moment; an absent one is nothing.
fn snapshot(client: &Player, keys: [&[u8]; 2]) -> [Option<Vec<u8>>; 2] {
    let names = keys.map(|key| (key, client.hash(key)));
    let items = client.snapshot_of(&names, &|key, kh| client.t_item(key, kh)).unwrap_or_else(|error| wrong(error));
    let items = items.unwrap_or_else(|_| wrong("no snapshot in a thousand attempts"));
    let mut values = items.into_iter().map(|item| item.map(|item| item.value));
    [values.next().flatten(), values.next().flatten()]
}

fn state(pairs: &[(&[u8], &[u8])]) -> State {
    pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// A reader of single keys, one after the other: what it saw of one key is true of the other one afterwards.
fn read_one_by_one() -> impl Fn() + Send + Sync + 'static {
    let stage = stage(&[(b"x", b"0")]);
    move || {
        let play = stage.play(FOREVER);
        let (writer, reader) = (writer(&play), play.client());
        number(&reader, b"x");
        play.begin();
        let writer = thread::spawn(move || {
            for value in [b"1", b"2"] {
                // One is replaced, one is new and then replaced.
                commit(&writer, &[Op::Set(b"x", value), Op::Set(b"y", value)]);
            }
            writer
        });
        let reader = thread::spawn(move || {
            let mut least = 0;
            for key in [b"y", b"x", b"y", b"x"] {
                let now = number(&reader, key);
                if now < least {
                    wrong(format!("{} is {now} after {least} was seen", key.escape_ascii()));
                }
                least = now;
            }
            reader
        });
        let _alive = (writer.join().unwrap(), reader.join().unwrap());
        play.end(&[state(&[(b"x", b"2"), (b"y", b"2")])]);
    }
}

/// A reader that stops somewhere in a look at the first transaction, and goes on somewhere in the second one, which
/// deletes: a key that is not there has no record whose slot would be looked at again.
fn read_across_two() -> impl Fn() + Send + Sync + 'static {
    let stage = stage(&[(b"x", b"0"), (b"y", b"0")]);
    move || {
        let play = stage.play(FOREVER);
        let (writer, reader) = (writer(&play), play.client());
        let both = |player: &Player| commit(player, &[Op::Set(b"x", b"1"), Op::Set(b"y", b"1")]);
        let neither = |player: &Player| commit(player, &[Op::Delete(b"x"), Op::Delete(b"y")]);
        let length = writer.accesses(|player| assert_eq!(both(player), Outcome::Committed));
        let looks = reader.accesses(|player| assert_eq!(number(player, b"x"), 1));
        let [first, second, look] = [(); 3].map(|()| Arc::new(Gate::default()));
        let mut random = thread_rng();
        let stops = [random.gen_range(length / 2..length), length + random.gen_range(length / 4..length)];
        writer.stop_at_each(&[(stops[0], &first), (stops[1], &second)]);
        reader.stop_at(random.gen_range(0..4 * looks), &look);
        play.begin();
        let gates = [first.clone(), second.clone(), look.clone()];
        let writer = thread::spawn(move || {
            both(&writer);
            neither(&writer);
            gates.iter().take(2).for_each(|gate| gate.reach());
            writer
        });
        first.expect();
        let seen = look.clone();
        let reader = thread::spawn(move || {
            let [x, y] = [b"x", b"y"].map(|key| reader.t_get(key).unwrap_or_else(|error| wrong(error)));
            seen.reach();
            if x.is_none() && y.is_some() {
                wrong(format!("x is not there, and then y is {y:?}"));
            }
            reader
        });
        look.expect();
        first.open();
        second.expect();
        look.open();
        let reader = reader.join().unwrap();
        second.open();
        let _alive = (writer.join().unwrap(), reader);
        play.end(&[state(&[])]);
    }
}

/// At any moment exactly one of two keys is there.
fn read_while_toggled() -> impl Fn() + Send + Sync + 'static {
    let stage = stage(&[(b"a", b"1")]);
    move || {
        let play = stage.play(FOREVER);
        let (writer, reader) = (writer(&play), play.client());
        number(&reader, b"a");
        play.begin();
        let writer = thread::spawn(move || {
            for _ in 0..2 {
                commit(&writer, &[Op::Delete(b"a"), Op::Set(b"b", b"1")]);
                commit(&writer, &[Op::Delete(b"b"), Op::Set(b"a", b"1")]);
            }
            writer
        });
        let reader = thread::spawn(move || {
            let seen = snapshot(&reader, [b"a", b"b"]);
            if seen.iter().flatten().count() != 1 {
                wrong(format!("a snapshot has {seen:?}"));
            }
            reader
        });
        let _alive = (writer.join().unwrap(), reader.join().unwrap());
        play.end(&[state(&[(b"a", b"1")])]);
    }
}

/// Moves one from a key to the other, until it succeeds.
fn transfer(client: &Player, from: &'static [u8], to: &'static [u8]) {
    loop {
        let seen = [from, to].map(|key| client.peek(key, client.hash(key)).unwrap_or_else(|error| wrong(error)));
        let texts = [number(client, from).wrapping_sub(1), number(client, to) + 1].map(|n| n.to_string());
        let [one, other] = &texts;
        let mut all = Parts::of(&**client, &[Op::Set(from, one.as_bytes()), Op::Set(to, other.as_bytes())]);
        for (part, seen) in all.parts.iter_mut().zip(seen) {
            part.guard = seen.map_or(Guard::Absent(0), Guard::Seen);
        }
        let done = all.commit(client, &mut client.writer().unwrap()).unwrap_or_else(|error| wrong(error));
        if done == Outcome::Committed {
            return;
        }
    }
}

fn transfers() -> impl Fn() + Send + Sync + 'static {
    let stage = stage(&[(b"a", b"5"), (b"b", b"5")]);
    move || {
        let play = stage.play(FOREVER);
        let players = [writer(&play), writer(&play)];
        let reader = play.client();
        number(&reader, b"a");
        play.begin();
        let mut ways = [(&b"a"[..], &b"b"[..]), (b"b", b"a")].into_iter();
        let threads = players.map(|player| {
            let (from, to) = ways.next().unwrap();
            thread::spawn(move || {
                transfer(&player, from, to);
                transfer(&player, b"a", b"b");
                player
            })
        });
        let reader = thread::spawn(move || {
            let seen = snapshot(&reader, [b"a", b"b"]);
            let sum: u64 =
                seen.iter().flatten().filter_map(|text| String::from_utf8_lossy(text).parse::<u64>().ok()).sum();
            if sum != 10 {
                wrong(format!("a snapshot has {seen:?}"));
            }
            reader
        });
        let _alive = (threads.map(|thread| thread.join().unwrap()), reader.join().unwrap());
        play.end(&[state(&[(b"a", b"3"), (b"b", b"7")])]);
    }
}

/// One counts in a transaction, from what it read before it had a lock; another one counts beside it, in place and with
/// one digit more in a new record.
fn counted() -> impl Fn() + Send + Sync + 'static {
    let stage = stage(&[(b"n", b"5")]);
    move || {
        let play = stage.play(FOREVER);
        let players = [writer(&play), writer(&play)];
        // From now on it is where it can be replaced in place.
        (0..2).for_each(|_| drop(players[1].t_incr(b"n", 1, None)));
        number(&players[0], b"n");
        play.begin();
        let [reader, counter] = players;
        let reader = thread::spawn(move || {
            let read = |key: &[u8], kh| reader.t_item(key, kh);
            let done: Result<(), WriteError> = run(
                &*reader,
                &read,
                |t| {
                    let text = t.get(b"n")?.unwrap_or_default();
                    let n: u64 = String::from_utf8_lossy(&text).parse().unwrap_or_else(|_| wrong("no number"));
                    t.set(b"n", (n + 1).to_string().as_bytes(), Attributes::NONE)?;
                    t.set(b"o", b"", Attributes::NONE)
                },
                |_, ()| (),
            );
            done.unwrap_or_else(|error| wrong(error));
            reader
        });
        let counter = thread::spawn(move || {
            for _ in 0..3 {
                counter.t_incr(b"n", 1, None).unwrap_or_else(|error| wrong(error));
            }
            counter
        });
        let _alive = (reader.join().unwrap(), counter.join().unwrap());
        play.end(&[state(&[(b"n", b"11"), (b"o", b"")])]);
    }
}

/// One dies at some access of a transaction; another client meets what it left, and a reader meets both.
fn one_dies() -> impl Fn() + Send + Sync + 'static {
    const OPS: &[Op<'_>] = &[Op::Set(b"x", b"1"), Op::Set(b"y", b"1"), Op::Delete(b"z")];
    let stage = stage(&[(b"x", b"0"), (b"z", b"0")]);
    move || {
        let play = stage.play(FOREVER);
        let players = [writer(&play), writer(&play), play.client()];
        number(&players[2], b"x");
        let length = players[0].accesses(|player| {
            commit(player, &[Op::Set(b"u", b"1"), Op::Set(b"v", b"1"), Op::Delete(b"w")]);
        });
        commit(&players[0], &[Op::Delete(b"u"), Op::Delete(b"v")]);
        let [victim, other, reader] = players;
        victim.die_at(thread_rng().gen_range(0..length));
        play.begin();
        let victim = thread::spawn(move || (victim.until_death(|player| commit(player, OPS)), victim));
        let other = thread::spawn(move || {
            other.t_set(b"z", b"2").unwrap_or_else(|error| wrong(error));
            let after = number(&other, b"x");
            (after, other)
        });
        let reader = thread::spawn(move || {
            let (x, y) = (number(&reader, b"x"), number(&reader, b"y"));
            if x > y {
                wrong(format!("x is {x} and then y is {y}"));
            }
            reader
        });
        let (done, _dead) = victim.join().unwrap();
        let (_, _alive) = (reader.join().unwrap(), other.join().unwrap());
        let before = state(&[(b"x", b"0"), (b"z", b"2")]);
        let after = state(&[(b"x", b"1"), (b"y", b"1"), (b"z", b"2")]);
        let undone = state(&[(b"x", b"1"), (b"y", b"1")]);
        match done {
            Some(_) => play.end(&[after, undone]),
            None => play.end(&[before, after, undone]),
        }
    }
}

#[test]
fn a_transaction_is_seen_whole() {
    explore("transact/one by one", read_one_by_one());
    explore("transact/across two", read_across_two());
    explore("transact/toggled", read_while_toggled());
}

#[test]
fn transfers_keep_the_sum() {
    explore("transact/transfers", transfers());
}

#[test]
fn what_was_read_is_looked_at_again_under_the_lock() {
    explore("transact/counted", counted());
}

#[test]
fn a_death_leaves_all_or_nothing() {
    explore("transact/death", one_dies());
}

#[test]
fn finds_a_cell_that_is_believed() {
    must_find(Fault::CellBelieved, read_across_two());
}

#[test]
fn finds_a_snapshot_that_is_not_compared() {
    must_find(Fault::SnapshotBelieved, read_while_toggled());
}

#[test]
fn finds_an_absence_that_is_not_proved() {
    must_find(Fault::AbsenceUnproved, read_while_toggled());
}

#[test]
fn finds_a_transaction_that_commits_on_what_is_no_more() {
    must_find(Fault::GuardIgnored, transfers());
}

#[test]
fn finds_a_transaction_that_does_not_look_at_the_slot_again() {
    must_find(Fault::LookupBelieved, counted());
}

#[test]
fn finds_a_transaction_that_does_not_look_at_the_value_again() {
    must_find(Fault::ReplacementUnseen, counted());
}

#[test]
fn finds_a_repair_that_goes_the_wrong_way() {
    must_find(Fault::RepairBackward, one_dies());
}
