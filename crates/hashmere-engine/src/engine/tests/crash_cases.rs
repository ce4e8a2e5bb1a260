//! The operations that are crashed after each of their stores.

use super::crash::{Cast, Effort, Rule, Scenario};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use crate::engine::index::split::Growth;
use crate::engine::index::Tree;
use crate::engine::log::segments::Need;
use crate::engine::{Tick, Unsigned};
use crate::fault;
use crate::types::{Attributes, Change, Counter, Expected, Ttl};
use hashmere_format::leaf::{Identity, LOCK_WORD};
use hashmere_format::uid::UidParts;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::sync::OnceLock;
use std::time::Duration;

const EFFORT: Effort = if cfg!(miri) { Effort { step: 41, repairs: 2 } } else { Effort { step: 1, repairs: 24 } };
/// For operations of a thousand stores.
const LONG: Effort = if cfg!(miri) { Effort { step: 401, repairs: 1 } } else { Effort { step: 7, repairs: 12 } };

fn run(name: &'static str, geometry: Geometry, setup: fn(&Fixture) -> Cast, act: fn(&mut Client)) {
    run_as(Scenario { name, geometry, setup, act, rule: Rule::Whole }, EFFORT);
}

fn run_as(scenario: Scenario, effort: Effort) {
    scenario.enumerate(effort).expect_clean(scenario.name);
}

/// Two clients with a record each.
pub(super) fn two(fixture: &Fixture) -> Cast {
    let other = fixture.client();
    other.t_set(b"other", b"of the other").unwrap();
    let victim = fixture.client();
    victim.t_set(b"mine", b"of the victim").unwrap();
    Cast { victim, others: vec![other] }
}

/// The same with some more keys of all kinds.
pub(super) fn few(fixture: &Fixture) -> Cast {
    let cast = two(fixture);
    for i in 0..4 {
        cast.victim.t_set(format!("key{i}").as_bytes(), "value ".repeat(i + 1).as_bytes()).unwrap();
    }
    cast.victim.t_incr(b"n", 1, Some(9)).unwrap();
    let expires = Attributes { flags: 5, ttl: Ttl::At(50_000), ..Attributes::NONE };
    cast.victim.t_put(b"ttl", b"expires", expires, crate::engine::When::Always).unwrap();
    cast
}

pub(super) fn with_large(fixture: &Fixture) -> Cast {
    let cast = few(fixture);
    cast.victim.t_set(b"large", &vec![b'L'; 9000]).unwrap();
    cast.victim.t_set(b"one", &vec![b'1'; 2000]).unwrap();
    cast
}

/// How often `step` can be done before `metric` of the client changes.
fn steps_before(
    geometry: Geometry,
    setup: fn(&Fixture) -> Cast,
    step: fn(&Client, u64),
    metric: fn(&Client) -> u64,
) -> u64 {
    let fixture = Fixture::new(geometry);
    let victim = setup(&fixture).victim;
    let before = metric(&victim);
    (0..100_000)
        .find(|i| {
            step(&victim, *i);
            metric(&victim) != before
        })
        .expect("the metric never changes")
}

/// A case whose operation is the step that changes a metric: the steps before it are part of the setup.
macro_rules! step_case {
    ($name:expr, $geometry:expr, $setup:expr, $step:expr, $metric:expr, $rule:expr, $effort:expr) => {{
        static STEPS: OnceLock<u64> = OnceLock::new();
        const STEP: fn(&Client, u64) = $step;
        fn steps() -> u64 {
            // The first caller measures: the number is that of a sound engine.
            *STEPS.get_or_init(|| fault::with(None, || steps_before($geometry, $setup, STEP, $metric)))
        }
        fn setup(fixture: &Fixture) -> Cast {
            let cast = $setup(fixture);
            (0..steps()).for_each(|i| STEP(&cast.victim, i));
            cast
        }
        fn act(victim: &mut Client) {
            STEP(victim, steps());
        }
        run_as(Scenario { name: $name, geometry: $geometry, setup, act, rule: $rule }, $effort);
    }};
}

