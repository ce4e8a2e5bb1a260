//! Power cuts: durable stores on a disk that may have written any page at any time since the last flush.

use super::disk::{Choice, Dice, CHOICES};
use super::fixture::{strict, Client, Fixture, Geometry};
use super::history::{is_whole, rescue, whole, History, Whole};
use super::power_between::sync;
use super::probe::until_death;
use crate::engine::When;
use crate::error::WriteError;
use crate::types::{Attributes, Ttl};
use hashmere_format::header::{at, flag};
use hashmere_format::segment::State;
use hashmere_mem::{scenarios, HeapMem, Mem};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) const QUICK: bool = cfg!(miri);

/// The seed of this run: `HASHMERE_SEED`, or a fixed one.
pub(super) fn seed() -> u64 {
    let text = std::env::var("HASHMERE_SEED").unwrap_or_default();
    let seed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap_or(20_240_607),
    };
    println!("HASHMERE_SEED={seed}");
    seed
}

/// All `n` with `HASHMERE_WHOLE`, otherwise half of them. `HASHMERE_POWER=n`: n times as much.
fn effort(n: u64) -> u64 {
    let more = std::env::var("HASHMERE_POWER").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    match (QUICK, scenarios::whole()) {
        (true, _) => n.div_ceil(50),
        (_, true) => n * more,
        _ => n.div_ceil(2) * more,
    }
}

/// Small enough that splits, cleaning, growth and full stores happen all the time.
const GEOMETRIES: [Geometry; 3] =
    [strict(64).durable().small_leaves(), strict(300).durable().small_leaves(), strict(24).durable()];

/// Rebuilds an image, and looks whether what must be there is.
pub(super) fn verify(
    history: &History,
    moment: usize,
    heap: HeapMem,
    len: u64,
) -> Result<(Fixture, Client, Whole), String> {
    let fixture = Fixture::after_cut(heap, history.now_ms());
    let client = rescue(&fixture, len)?;
    is_whole(&client)?;
    let seen = whole(&client);
    history.expect(moment, &seen, history.now_ms())?;
    Ok((fixture, client, seen))
}

pub(super) fn fail(seed: u64, at: &str, error: &str) -> ! {
    panic!("seed {seed}, {at}: {error}")
}

#[test]
fn histories_are_kept() {
    let (mut images, mut deaths, mut again) = (0, 0, 0);
    let first = seed();
    for i in 0..effort(40) {
        let seed = first.wrapping_add(i);
        let mut history = History::new(GEOMETRIES[i as usize % GEOMETRIES.len()], seed);
        history.run(150);
        deaths += history.deaths;
        history.cut(45, &mut |history, moment, choice, heap, len| {
            let at = format!("cut at {moment}, {choice:?}");
            let (fixture, client, _) = verify(history, moment, heap, len).unwrap_or_else(|e| fail(seed, &at, &e));
            images += 1;
            if images % 9 != 0 {
                return;
            }
            // Life goes on, until the next power cut.
            let mut next = History::resume(fixture, client, seed ^ moment as u64);
            next.run(60);
            next.cut(9, &mut |next, moment, choice, heap, len| {
                let at = format!("{at}, and again at {moment}, {choice:?}");
                verify(next, moment, heap, len).unwrap_or_else(|e| fail(seed, &at, &e));
                again += 1;
            });
        });
    }
    println!("{images} images of {} histories with {deaths} deaths; {again} after a second power cut", effort(40));
}

/// A key that expires right after a rebuild, before anything is stored, is absent after a power cut at that moment; one
/// that does not expire must be there.
#[test]
fn what_expires_without_a_store_is_absent() {
    let history = History::new(GEOMETRIES[0], 1);
    let client = history.fixture.client();
    let brief = Attributes { ttl: Ttl::After(Duration::from_secs(2)), ..Attributes::NONE };
    client.t_put(b"brief", b"1", brief, When::Always).unwrap();
    client.t_set(b"lasting", b"2").unwrap();
    sync(&client).unwrap();
    let mut images = 0;
    history.disk().cuts(&[(history.disk().now(), Choice::New)], &mut Dice::new(1), |_, _, heap, len| {
        let fixture = Fixture::after_cut(heap, history.now_ms());
        let client = rescue(&fixture, len).unwrap();
        assert_eq!(whole(&client).len(), 2);
        let mut next = History::resume(fixture, client, 1);
        let moment = next.disk().now();
        next.fixture.peers.advance(Duration::from_secs(3));
        next.look(moment);
        assert_eq!(next.disk().now(), moment);
        next.disk().clone().cuts(&[(moment, Choice::New)], &mut Dice::new(1), |_, _, heap, len| {
            let (_, _, mut seen) = verify(&next, moment, heap, len).unwrap();
            assert!(seen.remove(b"lasting".as_slice()).is_some() && seen.is_empty());
            let missed = next.expect(moment, &seen, next.now_ms()).unwrap_err();
            assert!(missed.starts_with("lasting is None"), "{missed}");
            images += 1;
        });
    });
    assert_eq!(images, 1);
}

