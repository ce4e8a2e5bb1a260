//! Look-ups and scans while a leaf splits and the directory doubles.
//!
//! Catches a key that is missed or returned twice while it moves to the new leaf, an entry that is cleared before the
//! directory leads to its new place, and a write that goes into the leaf of before.

use super::explore::{explore, must_find, wrong};
use super::stage::{Play, Player, Stage, FOREVER};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{strict, Client, Fixture};
use crate::fault::Fault;
use hashmere_mem::shuttle::thread;
use std::sync::Arc;

/// A full leaf, and the key for which it has to split.
struct Full {
    stage: Stage,
    state: State,
    last: Vec<u8>,
}

fn key(n: usize) -> Vec<u8> {
    format!("k{n}").into_bytes()
}

/// How many keys go into the only leaf.
fn fill(client: &Client, keys: usize) {
    (0..keys).for_each(|n| client.t_set(&key(n), &key(n)).unwrap());
}

fn full() -> Arc<Full> {
    let geometry = strict(8).small_leaves();
    let trial = Fixture::new(geometry).client();
    let keys = (0..).take_while(|n| {
        trial.t_set(&key(*n), &key(*n)).unwrap();
        trial.stats(0, 0).splits == 0
    });
    let keys = keys.count();
    let stage = Stage::new(geometry, |fixture| {
        let mut client = fixture.client();
        fill(&client, keys);
        client.retire();
    });
    Arc::new(Full { stage, state: (0..keys).map(|n| (key(n), key(n))).collect(), last: key(keys) })
}

impl Full {
    /// Two of its keys that will move, and one that will stay.
    fn some_keys(&self, client: &Player) -> Vec<Vec<u8>> {
        let of = |bit| self.state.keys().filter(move |key| client.hash(key).hash & 1 == bit).cloned();
        of(1).take(2).chain(of(0).take(1)).collect()
    }

    /// What the store holds in the end.
    fn after(&self) -> State {
        let mut after = self.state.clone();
        after.insert(self.last.clone(), self.last.clone());
        after
    }
}

/// A client with an open segment.
fn writer(play: &Play) -> Player {
    let writer = play.client();
    writer.t_set(b"k0", b"k0").unwrap();
    writer
}

fn split(client: &Player, full: &Full) {
    client.t_set(&full.last, &full.last).unwrap_or_else(|error| wrong(error));
}

fn while_looked_up() -> impl Fn() + Send + Sync + 'static {
    let full = full();
    move || {
        let play = full.stage.play(FOREVER);
        let (writer, reader) = (writer(&play), play.client());
        let keys = full.some_keys(&reader);
        drop(reader.t_get(b"k0"));
        play.begin();
        let here = full.clone();
        let writer = thread::spawn(move || {
            split(&writer, &here);
            writer
        });
        let reader = thread::spawn(move || {
            for key in keys {
                match reader.t_get(&key) {
                    Ok(Some(value)) if value == key => {}
                    other => wrong(format!("{} was missed: {other:?}", key.escape_ascii())),
                }
            }
            reader
        });
        let alive = (writer.join().unwrap(), reader.join().unwrap());
        assert_eq!(alive.0.stats(0, 0).splits, 1);
        play.end(&[full.after()]);
    }
}

fn while_scanned() -> impl Fn() + Send + Sync + 'static {
    let full = full();
    move || {
        let play = full.stage.play(FOREVER);
        let (writer, reader) = (writer(&play), play.client());
        drop(reader.t_get(b"k0"));
        play.begin();
        let here = full.clone();
        let writer = thread::spawn(move || {
            split(&writer, &here);
            writer
        });
        let here = full.clone();
        let reader = thread::spawn(move || {
            let mut pairs = reader.t_scan().unwrap_or_else(|error| wrong(error));
            pairs.retain(|(key, _)| *key != here.last);
            let many = pairs.len();
            if pairs.into_iter().collect::<State>() != here.state || many != here.state.len() {
                wrong(format!("the scan returned {many} pairs for {} keys", here.state.len()));
            }
            reader
        });
        let _alive = (writer.join().unwrap(), reader.join().unwrap());
        play.end(&[full.after()]);
    }
}

/// One client's key needs the split, another overwrites and a third deletes a key that moves.
fn while_written() -> impl Fn() + Send + Sync + 'static {
    let full = full();
    move || {
        let play = full.stage.play(FOREVER);
        let (splitter, others) = (writer(&play), [writer(&play), writer(&play)]);
        let keys = full.some_keys(&splitter);
        let mut after = full.after();
        after.insert(keys[0].clone(), b"new".to_vec());
        after.remove(&keys[1]);
        play.begin();
        let here = full.clone();
        let splitter = thread::spawn(move || {
            split(&splitter, &here);
            splitter
        });
        let [overwriter, deleter] = others;
        let [overwritten, deleted] = [keys[0].clone(), keys[1].clone()];
        let overwriter = thread::spawn(move || {
            overwriter.t_set(&overwritten, b"new").unwrap_or_else(|error| wrong(error));
            overwriter
        });
        let deleter = thread::spawn(move || {
            if !deleter.t_del(&deleted).unwrap_or_else(|error| wrong(error)) {
                wrong("a key that is there was not deleted");
            }
            deleter
        });
        let _alive = (splitter.join().unwrap(), overwriter.join().unwrap(), deleter.join().unwrap());
        play.end(&[after]);
    }
}

#[test]
fn keys_are_found_while_their_leaf_splits() {
    explore("split/look-up", while_looked_up());
}

#[test]
fn a_scan_meets_each_key_once_while_leaves_split() {
    explore("split/scan", while_scanned());
}

#[test]
fn writes_are_kept_while_their_leaf_splits() {
    explore("split/write", while_written());
}

#[test]
fn finds_a_writer_that_looks_up_the_leaf_once() {
    must_find(Fault::LeafBelieved, while_written());
}

#[test]
fn finds_a_split_that_clears_first() {
    must_find(Fault::SplitClearsFirst, while_looked_up());
}

#[test]
fn finds_a_reader_that_looks_up_the_leaf_once() {
    must_find(Fault::MissBelieved, while_looked_up());
}

#[test]
fn finds_a_scan_that_looks_up_the_leaf_once() {
    must_find(Fault::ScanBelieved, while_scanned());
}