fn splits(client: &Client) -> u64 {
    client.stats(0, 0).splits
}
fn segments(client: &Client) -> u64 {
    client.segments()
}
fn cleaned(client: &Client) -> u64 {
    client.stats(0, 0).segments_cleaned
}
fn evicted(client: &Client) -> u64 {
    client.stats(0, 0).evictions
}
fn expired(client: &Client) -> u64 {
    client.stats(0, 0).expiries
}
fn overflow_depth(client: &Client) -> u64 {
    client.depth(client.root_block(client.root()), Tree::Overflow).map_or(0, |d| u64::from(d) + 1)
}

/// A record of about a ninth of a segment.
fn set_wide(client: &Client, key: &str) {
    let value = format!("{key} {}", "w".repeat(440));
    client.t_set(key.as_bytes(), value.as_bytes()).unwrap();
}

#[test]
pub(super) fn set_of_a_new_key() {
    run("set new", strict(24), few, |c| c.t_set(b"new", b"new value").unwrap());
}

#[test]
pub(super) fn replacement() {
    run("replace", strict(24), few, |c| c.t_set(b"key2", b"replaced").unwrap());
}

#[test]
pub(super) fn deletion() {
    run("delete", strict(24), few, |c| assert!(c.t_del(b"key2").unwrap()));
}

#[test]
fn counting() {
    /// One that a touch could change in place: it is counted by the whole protocol.
    fn expiring(fixture: &Fixture) -> Cast {
        let cast = few(fixture);
        let expires = Attributes { ttl: Ttl::At(50_000), ..Attributes::NONE };
        cast.victim.t_put(b"e", b"7", expires, crate::engine::When::Always).unwrap();
        cast
    }
    run("counter", strict(24), few, |c| assert_eq!(c.t_incr(b"n", 1, None).unwrap(), Some(10)));
    run("counter, expires", strict(24), expiring, |c| assert_eq!(c.t_incr(b"e", 1, None).unwrap(), Some(8)));
    run("counter, new", strict(24), few, |c| assert_eq!(c.t_incr(b"m", 1, Some(3)).unwrap(), Some(3)));
    run("counter, removed", strict(24), few, |c| {
        let gone = |_| Ok(Tick::Delete);
        let tick = c.tick(&mut c.writer().unwrap(), (b"n", c.hash(b"n")), &Unsigned, Counter::EXISTING, gone);
        tick.unwrap();
    });
}

#[test]
fn cas() {
    run("cas", strict(24), few, |c| {
        let mut writer = c.writer().unwrap();
        let (seen, change) = (Expected::Value(b"value value "), Change::Set(b"compared"));
        c.cas(&mut writer, b"key1", c.hash(b"key1"), seen, change).unwrap();
    });
}

#[test]
fn updates() {
    run("append", strict(24), few, |c| c.t_append(b"key1", b"tail").map(drop).unwrap());
    run("touch in place", strict(24), few, |c| assert!(c.t_touch(b"ttl", Ttl::At(70_000)).unwrap()));
    run("touch again", strict(24), few, |c| assert!(c.t_touch(b"key1", Ttl::At(70_000)).unwrap()));
}

#[test]
pub(super) fn large_records() {
    run("large, new", strict(32), few, |c| c.t_set(b"large", &[b'n'; 5000]).unwrap());
    run("large, replaced", strict(32), with_large, |c| c.t_set(b"large", &[b'r'; 5000]).unwrap());
    run("large, to small", strict(32), with_large, |c| c.t_set(b"large", b"small").unwrap());
    run("large, deleted", strict(32), with_large, |c| assert!(c.t_del(b"large").unwrap()));
    run("one segment, replaced", strict(32), with_large, |c| c.t_set(b"one", &[b'r'; 1500]).unwrap());
    run("one segment, deleted", strict(32), with_large, |c| assert!(c.t_del(b"one").unwrap()));
}

#[test]
pub(super) fn splitting() {
    const GEOMETRY: Geometry = strict(32).small_leaves();
    step_case!(
        "split",
        GEOMETRY,
        two,
        |c, i| c.t_set(format!("s{i}").as_bytes(), b"split").unwrap(),
        splits,
        Rule::Whole,
        EFFORT
    );
}

