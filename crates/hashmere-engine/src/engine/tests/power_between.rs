//! Two clients before a power cut: one syncs while the other is at any point of a write, or died there.

use super::disk::{Choice, Dice, CHOICES};
use super::fixture::{strict, Client, Geometry};
use super::history::History;
use super::power::{fail, verify, QUICK};
use super::probe::until_death;
use super::transact::{apply, Op};
use crate::error::WriteError;
use hashmere_mem::scenarios;
use std::sync::{Arc, Mutex};

/// Some keys, with a writer for each client, and no two records that matter in one sector.
fn few(history: &mut History, writer: &Client, other: &Client) {
    let start = history.disk().now();
    other.t_set(b"other", b"has a writer").unwrap();
    for i in 0..6 {
        writer.t_set(format!("key{i}").as_bytes(), &[b'0' + i; 40]).unwrap();
        writer.t_set(b"between", &[i; 600]).unwrap();
    }
    writer.t_set(b"large", &[b'L'; 3000]).unwrap();
    history.look(start);
}

/// What another client does while one writes, and what must be there then.
pub(super) fn interleave(
    act: fn(&Client),
    geometry: Geometry,
    concurrent: fn(&Client) -> Result<u64, WriteError>,
    step: usize,
) -> Result<u64, String> {
    let mut images = 0;
    let mut dice = Dice::new(7);
    for access in (0..).step_by(if QUICK { 97 } else { step }) {
        let mut history = History::new(geometry, access);
        let (writer, other) = (history.fixture.client(), history.fixture.client());
        few(&mut history, &writer, &other);
        concurrent(&other).map_err(|e| e.to_string())?;
        let start = history.disk().now();
        let (disk, third) = (history.disk().clone(), other.clone());
        let synced = Arc::new(Mutex::new(None));
        let note = synced.clone();
        writer.probe.interrupt(access, move || {
            let start = disk.now();
            if concurrent(&third).is_ok() {
                *note.lock().unwrap() = Some((start, disk.now()));
            }
        });
        act(&writer);
        let finished = writer.probe.accesses() <= access;
        writer.probe.rewind();
        history.look(start);
        // What the other one could see when its sync began was not acknowledged, but what was before is.
        history.syncs.extend(*synced.lock().unwrap());
        let now = history.disk().now();
        let choices: Vec<(usize, Choice)> = CHOICES.iter().map(|choice| (now, *choice)).collect();
        let mut failure = None;
        history.disk().cuts(&choices, &mut dice, |moment, choice, heap, len| {
            images += 1;
            if let Err(error) = verify(&history, moment, heap, len) {
                failure = failure.take().or(Some(format!("sync at access {access}, {choice:?}: {error}")));
            }
        });
        match failure {
            Some(failure) => return Err(failure),
            None if finished => break,
            None => {}
        }
    }
    Ok(images)
}

pub(super) fn sync(client: &Client) -> Result<u64, WriteError> {
    let writer = client.writer()?;
    client.sync(&writer)
}

type Write = (&'static str, fn(&Client), usize);
/// The operations whose stamps and checksums matter, and every how manieth access of one is tried, a third of them
/// unless `HASHMERE_WHOLE` is set: long values are dull.
pub(super) const WRITES: [Write; 7] = [
    ("replace", |c| c.t_set(b"key1", b"replaced").unwrap(), 1),
    ("delete", |c| assert!(c.t_del(b"key2").unwrap()), 1),
    ("new", |c| c.t_set(b"new", b"new").unwrap(), 1),
    ("large, replaced", |c| c.t_set(b"large", &[b'R'; 2500]).unwrap(), 5),
    ("touch again", |c| assert!(c.t_touch(b"key3", crate::types::Ttl::At(1_000_000)).unwrap()), 1),
    (
        "transaction",
        |c| apply(&**c, &[Op::Set(b"key1", b"one"), Op::Delete(b"key2"), Op::Set(b"new", b"two"), Op::Look(b"key3")]),
        1,
    ),
    ("clear", |c| c.t_clear().unwrap(), 3),
];

#[test]
fn a_sync_at_every_access_of_a_write() {
    let fewer = if scenarios::whole() { 1 } else { 3 };
    for (name, act, step) in WRITES {
        let images =
            interleave(act, strict(64).durable(), sync, step * fewer).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {images} images");
    }
}

/// Some keys stay and others are overwritten, so that segments are cleaned, and moved records are what counts.
pub(super) fn churn(c: &Client) {
    for i in 0..60u64 {
        let key = if i % 4 == 0 { format!("stays{i}") } else { format!("o{}", i % 3) };
        c.t_set(key.as_bytes(), format!("{key} {}", "w".repeat(400)).as_bytes()).unwrap();
    }
}

#[test]
fn a_sync_during_cleaning() {
    let mut images = 0;
    let (mut access, step) = (0, if QUICK { 20_011 } else { 601 });
    loop {
        let mut history = History::new(strict(40).durable(), access);
        let (writer, other) = (history.fixture.client(), history.fixture.client());
        let start = history.disk().now();
        churn(&writer);
        history.look(start);
        let third = other.clone();
        writer.probe.interrupt(access, move || drop(sync(&third)));
        let start = history.disk().now();
        churn(&writer);
        writer.t_compact().unwrap();
        let finished = writer.probe.accesses() <= access;
        writer.probe.rewind();
        history.look(start);
        let begun = history.disk().now();
        sync(&other).unwrap();
        history.syncs.push((begun, history.disk().now()));
        history.cut(9, &mut |history, moment, choice, heap, len| {
            verify(history, moment, heap, len).unwrap_or_else(|e| fail(access, &format!("{choice:?}"), &e));
            images += 1;
        });
        if finished {
            break;
        }
        access += step;
    }
    println!("cleaning: {images} images");
}

/// One is killed at each of its stores, another one sees what is there and syncs, and then the power goes.
pub(super) fn kill_then_sync(act: fn(&Client), geometry: Geometry, step: usize) -> Result<u64, String> {
    let mut images = 0;
    for store in (0..).step_by(if QUICK { 13 } else { step }) {
        let mut history = History::new(geometry, store);
        let (writer, other) = (history.fixture.client(), history.fixture.client());
        few(&mut history, &writer, &other);
        let start = history.disk().now();
        writer.probe.die_after(store);
        let lived = until_death(|| act(&writer)).is_some();
        writer.kill();
        history.look(start);
        let begun = history.disk().now();
        sync(&other).map_err(|e| e.to_string())?;
        let now = history.disk().now();
        history.syncs.push((begun, now));
        let mut failure = None;
        history.disk().cuts(&[(now, Choice::Old)], &mut Dice::new(1), |moment, _, heap, len| {
            images += 1;
            failure = verify(&history, moment, heap, len).err();
        });
        match failure {
            Some(failure) => return Err(format!("killed at store {store}: {failure}")),
            None if lived => return Ok(images),
            None => {}
        }
    }
    Ok(images)
}

#[test]
fn what_a_crashed_writer_left_is_synced() {
    for (name, act, step) in WRITES {
        let images = kill_then_sync(act, strict(64).durable(), step).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {images} deaths before a sync");
    }
    let moves = kill_then_sync(churn, strict(24).durable(), 11).unwrap_or_else(|e| panic!("moves: {e}"));
    println!("cleaning: {moves} deaths before a sync");
}