/// Killed at any store of the rebuild, or cut off from power there: the next rebuild ends with the same store.
#[test]
fn a_rebuild_may_be_cut_short() {
    let (mut kills, mut cuts) = (0, 0);
    let first = seed();
    for i in 0..effort(24) {
        let seed = first.wrapping_mul(31).wrapping_add(i);
        let mut history = History::new(GEOMETRIES[i as usize % GEOMETRIES.len()], seed);
        history.run(120);
        history.cut(5, &mut |history, moment, choice, heap, len| {
            let at = format!("cut at {moment}, {choice:?}");
            let image = heap.image();
            let (fixture, client, expected) =
                verify(history, moment, heap, len).unwrap_or_else(|e| fail(seed, &at, &e));
            let mut dice = Dice::new(seed ^ moment as u64);
            let same = |heap: HeapMem, len: u64, what: &str| {
                let fixture = Fixture::after_cut(heap, history.now_ms());
                let client = rescue(&fixture, len).unwrap_or_else(|e| fail(seed, what, &e));
                is_whole(&client).unwrap_or_else(|e| fail(seed, what, &e));
                let seen = whole(&client);
                if seen != expected {
                    fail(seed, what, "another store");
                }
            };
            let stores = client.probe.stores();
            for _ in 0..6 {
                let fixture = Fixture::after_cut(image.image(), history.now_ms());
                let rescuer = fixture.rescuer();
                let n = dice.below(stores);
                rescuer.probe.die_after(n);
                if until_death(|| rescuer.rebuild(len, &mut |_, _| ())).is_some() {
                    continue;
                }
                rescuer.kill();
                let reached = fixture.disk.as_ref().unwrap().size();
                same(fixture.heap.image(), reached, &format!("{at}, killed in the rebuild at {n}"));
                kills += 1;
            }
            let disk = fixture.disk.as_ref().unwrap();
            let mut moments: Vec<(usize, Choice)> =
                CHOICES.iter().map(|choice| (dice.below(disk.now() as u64 + 1) as usize, *choice)).collect();
            moments.sort_unstable_by_key(|(moment, _)| *moment);
            disk.cuts(&moments, &mut dice, |second, choice, heap, len| {
                same(heap, len, &format!("{at}, cut in the rebuild at {second}, {choice:?}"));
                cuts += 1;
            });
        });
    }
    println!("{kills} kills in a rebuild, {cuts} power cuts in one");
}

/// Records of lost time, behind one that did not reach the disk, and in the next life of their segment a record that
/// ends exactly where they begin.
pub(super) fn ghosts() -> Result<(), String> {
    let history = History::new(strict(24).durable(), 1);
    let client = history.fixture.client();
    [b"a", b"b", b"c"].into_iter().for_each(|key| client.t_set(key, &[b'g'; 900]).unwrap());
    // Free segments behind it, enough for the next life.
    let writer = client.writer().unwrap();
    client.grow(writer.slot, 6, crate::engine::log::segments::Need::Normal, &mut None).unwrap();
    drop(writer);
    let first = client.read(b"a", client.hash(b"a"), |found| Ok(found.record)).unwrap().unwrap();
    assert_eq!(first, client.segment_offset(client.segment_of(first)));
    let mut result = Ok(());
    history.disk().cuts(&[(history.disk().now(), Choice::New)], &mut Dice::new(1), |_, _, heap, len| {
        // The first sector of the segment is as it was before.
        (0..512).step_by(8).for_each(|word| heap.store(first + word, 0, Ordering::Relaxed));
        let fixture = Fixture::after_cut(heap, 1000);
        let client = rescue(&fixture, len).unwrap();
        assert!(whole(&client).is_empty());
        // Until one is written to the same place.
        let lands = |key: &u8| {
            client.t_set(&[*key], &[b'x'; 900]).unwrap();
            client.read(&[*key], client.hash(&[*key]), |found| Ok(found.record == first)).unwrap().unwrap()
        };
        let written = (b'k'..200).position(|key| lands(&key)).expect("the segment is used again") + 1;
        sync(&client).unwrap();
        let disk = fixture.disk.as_ref().unwrap();
        disk.cuts(&[(disk.now(), Choice::Old)], &mut Dice::new(1), |_, _, heap, len| {
            let seen = whole(&rescue(&Fixture::after_cut(heap, 1000), len).unwrap());
            if seen.len() != written {
                result = Err(format!("{} keys, where {written} were synced", seen.len()));
            }
        });
    });
    result
}