#[test]
fn growing_the_index_in_advance() {
    let presize = |c: &mut Client| c.presize(&mut c.writer().unwrap(), 15 * 16).unwrap();
    run_as(
        Scenario { name: "presize", geometry: strict(32).small_leaves(), setup: few, act: presize, rule: Rule::Whole },
        LONG,
    );
}

#[test]
fn doubling_into_a_new_chunk() {
    fn deep(fixture: &Fixture) -> Cast {
        let cast = few(fixture);
        cast.victim.presize(&mut cast.victim.writer().unwrap(), 15 * 64).unwrap();
        cast
    }
    run("doubling", strict(40).small_leaves(), deep, |c| double(c, 6));
}

/// Splits the leaf of a key whose depth is that of the directory.
fn double(c: &Client, depth: u32) {
    let mut writer = c.writer().unwrap();
    let root = c.enter(&mut writer);
    let leaf = c.leaf_of(root, Tree::First, c.hash(b"key1").hash).unwrap().unwrap();
    let id = Identity::unpack(c.mem.load(leaf, Ordering::Acquire)).unwrap();
    assert_eq!(id.depth, depth);
    assert!(matches!(c.split(&mut writer, root, Tree::First, leaf, id).unwrap(), Growth::Grown));
    c.mem.store(writer.row + hashmere_format::row::at::ACTIVE, 0, Ordering::Release);
}

/// The new half of the directory is as long as two segments.
#[test]
pub(super) fn doubling_into_several_segments() {
    fn deep(fixture: &Fixture) -> Cast {
        let cast = few(fixture);
        cast.victim.presize(&mut cast.victim.writer().unwrap(), 15 * 1024).unwrap();
        cast
    }
    run("doubling, two segments", strict(90).small_leaves(), deep, |c| double(c, 10));
}

#[test]
pub(super) fn overflowing() {
    const GEOMETRY: Geometry = strict(32).small_leaves();
    step_case!(
        "overflow tree planted",
        GEOMETRY,
        two,
        |c, i| c.t_set(format!("#{i}").as_bytes(), b"o").unwrap(),
        overflow_depth,
        Rule::Whole,
        EFFORT
    );
    fn colliding(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        (0..17).for_each(|i| cast.victim.t_set(format!("#{i}").as_bytes(), b"collides").unwrap());
        cast
    }
    run("overflow, new", GEOMETRY, colliding, |c| c.t_set(b"#99", b"new").unwrap());
    run("overflow, replaced", GEOMETRY, colliding, |c| c.t_set(b"#16", b"replaced").unwrap());
    run("overflow, deleted", GEOMETRY, colliding, |c| assert!(c.t_del(b"#16").unwrap()));
    step_case!(
        "overflow, split",
        GEOMETRY,
        colliding,
        |c, i| c.t_set(format!("#x{i}").as_bytes(), b"o").unwrap(),
        splits,
        Rule::Whole,
        EFFORT
    );
}

/// A client that holds a lock in the leaf of a key, which is not the key's own. Dies when it is dropped.
fn holder(c: &Client, tree: Tree, hash: u64) -> Client {
    let third = c.beside();
    let writer = third.writer().unwrap();
    let leaf = third.leaf_of(third.root(), tree, hash).unwrap().unwrap();
    let own = third.place(leaf, hash).first;
    let bucket = third.leaf_buckets(leaf).filter(|bucket| *bucket != own).last().unwrap();
    third.mem.store(writer.row + hashmere_format::row::at::LOCK, bucket, Ordering::Relaxed);
    third.acquire(writer.slot, bucket + LOCK_WORD).unwrap();
    drop(writer);
    third
}

fn uid_of(c: &Client, key: &str) -> UidParts {
    let meta = c.peek(key.as_bytes(), c.t_hash(key.as_bytes())).unwrap().unwrap();
    UidParts::from_uid(meta.uid.0)
}

