//! Deaths around backups: of the process that makes one, at each of its stores, and of a writer during one; and the
//! faults that show that the tests of backups find something.

use super::backup::backup;
use super::crash::{dump, is_sound, Cast, Effort, Rule, Scenario, State};
use super::fixture::{strict, Client, Fixture, Geometry};
use super::probe::until_death;
use super::transact::{apply, Op};

const GEOMETRY: Geometry = strict(120);

fn cast(fixture: &Fixture) -> Cast {
    let other = fixture.client();
    other.t_set(b"other", b"of the other").unwrap();
    let victim = fixture.client();
    for i in 0..6 {
        victim.t_set(format!("key{i}").as_bytes(), "value ".repeat(i + 1).as_bytes()).unwrap();
    }
    Cast { victim, others: vec![other] }
}

/// As [`cast`], with what a dead backup left: marks, some of them on records that live.
fn cast_after_a_dead_one(fixture: &Fixture) -> Cast {
    let cast = cast(fixture);
    let dead = fixture.client();
    let other = &cast.others[0];
    until_death(|| {
        let mut writer = dead.writer().unwrap();
        let _held = dead.begin_snapshot(&mut writer).unwrap();
        other.t_set(b"key1", b"superseded under a crashed one").unwrap();
        other.t_del(b"key2").unwrap();
        dead.kill();
        super::probe::die();
    });
    cast
}

const EFFORT: Effort = if cfg!(miri) { Effort { step: 91, repairs: 1 } } else { Effort { step: 3, repairs: 4 } };

#[test]
fn a_client_that_makes_a_backup_may_die() {
    for (name, setup) in [("backup", cast as fn(&Fixture) -> Cast), ("backup after a dead one", cast_after_a_dead_one)]
    {
        let act = |client: &mut Client| drop(backup(client, GEOMETRY, &mut |_, _| ()).unwrap());
        let scenario = Scenario { name, geometry: GEOMETRY, setup, act, rule: Rule::Whole };
        scenario.enumerate(EFFORT).expect_clean(name);
    }
}

type Act = fn(&Client);

/// What a writer may be about when it dies.
const WRITES: [(&str, Act); 6] = [
    ("replace", |c| c.t_set(b"key2", b"another").unwrap()),
    ("delete", |c| assert!(c.t_del(b"key2").unwrap())),
    ("large", |c| c.t_set(b"key3", &vec![b'x'; 9000]).unwrap()),
    ("clean", |c| {
        (0..5).for_each(|i| c.t_set(format!("key{i}").as_bytes(), &[b'y'; 500]).unwrap());
        c.t_compact().unwrap();
    }),
    ("transaction", |c| {
        apply(&**c, &[Op::Set(b"key2", b"one"), Op::Delete(b"key1"), Op::Set(b"never before", b"two")]);
    }),
    ("splits", |c| (0..40).for_each(|i| c.t_set(format!("new{i}").as_bytes(), b"v").unwrap())),
];

/// The writer dies after `at` stores of its act, in the middle of a backup. `None`: it lives.
fn die_during(act: Act, at: u64) -> Result<Option<()>, String> {
    let fixture = Fixture::new(GEOMETRY);
    let Cast { victim, others } = cast(&fixture);
    let before = dump(&others[0], &State::new())?;
    let mut lived = None;
    let copied = backup(&others[0], GEOMETRY, &mut |_, _| {
        if lived.is_none() {
            victim.probe.die_after(at);
            lived = Some(until_death(|| act(&victim)).is_some());
            if lived == Some(false) {
                victim.kill();
            }
        }
    });
    let (copy, _) = copied.map_err(|e| e.to_string())?;
    if copy != before {
        return Err(format!("death {at}: the copy is not the store of before"));
    }
    let survivor = fixture.client();
    survivor.sweep().map_err(|e| e.to_string())?;
    let now = dump(&survivor, &State::new())?;
    is_sound(&survivor, now.len() as u64).map_err(|e| format!("death {at}: {e}"))?;
    // The next one wants nothing of what this one left.
    let (again, _) = backup(&survivor, GEOMETRY, &mut |_, _| ()).map_err(|e| e.to_string())?;
    if again != now {
        return Err(format!("death {at}: the next copy is not the store of now"));
    }
    Ok((!lived.unwrap_or(true)).then_some(()))
}

#[test]
pub(super) fn writers_may_die_during_a_backup() {
    for (name, act) in WRITES {
        let mut at = 0;
        while die_during(act, at).unwrap_or_else(|e| panic!("{name}: {e}")).is_some() {
            at += if cfg!(miri) {
                97
            } else if at < 120 {
                1
            } else {
                5
            };
        }
        println!("{name}: {at} stores");
    }
}

/// A record was kept under a backup that died, and deleted: it does not come back in the next one.
#[test]
pub(super) fn nothing_deleted_comes_back() {
    let fixture = Fixture::new(GEOMETRY);
    let cast = cast_after_a_dead_one(&fixture);
    let client = &cast.others[0];
    let now = dump(client, &State::new()).unwrap();
    let (copy, _) = backup(client, GEOMETRY, &mut |_, _| ()).unwrap();
    assert!(copy == now, "what was deleted before came back");
}

/// Segments of kept records are emptied and wanted again.
#[test]
pub(super) fn retained_records_are_not_reused() {
    let fixture = Fixture::new(GEOMETRY);
    let (client, other) = (fixture.client(), fixture.client());
    let write = |with: u8| (0..60).for_each(|i| client.t_set(format!("key{i}").as_bytes(), &[with; 450]).unwrap());
    write(b'1');
    let before = dump(&client, &State::new()).unwrap();
    let (copy, _) = backup(&other, GEOMETRY, &mut |_, _| {
        write(b'2');
        client.t_compact().unwrap();
        write(b'3');
    })
    .unwrap();
    assert!(copy == before, "the copy is of no moment");
}
