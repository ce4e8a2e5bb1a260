//! Cleaning, clearing and repairs that are interrupted: they move, free and judge nothing that another client changes
//! during them.

use super::{churn, churn_large, delete, filled, many, set, tolerate, wide, with_large, Case};
use crate::engine::reclaim::clean::Policy;
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{cache, strict, Client, Fixture};
use crate::engine::When;
use crate::types::{Attributes, Ttl};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Catches a cleaner that frees a large record of today because of what it knew of yesterday's in the same place.
#[test]
pub(in super::super) fn compact_while_large_records_come_and_go() {
    fn setup(fixture: &Fixture, actor: &Client, other: &Client, state: &mut State) {
        with_large(fixture, actor, other, state);
        // A dead large record that is not reclaimed yet: its writer died.
        let third = fixture.client();
        third.t_set(b"dead", &[b'd'; 3000]).unwrap();
        third.probe.rewind();
        third.probe.die_after(LARGE_DEAD);
        let _ = super::super::probe::until_death(|| third.t_del(b"dead"));
        third.kill();
        other.sweep().unwrap();
    }
    let act = |c: &Client, _: &mut State| tolerate(c.t_compact());
    Case { name: "compact/large", geometry: strict(16), setup, act, concurrent: churn_large, exact: true }.run();
}

/// Stores of a deletion up to the count of dead bytes, so that the large record is dead and not yet reclaimed.
const LARGE_DEAD: u64 = 17;

/// Catches a compaction that moves or frees what another client is changing.
#[test]
fn compact_while_records_come_and_go() {
    fn setup(fixture: &Fixture, actor: &Client, other: &Client, state: &mut State) {
        filled(fixture, actor, other, state);
        for i in 0..40 {
            set(actor, state, &format!("d{i}"), wide("deleted")).unwrap();
        }
        for i in (0..40).filter(|i| i % 4 != 0) {
            // By different clients, so that none of them cleans between writes.
            let third = fixture.client();
            delete(&third, state, &format!("d{i}")).unwrap();
        }
    }
    let act = |c: &Client, _: &mut State| tolerate(c.t_compact());
    Case { name: "compact/churn", geometry: strict(24), setup, act, concurrent: churn, exact: true }.run();
}

/// Catches a cleaner that moves what another client has just overwritten: the value of before would be back.
#[test]
pub(in super::super) fn clean_while_what_lives_is_overwritten() {
    fn act(c: &Client, _: &mut State) -> Result<(), String> {
        let mut writer = c.writer().map_err(|e| e.to_string())?;
        (0..c.segments()).try_for_each(|segment| tolerate(c.clean_segment(&mut writer, segment, Policy::Move)))
    }
    let concurrent = |c: &Client, state: &mut State| set(c, state, "a0", wide("overwritten"));
    Case { name: "clean/replace", geometry: strict(24), setup: filled, act, concurrent, exact: true }.run();
}

/// Catches a removal of what expired that does not look again: just before its time was over the key was touched, and
/// lives.
#[test]
pub(in super::super) fn expire_while_it_is_touched() {
    let acts: [fn(&Client); 2] = [
        |c| _ = c.t_compact(),
        |c| {
            if c.may_be_expired(b"ttl", c.hash(b"ttl")) {
                let _ = c.expire(&mut c.writer().unwrap(), b"ttl", c.hash(b"ttl"));
            }
        },
    ];
    for act in acts {
        let once = |at: u64| {
            let fixture = Fixture::new(strict(16));
            let (actor, other) = (fixture.client(), fixture.client());
            fixture.peers.set_now_ms(1000);
            let ttl = Attributes { ttl: Ttl::At(2000), ..Attributes::NONE };
            other.t_put(b"ttl", b"value", ttl, When::Always).unwrap();
            drop(actor.writer().unwrap());
            actor.probe.rewind();
            fixture.peers.set_now_ms(5000);
            let (hooked, peers, touched) = (other.clone(), fixture.peers.clone(), Arc::new(AtomicBool::new(false)));
            let told = touched.clone();
            actor.probe.interrupt(at, move || {
                // Who looks at the word and then, after a pause, at the clock sees a touched key as past. No client can
                // be interrupted between these two here, so the clock goes back for a moment.
                peers.set_now_ms(1000);
                told.store(matches!(hooked.t_touch(b"ttl", Ttl::At(90_000)), Ok(true)), Ordering::Relaxed);
                peers.set_now_ms(5000);
            });
            act(&actor);
            let lives = fixture.reader().t_get(b"ttl").unwrap().is_some();
            assert_eq!(lives, touched.load(Ordering::Relaxed), "interrupted before access {at}");
            assert!(other.check().is_clean());
            actor.probe.accesses()
        };
        let accesses = once(u64::MAX);
        (0..accesses.min(if cfg!(miri) { 40 } else { 4000 })).for_each(|at| _ = once(at));
    }
}