/// A lock does not come: the split is undone, the key goes to the overflow tree.
#[test]
fn splits_that_are_given_up() {
    const GEOMETRY: Geometry = strict(32).small_leaves();
    static STEPS: OnceLock<u64> = OnceLock::new();
    const STEP: fn(&Client, u64) = |c, i| c.t_set(format!("s{i}").as_bytes(), b"split").unwrap();
    fn steps() -> u64 {
        *STEPS.get_or_init(|| fault::with(None, || steps_before(GEOMETRY, two, STEP, splits)))
    }
    fn setup(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        (0..steps()).for_each(|i| STEP(&cast.victim, i));
        cast
    }
    fn act(victim: &mut Client) {
        let _third = holder(victim, Tree::First, victim.hash(format!("s{}", steps()).as_bytes()).hash);
        STEP(victim, steps());
        assert_eq!(uid_of(victim, &format!("s{}", steps())).tree, 1);
    }
    run("split, given up", GEOMETRY, setup, act);
}

/// The same in the overflow tree: the key goes there under its second hash.
#[test]
fn overflow_under_the_second_hash() {
    const GEOMETRY: Geometry = strict(32).small_leaves();
    static STEPS: OnceLock<u64> = OnceLock::new();
    const STEP: fn(&Client, u64) = |c, i| c.t_set(format!("#x{i}").as_bytes(), b"o").unwrap();
    fn colliding(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        (0..17).for_each(|i| cast.victim.t_set(format!("#{i}").as_bytes(), b"collides").unwrap());
        cast
    }
    fn steps() -> u64 {
        *STEPS.get_or_init(|| fault::with(None, || steps_before(GEOMETRY, colliding, STEP, splits)))
    }
    fn setup(fixture: &Fixture) -> Cast {
        let cast = colliding(fixture);
        (0..steps()).for_each(|i| STEP(&cast.victim, i));
        cast
    }
    fn act(victim: &mut Client) {
        let key = format!("#x{}", steps());
        let [hash, second] = victim.layout.hasher.overflow(key.as_bytes());
        let _third = holder(victim, Tree::Overflow, hash);
        STEP(victim, steps());
        let uid = uid_of(victim, &key);
        assert_eq!((uid.tree, u64::from(uid.bits)), (1, second & ((1 << Tree::Overflow.depth_max()) - 1)));
    }
    run("overflow, second hash", GEOMETRY, setup, act);
}

#[test]
pub(super) fn opening_segments() {
    step_case!("next segment", strict(24), two, |c, i| set_wide(c, &format!("w{i}")), segments, Rule::Whole, EFFORT);
    fn partial(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        let mut third = fixture.client();
        third.t_set(b"third", b"leaves a segment that is partly filled").unwrap();
        third.retire();
        Cast { victim: fixture.client(), ..cast }
    }
    run("claim, adopt, set", strict(24), partial, |c| c.t_set(b"adopted", b"into what was left").unwrap());
    run("claim, release", strict(24), partial, |c| {
        drop(c.writer().unwrap());
        c.retire()
    });
    run("release", strict(24), few, |c| c.retire());
}

/// Many wide records of the other client.
fn wide(fixture: &Fixture) -> Cast {
    let cast = two(fixture);
    (0..60).for_each(|i| set_wide(&cast.others[0], &format!("w{i}")));
    cast
}

/// Enough of them that their segments are worth cleaning between writes once they are deleted.
const WIDER: u64 = 90;

fn wider(fixture: &Fixture) -> Cast {
    let cast = wide(fixture);
    (60..WIDER).for_each(|i| set_wide(&cast.others[0], &format!("w{i}")));
    cast
}

fn delete_most(c: &Client, i: u64) {
    let n = i * 7 % WIDER;
    c.t_del(format!("w{n}").as_bytes()).unwrap();
}

#[test]
fn cleaning_between_writes() {
    step_case!("clean", strict(48), wider, delete_most, cleaned, Rule::Whole, LONG);
}

