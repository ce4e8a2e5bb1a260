//! Backups: a copy is the store of one moment, whatever others do during it, and whichever process dies.

use super::crash::{dump, is_sound, State};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use super::ops::Pair;
use super::power::seed;
use crate::engine::backup::copy::Copied;
use crate::engine::When;
use crate::error::{BackupError, WriteError};
use crate::types::{Attributes, Ttl, Version};
use hashmere_os::random::SplitMix64;
use std::sync::{Arc, Mutex};

/// Room for a copy: it may be larger than its store was meant to be.
fn roomy(geometry: Geometry) -> Geometry {
    Geometry { segments: geometry.segments * 4, ..geometry }
}

/// Makes a backup and returns what the copy holds, found sound.
pub(super) fn backup(
    client: &Client,
    geometry: Geometry,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(State, Copied), BackupError> {
    let copy = Fixture::new(roomy(geometry));
    let copied = {
        let mut writer = client.writer()?;
        let held = client.begin_snapshot(&mut writer)?;
        let target = copy.client();
        let mut to = target.writer().unwrap();
        held.copy_to(&mut writer, &target, &mut to, progress)?
    };
    let opened = copy.client();
    opened.sweep().unwrap();
    let state = dump(&opened, &State::new()).unwrap();
    is_sound(&opened, state.len() as u64).unwrap();
    assert_eq!(copied.items, state.len() as u64);
    Ok((state, copied))
}

/// A store with records of all kinds, some superseded.
fn furnish(client: &Client) {
    for i in 0..40u32 {
        let value = format!("{i} ").repeat(1 + i as usize % 30);
        client.t_set(format!("key{i}").as_bytes(), value.as_bytes()).unwrap();
    }
    for i in (0..40u32).step_by(3) {
        client.t_set(format!("key{i}").as_bytes(), b"replaced").unwrap();
    }
    client.t_del(b"key1").unwrap();
    client.t_set(b"#supplied", b"hash").unwrap();
    client.t_set(b"#supplied too", b"the same hash").unwrap();
    let with = Attributes { flags: 5, ttl: Ttl::At(u64::from(u32::MAX) * 1000), ..Attributes::NONE };
    client.t_put(b"ttl", b"expires", with, When::Always).unwrap();
    client.t_put(b"asked", b"version", Attributes::NONE.min_version(Version(1 << 30)), When::Always).unwrap();
    client.t_set(b"large", &vec![b'L'; 9000]).unwrap();
    client.t_incr(b"n", 1, Some(9)).unwrap();
}

const GEOMETRIES: [Geometry; 3] = [strict(120).small_leaves(), strict(120).durable(), cache(160)];

#[test]
fn a_copy_at_rest_is_the_same_to_the_version() {
    for geometry in GEOMETRIES {
        let fixture = Fixture::new(geometry);
        let client = fixture.client();
        furnish(&client);
        let before = dump(&client, &State::new()).unwrap();
        let copy = Fixture::new(roomy(geometry));
        let target = copy.client();
        {
            let mut writer = client.writer().unwrap();
            let held = client.begin_snapshot(&mut writer).unwrap();
            held.copy_to(&mut writer, &target, &mut target.writer().unwrap(), &mut |_, _| ()).unwrap();
        }
        assert_eq!(dump(&target, &State::new()).unwrap(), before);
        for key in before.keys() {
            let [ours, theirs] = [&client, &target].map(|c| c.t_item(key, c.t_hash(key)).unwrap().unwrap().metadata);
            let rest = |m: &crate::types::Metadata| (m.version, m.flags, m.marks, m.expires_at_ms, m.value_len);
            assert_eq!(rest(&ours), rest(&theirs), "{}", key.escape_ascii());
        }
        // Later versions are later in the copy, too.
        let old = target.t_item(b"key2", target.t_hash(b"key2")).unwrap().unwrap().metadata.version;
        target.t_set(b"key2", b"again").unwrap();
        assert!(target.t_item(b"key2", target.t_hash(b"key2")).unwrap().unwrap().metadata.version > old);
        assert!(!client.snapshot().is_held() && !client.snapshot().is_dirty());
        is_sound(&client, before.len() as u64).unwrap();
    }
}

type Deed = fn(&Client);

/// What others do in one go while a backup is made.
const DEEDS: [(&str, Deed); 6] = [
    ("writes", |c| {
        c.t_set(b"key2", b"overwritten").unwrap();
        c.t_del(b"key4").unwrap();
        c.t_del(b"key5").unwrap();
        c.t_set(b"key5", b"back again").unwrap();
        c.t_set(b"fresh", b"new").unwrap();
        c.t_put(b"key8", b"asked", Attributes::NONE.min_version(Version(1 << 35)), When::Always).unwrap();
        c.t_append(b"key7", b" and more").unwrap();
        c.t_incr(b"n", 1, None).unwrap();
        c.t_set(b"large", &vec![b'M'; 9500]).unwrap();
        c.t_del(b"#supplied").unwrap();
    }),
    ("splits", |c| {
        (0..60).for_each(|i| c.t_set(format!("new{i}").as_bytes(), b"v").unwrap());
        (0..20).for_each(|i| assert!(c.t_del(format!("key{i}").as_bytes()).is_ok()));
    }),
    ("cleaning", |c| {
        (10..40).for_each(|i| c.t_set(format!("key{i}").as_bytes(), b"short").unwrap());
        c.t_compact().unwrap();
        (10..40).for_each(|i| c.t_set(format!("key{i}").as_bytes(), b"shorter").unwrap());
        c.t_compact().unwrap();
    }),
    ("clear", |c| {
        c.t_set(b"key3", b"just before the clear").unwrap();
        c.t_clear().unwrap();
        c.t_set(b"key2", b"after the clear").unwrap();
    }),
    ("clear and fill", |c| {
        c.t_clear().unwrap();
        (0..30).for_each(|i| c.t_set(format!("key{i}").as_bytes(), &[b'x'; 300]).unwrap());
        c.t_compact().unwrap();
    }),
    ("expiry", |c| {
        c.host.peers().set_now_ms(u64::from(u32::MAX) * 1000 + 1);
        c.t_compact().unwrap();
    }),
];

/// Does a deed before access number `at` of a backup; says what the copy has, if the backup came so far.
fn interrupted(geometry: Geometry, deed: Deed, at: u64) -> (Result<State, BackupError>, State, State, bool) {
    let fixture = Fixture::new(geometry);
    let (client, other) = (fixture.client(), fixture.client());
    furnish(&client);
    other.t_set(b"other", b"of the other").unwrap();
    let before = dump(&client, &State::new()).unwrap();
    let after = Arc::new(Mutex::new(None));
    let (done, hand) = (after.clone(), other.clone());
    client.probe.be_lenient();
    client.probe.interrupt(at, move || {
        deed(&hand);
        *done.lock().unwrap() = Some(dump(&hand, &State::new()).unwrap());
    });
    let copied = backup(&client, geometry, &mut |_, _| ()).map(|(state, _)| state);
    let seen = after.lock().unwrap().take();
    let happened = seen.is_some();
    client.t_compact().unwrap();
    let now = dump(&other, &State::new()).unwrap();
    assert!(seen.as_ref().is_none_or(|seen| *seen == now), "the backup changed the store");
    is_sound(&other, now.len() as u64).unwrap();
    (copied, before, seen.unwrap_or_default(), happened)
}

#[test]
fn a_copy_is_of_one_moment_whenever_others_act() {
    for (which, geometry) in [strict(160).small_leaves(), strict(160).durable(), cache(400)].into_iter().enumerate() {
        for (name, deed) in DEEDS {
            let (mut at, mut cut, mut tried) = (0, false, 0);
            loop {
                let (copied, before, after, happened) = interrupted(geometry, deed, at);
                let copied = copied.unwrap_or_else(|e| panic!("{name} at {at} of store {which}: {e}"));
                if !happened {
                    assert_eq!(copied, before);
                    break;
                }
                tried += 1;
                let is_before = copied == before || before_but_expired(&copied, &before);
                assert!(is_before || copied == after, "{name} at {at} of store {which}: the copy is of no moment");
                // Once the moment has passed it has passed. (What expired is gone from both.)
                assert!(is_before || !cut || name == "expiry", "{name} at {at} of store {which}: the moment came back");
                cut |= copied != after;
                at += step(at);
            }
            println!("{name}: {tried} interruptions of store {which}");
            assert!(cut || name == "expiry");
        }
    }
}

fn before_but_expired(copied: &State, before: &State) -> bool {
    let rest: State = before.iter().filter(|(key, _)| *key != b"ttl").map(|(k, v)| (k.clone(), v.clone())).collect();
    *copied == rest
}

fn step(at: u64) -> u64 {
    let quick = if cfg!(miri) { 4001 } else { 61 };
    quick + at % 7
}

#[test]
pub(super) fn others_write_all_the_time() {
    let first = seed();
    for i in 0..if cfg!(miri) { 1 } else { 60 } {
        scenario(first.wrapping_add(i), GEOMETRIES[i as usize % 2]).unwrap();
    }
}

/// Random writes of two clients before and within a backup.
fn scenario(seed: u64, geometry: Geometry) -> Result<(), String> {
    let geometry = Geometry { segments: 600, ..geometry };
    let fixture = Fixture::new(geometry);
    let (client, a, b) = (fixture.client(), fixture.client(), fixture.client());
    let mut dice = SplitMix64(seed);
    let mut model = State::new();
    for round in 0..4 {
        (0..120).for_each(|i| act(&mut dice, [&a, &b][i % 2], &mut model));
        let mut expected = None;
        let copied = backup(&client, geometry, &mut |_, _| {
            expected.get_or_insert_with(|| model.clone());
            (0..dice.below(5)).for_each(|i| act(&mut dice, [&a, &b][i as usize % 2], &mut model));
        });
        let (copy, _) = copied.map_err(|e| format!("seed {seed}: {e}"))?;
        if copy != expected.unwrap_or(model.clone()) {
            return Err(format!("seed {seed}, round {round}: the copy is of no moment"));
        }
        if dump(&a, &State::new())? != model {
            return Err(format!("seed {seed}, round {round}: the store is not what was written"));
        }
    }
    is_sound(&a, model.len() as u64)
}

fn act(dice: &mut SplitMix64, client: &Client, model: &mut State) {
    let key = format!("k{}", dice.below(70)).into_bytes();
    let len = [3, 40, 700, 5000][[0, 0, 0, 1, 1, 1, 2, 3][dice.below(8) as usize]];
    let pair: Pair = (key, vec![b'a' + dice.below(26) as u8; len]);
    match dice.below(20) {
        0..=11 => {
            client.t_set(&pair.0, &pair.1).unwrap();
            model.insert(pair.0, pair.1);
        }
        12..=16 => assert_eq!(client.t_del(&pair.0).unwrap(), model.remove(&pair.0).is_some()),
        17 => drop(client.t_compact().unwrap()),
        18 => drop(client.t_touch(&pair.0, Ttl::Never).unwrap()),
        _ if dice.below(6) == 0 => {
            client.t_clear().unwrap();
            model.clear();
        }
        _ => {}
    }
}

#[test]
fn a_full_store_gives_the_backup_up_and_not_the_write() {
    let geometry = strict(40);
    let fixture = Fixture::new(geometry);
    let (client, other) = (fixture.client(), fixture.client());
    let overwrite = |with: u8| {
        (0..160).for_each(|i| other.t_set(format!("key{i}").as_bytes(), &[with; 450]).unwrap());
    };
    overwrite(b'o');
    // Overwriting the same keys needs no room without a backup.
    overwrite(b'p');
    let copied = backup(&client, geometry, &mut |_, _| overwrite(b'q'));
    assert!(matches!(copied, Err(BackupError::Abandoned)), "{}", copied.is_ok());
    assert_eq!(BackupError::Abandoned.code(), 51);
    let now = dump(&other, &State::new()).unwrap();
    is_sound(&other, now.len() as u64).unwrap();
    // What it left does no harm to the next one.
    other.t_del(b"key2").unwrap();
    let copied = backup(&client, geometry, &mut |_, _| ()).unwrap().0;
    assert_eq!(copied, dump(&other, &State::new()).unwrap());
}

#[test]
fn a_full_cache_goes_on_and_the_copy_says_so() {
    let geometry = cache(40);
    let fixture = Fixture::new(geometry);
    let (client, other) = (fixture.client(), fixture.client());
    (0..400).for_each(|i| other.t_set(format!("key{i}").as_bytes(), &[b'c'; 300]).unwrap());
    let before = dump(&other, &State::new()).unwrap();
    let mut n = 0;
    let (copy, copied) = backup(&client, geometry, &mut |_, _| {
        (0..20).for_each(|i| other.t_set(format!("key{}", (n * 20 + i) % 400).as_bytes(), &[b'd'; 300]).unwrap());
        n += 1;
    })
    .unwrap();
    assert!(copied.thinned && copy.len() < before.len());
    assert!(copy.iter().all(|(key, value)| before.get(key) == Some(value)), "something that was not there");
}

#[test]
fn the_error_of_a_second_backup_names_the_owner_of_the_first() {
    let fixture = Fixture::new(strict(120));
    let (client, other) = (fixture.client(), fixture.client());
    furnish(&client);
    let mut writer = client.writer().unwrap();
    let held = client.begin_snapshot(&mut writer).unwrap();
    let second = backup(&other, strict(120), &mut |_, _| ());
    assert!(matches!(&second, Err(BackupError::Running { .. })), "{}", second.is_ok());
    assert!(other.stats(0, 0).backup_pid.is_some());
    drop(held);
    drop(writer);
    assert!(other.stats(0, 0).backup_pid.is_none());
    backup(&other, strict(120), &mut |_, _| ()).unwrap();
}

#[test]
fn a_writer_stopped_within_a_write_is_named() {
    let fixture = Fixture::new(strict(120));
    let (client, other) = (fixture.client(), fixture.client());
    furnish(&other);
    let stopped = Arc::new(Mutex::new(None));
    let (seen, hand) = (stopped.clone(), client.clone());
    // Some access within the critical section: the backup begins while the writer is stopped there.
    other.probe.interrupt(60, move || {
        *seen.lock().unwrap() = Some(backup(&hand, strict(120), &mut |_, _| ()).map(|_| ()));
    });
    other.t_set(b"key2", b"slow").unwrap();
    let told = stopped.lock().unwrap().take().unwrap();
    assert!(matches!(&told, Err(BackupError::Source(WriteError::Busy { .. }))), "{told:?}");
    assert!(!other.snapshot().is_held());
}