/// When everything arrived, every key is there as it was last, synced or not. (One that was deleted since the last sync
/// may be there, too.)
pub(super) fn all_that_arrived(seed: u64) -> Result<(), String> {
    let mut history = History::new(GEOMETRIES[0], seed);
    history.run(120);
    let client = history.fixture.client();
    client.sweep().unwrap();
    let (expected, now_ms) = (whole(&client), history.now_ms());
    let mut result = Ok(());
    history.disk().cuts(&[(history.disk().now(), Choice::New)], &mut Dice::new(1), |_, _, heap, len| {
        let seen = whole(&rescue(&Fixture::after_cut(heap, now_ms), len).unwrap());
        if let Some((key, _)) = expected.iter().find(|(key, thing)| seen.get(*key) != Some(*thing)) {
            result = Err(format!("history {seed}: {} is not as it was last", key.escape_ascii()));
        }
    });
    result
}

#[test]
fn what_arrived_is_there() {
    (0..effort(20)).for_each(|seed| all_that_arrived(seed).unwrap());
}

#[test]
fn what_was_lost_stays_lost() {
    ghosts().unwrap();
}

#[test]
fn a_full_store_syncs_for_room() {
    let history = History::new(strict(12).durable(), 1);
    let client = history.fixture.client();
    // Overwriting forever: every segment that is emptied waits for a sync that no client asks for.
    for i in 0..3000u64 {
        client.t_set(format!("key{}", i % 5).as_bytes(), &[i as u8; 400]).unwrap();
    }
    assert!(client.mem.load(at::SYNC_DONE, Ordering::Relaxed) > 1);
    client.t_set(b"large", &[1; 9000]).unwrap();
    client.t_set(b"large", &[2; 9000]).unwrap();
    is_whole(&client).unwrap();
    client.t_clear().unwrap();
    assert_eq!(client.items(), 0);
}

#[test]
pub(super) fn a_disk_that_fails_poisons() {
    let history = History::new(strict(64).durable(), 1);
    let (one, other) = (history.fixture.client(), history.fixture.client());
    one.t_set(b"a", b"1").unwrap();
    sync(&other).unwrap();
    other.t_set(b"b", b"2").unwrap();
    history.disk().break_down();
    assert_eq!(sync(&one).unwrap_err().code(), 10);
    for error in [sync(&other).unwrap_err(), one.t_set(b"c", b"3").unwrap_err(), other.t_del(b"a").unwrap_err()] {
        assert!(matches!(error, WriteError::Poisoned) && error.code() == 38, "{error}");
    }
    assert!(one.t_clear().is_err() && one.t_compact().is_err() && one.t_touch(b"a", Ttl::At(9)).is_err());
    assert_eq!(other.t_get(b"b").unwrap().unwrap(), b"2");
    assert_ne!(one.status() & flag::POISONED, 0);
    let moment = history.disk().now();
    history.disk().cuts(&[(moment, Choice::New)], &mut Dice::new(1), |_, _, heap, len| {
        let fixture = Fixture::after_cut(heap, 1000);
        let client = rescue(&fixture, len).unwrap();
        client.t_set(b"c", b"the machine was restarted").unwrap();
        assert_eq!(client.t_get(b"a").unwrap().unwrap(), b"1");
    });
}

#[test]
fn a_volatile_store_cannot_be_synced() {
    let fixture = Fixture::new(strict(24));
    let client = fixture.client();
    assert_eq!(sync(&client).unwrap_err().code(), 37);
}

/// More segments than the first chunk of the table has entries.
#[test]
#[cfg_attr(miri, ignore)]
fn a_long_segment_table() {
    let mut history = History::new(strict(4096 + 200).durable(), 1);
    let client = history.fixture.client();
    let start = history.disk().now();
    client.t_set(b"early", b"in the first chunk").unwrap();
    let writer = client.writer().unwrap();
    let n = 4090 - client.segments();
    client.grow(writer.slot, n, crate::engine::log::segments::Need::Normal, &mut None).unwrap();
    drop(writer);
    history.look(start);
    sync(&client).unwrap();
    for i in 0..40u64 {
        let start = history.disk().now();
        client.t_set(format!("key{i}").as_bytes(), &vec![i as u8; 1500]).unwrap();
        history.look(start);
        if i == 20 {
            let begun = history.disk().now();
            sync(&client).unwrap();
            history.syncs.push((begun, history.disk().now()));
        }
    }
    assert!((0..client.segments()).any(|s| client.state(s).state == State::Table));
    let mut images = 0;
    history.cut(18, &mut |history, moment, choice, heap, len| {
        let (fixture, client, _) =
            verify(history, moment, heap, len).unwrap_or_else(|e| fail(1, &format!("{moment} {choice:?}"), &e));
        images += 1;
        let mut next = History::resume(fixture, client, moment as u64);
        next.run(20);
        next.cut(2, &mut |next, moment, _, heap, len| {
            verify(next, moment, heap, len).unwrap_or_else(|e| fail(1, "after a second power cut", &e));
        });
    });
    println!("segment table: {images} images");
}