#[test]
fn cleaning_beside_a_pin() {
    fn pinned(fixture: &Fixture) -> Cast {
        let cast = wider(fixture);
        let other = &cast.others[0];
        for i in (0..WIDER).step_by(5) {
            let key = format!("w{i}").into_bytes();
            let found = other.read(&key, other.hash(&key), |found| Ok(*found)).unwrap().unwrap();
            other.pin(found.slot_offset, found.slot, other.root(), &mut false).unwrap();
        }
        cast
    }
    step_case!("clean, pinned", strict(48), pinned, delete_most, cleaned, Rule::Whole, LONG);
}

/// Some keys stay, between others that are overwritten again and again.
fn overwrite(c: &Client, i: u64) {
    let key = if i < 60 && i % 4 == 0 { format!("stays{i}") } else { format!("o{}", i % 3) };
    set_wide(c, &key);
}

#[test]
pub(super) fn emergency_cleaning() {
    step_case!("forced clean", strict(9), two, overwrite, cleaned, Rule::Whole, LONG);
    fn tight(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        (0..60).for_each(|i| overwrite(&cast.victim, i));
        cast
    }
    let large = |c: &mut Client| drop(c.t_set(b"large", &[b'l'; 5000]));
    run_as(
        Scenario { name: "large, in an emergency", geometry: strict(12), setup: tight, act: large, rule: Rule::Whole },
        LONG,
    );
}

#[test]
fn evicting() {
    step_case!("evict", cache(12), two, |c, i| set_wide(c, &format!("e{i}")), evicted, Rule::Evicts, LONG);
    step_case!(
        "evict large",
        cache(24),
        two,
        |c, i| c.t_set(format!("e{i}").as_bytes(), &[b'e'; 5000]).unwrap(),
        evicted,
        Rule::Evicts,
        LONG
    );
}

/// A full store in which a row has to be made of segments in use.
fn crowded(fixture: &Fixture) -> Cast {
    let cast = two(fixture);
    cast.others[0].t_set(b"one", &[b'1'; 2000]).unwrap();
    (0..40).for_each(|i| set_wide(&cast.victim, &format!("c{i}")));
    (0..40).filter(|i| i % 3 == 0).for_each(|i| drop(cast.victim.t_get(format!("c{i}").as_bytes()).unwrap()));
    cast.victim.t_set(b"old", &[b'o'; 9000]).unwrap();
    (40..60).for_each(|i| set_wide(&cast.victim, &format!("c{i}")));
    cast
}

#[test]
fn evicting_neighbours() {
    let large = |c: &mut Client| c.t_set(b"large", &[b'l'; 13_000]).unwrap();
    run_as(Scenario { name: "evict a row", geometry: cache(12), setup: crowded, act: large, rule: Rule::Evicts }, LONG);
}

#[test]
fn cleaning_neighbours() {
    /// Free segments, but no four that are neighbours.
    fn scattered(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        (0..100).for_each(|i| set_wide(&cast.victim, &format!("s{i}")));
        let gone = |i: &u64| i / 8 % 2 == 0 || i % 8 > 4;
        (0..100).filter(gone).for_each(|i| assert!(cast.victim.t_del(format!("s{i}").as_bytes()).unwrap()));
        cast
    }
    let large = |c: &mut Client| c.t_set(b"large", &[b'l'; 13_000]).unwrap();
    run_as(
        Scenario { name: "clean a row", geometry: strict(18), setup: scattered, act: large, rule: Rule::Whole },
        LONG,
    );
}

#[test]
fn dropping_what_expired() {
    fn expiring(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        for i in 0..50 {
            let value = vec![b'x'; 450];
            let ttl = Attributes { flags: 0, ttl: Ttl::At(2000), ..Attributes::NONE };
            cast.others[0].t_put(format!("x{i}").as_bytes(), &value, ttl, crate::engine::When::Always).unwrap();
        }
        fixture.peers.advance(Duration::from_secs(10));
        cast
    }
    step_case!("expire", cache(12), expiring, |c, i| set_wide(c, &format!("e{i}")), expired, Rule::Evicts, LONG);
}