/// Catches one that lets go of a record for the sake of a key beside it, and removes what another client just put in
/// its place.
#[test]
fn evict_beside_while_it_is_overwritten() {
    fn setup(_: &Fixture, actor: &Client, other: &Client, state: &mut State) {
        set(actor, state, "actor", b"a".to_vec()).unwrap();
        (0..14).for_each(|i| set(other, state, &format!("#{i}"), b"first".to_vec()).unwrap());
    }
    fn act(c: &Client, _: &mut State) -> Result<(), String> {
        let mut writer = c.writer().map_err(|e| e.to_string())?;
        writer.full_at = c.t_hash(b"#0").hash;
        tolerate(c.evict_beside(&mut writer))
    }
    let concurrent =
        |c: &Client, state: &mut State| (0..14).try_for_each(|i| set(c, state, &format!("#{i}"), b"second".to_vec()));
    Case { name: "evict beside/replace", geometry: cache(16), setup, act, concurrent, exact: false }.run();
}

/// Catches a clear that loses or keeps what is written at the same time, or frees what is still in use.
#[test]
fn clear_while_records_come_and_go() {
    let act = |c: &Client, _: &mut State| tolerate(c.t_clear());
    Case { name: "clear/churn", geometry: strict(24), setup: filled, act, concurrent: churn, exact: false }.run();
}

/// Catches a repair that judges by what others are just changing.
#[test]
fn sweep_while_the_index_grows() {
    fn setup(fixture: &Fixture, actor: &Client, other: &Client, state: &mut State) {
        // The same each time, and long to find.
        static DIED: OnceLock<u64> = OnceLock::new();
        filled(fixture, actor, other, state);
        // Dies when its large record, which the next split moves, is in the index, and does not yet say so.
        let key = (0..).map(|n| format!("large{n}")).find(|key| c_hash(actor, key) & 1 == 1).unwrap();
        let is_it = |stores: &u64| {
            let image = fixture.image();
            die_in_large(&image, &key, *stores);
            let there = image.reader().t_get(key.as_bytes()).unwrap().is_some();
            let unrecovered = (0..actor.segments() + 9)
                .any(|s| image.client().state(s).state == hashmere_format::segment::State::LargeNew);
            there && unrecovered
        };
        die_in_large(fixture, &key, *DIED.get_or_init(|| (0..2000).find(is_it).unwrap()));
        state.insert(key.into_bytes(), vec![b'l'; 3000]);
    }
    let act = |c: &Client, _: &mut State| tolerate(c.sweep());
    Case { name: "sweep/split", geometry: strict(24).small_leaves(), setup, act, concurrent: many, exact: true }.run();
}

fn c_hash(c: &Client, key: &str) -> u64 {
    c.hash(key.as_bytes()).hash
}

fn die_in_large(fixture: &Fixture, key: &str, stores: u64) {
    let third = fixture.client();
    third.writer().map(drop).unwrap();
    third.probe.die_after(stores);
    let _ = super::super::probe::until_death(|| third.t_set(key.as_bytes(), &[b'l'; 3000]));
    third.kill();
}