#[test]
fn removing_one_that_expired() {
    fn expired(fixture: &Fixture) -> Cast {
        let cast = few(fixture);
        fixture.peers.advance(Duration::from_secs(100));
        cast
    }
    fn act(c: &mut Client) {
        assert!(c.may_be_expired(b"ttl", c.hash(b"ttl")) && !c.may_be_expired(b"key1", c.hash(b"key1")));
        let mut writer = c.writer().unwrap();
        assert!(!c.expire(&mut writer, b"key1", c.hash(b"key1")).unwrap());
        assert!(c.expire(&mut writer, b"ttl", c.hash(b"ttl")).unwrap());
        assert!(!c.expire(&mut writer, b"ttl", c.hash(b"ttl")).unwrap());
    }
    // What has expired is counted until it is removed, and not found: no death shows the same number of both.
    let rule = Rule::Evicts;
    run_as(Scenario { name: "remove expired", geometry: strict(16), setup: expired, act, rule }, EFFORT);
}

#[test]
fn removing_all_that_expired() {
    fn expired(fixture: &Fixture) -> Cast {
        let cast = few(fixture);
        for i in 0..3 {
            let expires = Attributes { ttl: Ttl::At(50_000), ..Attributes::NONE };
            cast.others[0].t_put(format!("x{i}").as_bytes(), b"x", expires, crate::engine::When::Always).unwrap();
        }
        cast.others[0].t_del(b"other").unwrap();
        fixture.peers.advance(Duration::from_secs(100));
        cast
    }
    // As above.
    let act = |c: &mut Client| _ = c.t_compact().unwrap();
    let rule = Rule::Evicts;
    run_as(Scenario { name: "compact, expired", geometry: strict(16), setup: expired, act, rule }, EFFORT);
}

/// Both buckets of the key are full, and the index cannot grow.
#[test]
fn evicting_beside_a_key() {
    fn full(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        (0..14).for_each(|i| cast.others[0].t_set(format!("#{i}").as_bytes(), b"beside").unwrap());
        cast
    }
    fn act(c: &mut Client) {
        let mut writer = c.writer().unwrap();
        writer.full_at = c.t_hash(b"#0").hash;
        let before = c.items();
        assert!(c.evict_beside(&mut writer).unwrap() && c.items() == before - 1);
    }
    let rule = Rule::Evicts;
    run_as(Scenario { name: "evict beside", geometry: cache(16), setup: full, act, rule }, EFFORT);
}

#[test]
pub(super) fn clearing() {
    run("clear", strict(32), with_large, |c| c.t_clear().unwrap());
    fn grown(fixture: &Fixture) -> Cast {
        let cast = wide(fixture);
        cast.victim.presize(&mut cast.victim.writer().unwrap(), 15 * 64).unwrap();
        cast
    }
    run("clear, grown", strict(48).small_leaves(), grown, |c| c.t_clear().unwrap());
}

#[test]
fn views() {
    run("view", strict(24), few, |c| drop(c.t_view(b"key1", c.hash(b"key1")).unwrap()));
}

#[test]
fn growing_the_segment_table() {
    fn long(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        let other = &cast.others[0];
        let writer = other.writer().unwrap();
        let n = 4095 - other.segments();
        other.grow(writer.slot, n, Need::Normal, &mut None).unwrap();
        drop(writer);
        cast
    }
    let large = |c: &mut Client| c.t_set(b"large", &[b'l'; 5000]).unwrap();
    run_as(
        Scenario { name: "table", geometry: strict(4096 + 64 + 24), setup: long, act: large, rule: Rule::Whole },
        LONG,
    );
}

#[test]
fn full_disk() {
    fn full(fixture: &Fixture) -> Cast {
        let cast = wide(fixture);
        fixture.heap.set_budget(fixture.heap.backed_bytes());
        cast
    }
    run_as(
        Scenario {
            name: "disk full",
            geometry: strict(48),
            setup: full,
            act: |c| {
                let _ = c.t_set(b"large", &[b'l'; 9000]);
            },
            rule: Rule::Whole,
        },
        EFFORT,
    );
}
