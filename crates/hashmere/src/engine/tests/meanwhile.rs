//! One client is interrupted before each of its accesses in turn, and another does a whole lot in between.
//!
//! Of all interleavings of two clients these are the ones with one interruption: few enough to try every one, and
//! most races show in one of them. Nothing is left to chance.

use super::audit::audit;
use super::crash::{attempt, dump, is_sound, State};
use super::world::{cache, strict, Client, Geometry, World};
use crate::engine::clean::Policy;
use crate::error::WriteError;
use crate::types::{Attributes, Ttl};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What a client does, and what it makes of the store as far as it was told.
type Act = fn(&Client, &mut State) -> Result<(), String>;

struct Case {
    name: &'static str,
    geometry: Geometry,
    setup: fn(&World, &Client, &Client, &mut State),
    act: Act,
    meanwhile: Act,
    /// Whether the store must hold what both were told in the end: not if it was cleared meanwhile, or evicts.
    exact: bool,
}

/// About as many interruptions are tried of each case.
const TRIED: u64 = if cfg!(miri) { 4 } else { 700 };

impl Case {
    fn run(&self) {
        let accesses = self.once(u64::MAX).unwrap();
        let mut failures = BTreeMap::new();
        for at in (0..accesses).step_by(accesses.div_ceil(TRIED) as usize) {
            let outcome = attempt(|| self.once(at).map(drop));
            if let Err(text) = outcome {
                failures.entry(text).or_insert((0, at)).0 += 1;
            }
        }
        println!("{}: {accesses} accesses", self.name);
        let list = failures.iter().map(|(text, (n, at))| format!("  {text} ({n} times, first at access {at})\n"));
        let list: String = list.collect();
        assert!(list.is_empty(), "{}:\n{list}", self.name);
    }

    /// With one interruption before access `at`. Returns how many accesses there were.
    fn once(&self, at: u64) -> Result<u64, String> {
        let world = World::new(self.geometry);
        let (actor, other) = (world.client(), world.client());
        let mut state = State::new();
        (self.setup)(&world, &actor, &other, &mut state);
        let told = Arc::new(Mutex::new((state.clone(), Ok(()))));
        let (hooked, theirs, meanwhile) = (other.clone(), told.clone(), self.meanwhile);
        actor.probe.interrupt(at, move || {
            let mut told = theirs.lock().unwrap();
            let mut after = told.0.clone();
            told.1 = meanwhile(&hooked, &mut after);
            told.0 = after;
        });
        actor.probe.be_lenient();
        let mut mine = state.clone();
        (self.act)(&actor, &mut mine)?;
        let accesses = actor.probe.accesses();
        let (theirs, outcome) = told.lock().unwrap().clone();
        outcome.map_err(|e| format!("meanwhile: {e}"))?;
        // What one of them changed is as it says; the rest is as it was.
        let mut expected = state.clone();
        for told in [theirs, mine] {
            for key in state.keys().chain(told.clone().keys()) {
                if told.get(key) != state.get(key) {
                    match told.get(key) {
                        Some(value) => drop(expected.insert(key.clone(), value.clone())),
                        None => drop(expected.remove(key)),
                    }
                }
            }
        }
        let now = dump(&world.reader(), &expected)?;
        if self.exact && now != expected {
            let key = now.keys().chain(expected.keys()).find(|k| now.get(*k) != expected.get(*k)).unwrap();
            let show =
                |v: Option<&Vec<u8>>| v.map_or("nothing".into(), |v| v[..v.len().min(20)].escape_ascii().to_string());
            return Err(format!("{} is {}, not {}", key.escape_ascii(), show(now.get(key)), show(expected.get(key))));
        }
        is_sound(&other, now.len() as u64)?;
        audit(&other)?;
        Ok(accesses)
    }
}

fn set(c: &Client, state: &mut State, key: &str, value: Vec<u8>) -> Result<(), String> {
    match c.t_set(key.as_bytes(), &value) {
        Ok(()) => drop(state.insert(key.into(), value)),
        // The other one holds the lock, and will for as long as we wait: nothing was changed.
        Err(WriteError::Busy { .. } | WriteError::Full { .. }) => {}
        Err(error) => return Err(format!("set: {error}")),
    }
    Ok(())
}

fn delete(c: &Client, state: &mut State, key: &str) -> Result<(), String> {
    match c.t_del(key.as_bytes()) {
        Ok(there) => (state.remove(key.as_bytes()).is_some() == there).then_some(()).ok_or("delete lies".into()),
        Err(WriteError::Busy { .. }) => Ok(()),
        Err(error) => Err(format!("delete: {error}")),
    }
}

fn tolerate<T>(result: Result<T, WriteError>) -> Result<(), String> {
    match result {
        Ok(_) | Err(WriteError::Busy { .. } | WriteError::Full { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The key `prefix` with the `i`-th number of those that need another lock than `a0`: the one who is interrupted may hold
/// that one.
fn apart(c: &Client, prefix: &str, i: u64) -> String {
    let bucket = |key: &str| hashmere_format::hash::buckets(c.hash(key.as_bytes()).hash, c.buckets).0;
    let mut keys = (0..).map(|n| format!("{prefix}{n}")).filter(|key| bucket(key) != bucket("a0"));
    keys.nth(i as usize).unwrap()
}

fn wide(text: &str) -> Vec<u8> {
    format!("{text} {}", "w".repeat(440)).into_bytes()
}

/// Eight wide records, which fill a segment that nobody has open.
fn filled(world: &World, actor: &Client, other: &Client, state: &mut State) {
    set(other, state, "other", b"o".to_vec()).unwrap();
    set(actor, state, "actor", b"a".to_vec()).unwrap();
    let mut third = world.client();
    set(&third, state, "a0", wide("first")).unwrap();
    for i in 0..7 {
        set(&third, state, &apart(&third, "a", i), wide("first")).unwrap();
    }
    third.retire();
}

/// Overwrites all but `a0`, has every segment cleaned that can be, and fills what was freed.
fn churn(c: &Client, state: &mut State) -> Result<(), String> {
    for round in 0..2 {
        for i in 0..7 {
            set(c, state, &apart(c, "a", i), wide(&format!("round {round}")))?;
        }
    }
    let mut lane = c.lane().map_err(|e| e.to_string())?;
    for segment in 0..c.segments() {
        tolerate(c.clean_segment(&mut lane, segment, Policy::Move))?;
    }
    drop(lane);
    (0..24).try_for_each(|i| set(c, state, &apart(c, "b", i), wide("more")))
}

fn churn_all(c: &Client, state: &mut State) -> Result<(), String> {
    set(c, state, "a0", wide("second"))?;
    churn(c, state)?;
    set(c, state, "a0", wide("third"))
}

fn get_first(c: &Client, _: &mut State) -> Result<(), String> {
    let got = c.t_get(b"a0").map_err(|e| format!("get: {e}"))?.ok_or("a present key was missed")?;
    let good = [wide("first"), wide("second"), wide("third")].contains(&got);
    good.then_some(()).ok_or_else(|| format!("got {}", got[..got.len().min(30)].escape_ascii()))
}

/// Catches a reader that takes bytes of a recycled segment for its value, or misses a record that moves.
#[test]
fn get_while_everything_is_recycled() {
    Case { name: "get/churn", geometry: strict(12), setup: filled, act: get_first, meanwhile: churn_all, exact: true }
        .run();
}

/// The value of a key says its own length and flags.
fn self_describing(c: &Client, state: &mut State, n: u32) -> Result<(), String> {
    let value = vec![b'0' + n as u8; 300 + 40 * n as usize];
    let with = Attributes { flags: n, ttl: if n % 2 == 0 { Ttl::Never } else { Ttl::At(90_000) }, ..Attributes::NONE };
    match c.t_put(b"self", &value, with, crate::engine::When::Always) {
        Ok(_) => drop(state.insert(b"self".to_vec(), value)),
        Err(WriteError::Busy { .. }) => {}
        Err(error) => return Err(error.to_string()),
    }
    Ok(())
}

/// Catches a pin that is taken on a slot whose word came back: same key, same place, another record.
#[test]
fn view_while_the_same_slot_word_returns() {
    fn setup(_: &World, actor: &Client, other: &Client, state: &mut State) {
        set(actor, state, "actor", b"a".to_vec()).unwrap();
        self_describing(other, state, 0).unwrap();
    }
    fn view(c: &Client, _: &mut State) -> Result<(), String> {
        let item = c.t_view(b"self", c.hash(b"self")).map_err(|e| e.to_string())?.ok_or("missed")?;
        let n = item.meta.flags;
        let good = item.value == vec![b'0' + n as u8; 300 + 40 * n as usize];
        good.then_some(()).ok_or_else(|| {
            format!(
                "a view of {} bytes with flags {n} begins with {}",
                item.value.len(),
                item.value[..3].escape_ascii()
            )
        })
    }
    /// Overwrites until the record stands where it stood at first, in another life of its segment.
    fn come_round(c: &Client, state: &mut State) -> Result<(), String> {
        let kh = c.hash(b"self");
        let place = |c: &Client| c.read(b"self", kh, |f| Ok(f.slot)).unwrap().unwrap();
        let first = place(c);
        for n in 1..400 {
            self_describing(c, state, n % 7)?;
            if place(c) == first && n % 7 != 0 {
                break;
            }
        }
        Ok(())
    }
    Case { name: "view/same word", geometry: strict(6), setup, act: view, meanwhile: come_round, exact: true }.run();
}

fn clear_and_refill(c: &Client, state: &mut State) -> Result<(), String> {
    match c.t_clear() {
        Ok(()) => state.clear(),
        Err(WriteError::Busy { .. }) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    }
    set(c, state, "a0", wide("second"))?;
    // To the last byte: then the index of before is the record of somebody.
    let full = |c: &Client| c.free_segments() <= 2 && c.segments() == c.segments_max();
    (0..2000).take_while(|_| !full(c)).try_for_each(|i| set(c, state, &format!("r{i}"), wide("refill")))
}

/// As [`filled`], with so much more that a clear frees more than the reserve.
fn filled_more(world: &World, actor: &Client, other: &Client, state: &mut State) {
    filled(world, actor, other, state);
    (0..24).for_each(|i| set(other, state, &format!("more{i}"), wide("first")).unwrap());
}

/// Catches a reader that takes the recycled index of before a clear for damage, or for the index of today.
#[test]
fn get_while_the_store_is_cleared() {
    fn get(c: &Client, state: &mut State) -> Result<(), String> {
        match c.t_get(b"a0") {
            Ok(None) => Ok(()),
            Ok(Some(_)) => get_first(c, state),
            Err(error) => Err(error.to_string()),
        }
    }
    Case {
        name: "get/clear",
        geometry: strict(12),
        setup: filled_more,
        act: get,
        meanwhile: clear_and_refill,
        exact: false,
    }
    .run();
}

/// Catches a scan that takes the recycled index of before a clear for damage.
#[test]
fn scan_while_the_store_is_cleared() {
    fn scan(c: &Client, _: &mut State) -> Result<(), String> {
        let pairs = c.t_scan().map_err(|e| format!("scan: {e}"))?;
        let known = |v: &Vec<u8>| v.ends_with(b"w") || v.len() == 1;
        pairs.iter().all(|(_, v)| known(v)).then_some(()).ok_or("the scan returned what was never stored".into())
    }
    Case {
        name: "scan/clear",
        geometry: strict(12).small_leaves(),
        setup: filled_more,
        act: scan,
        meanwhile: clear_and_refill,
        exact: false,
    }
    .run();
}

fn many(c: &Client, state: &mut State) -> Result<(), String> {
    (0..90).try_for_each(|i| set(c, state, &format!("m{i}"), format!("many {i}").into_bytes()))
}

/// Catches a scan that returns a key twice or not at all because leaves split, and a record that was overwritten.
#[test]
pub(super) fn scan_while_the_index_grows() {
    fn scan(c: &Client, state: &mut State) -> Result<(), String> {
        let mut pairs = c.t_scan().map_err(|e| format!("scan: {e}"))?;
        pairs.retain(|(k, _)| !k.starts_with(b"m"));
        let many = pairs.len();
        let seen: State = pairs.into_iter().collect();
        (many == state.len() && seen.keys().eq(state.keys()))
            .then_some(())
            .ok_or_else(|| format!("{many} of {} keys", state.len()))
    }
    Case {
        name: "scan/split",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act: scan,
        meanwhile: many,
        exact: true,
    }
    .run();
}

/// Catches a look-up that misses a present key while its leaf splits and the directory doubles.
#[test]
fn get_while_the_index_grows() {
    Case {
        name: "get/split",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act: get_first,
        meanwhile: many,
        exact: true,
    }
    .run();
}

/// Catches a writer that still counts in a segment which the cleaner is already done with: the count then frees the
/// segment's next life.
#[test]
fn replace_while_its_segment_is_cleaned() {
    let act = |c: &Client, state: &mut State| set(c, state, "a0", wide("replaced"));
    Case { name: "replace/churn", geometry: strict(12), setup: filled, act, meanwhile: churn, exact: true }.run();
}

/// The same for a deletion.
#[test]
fn delete_while_its_segment_is_cleaned() {
    let act = |c: &Client, state: &mut State| delete(c, state, "a0");
    Case { name: "delete/churn", geometry: strict(12), setup: filled, act, meanwhile: churn, exact: true }.run();
}

/// Catches an insertion that loses its place to the other's, or to a split.
#[test]
fn insert_while_the_index_grows() {
    let act = |c: &Client, state: &mut State| set(c, state, "new", b"inserted".to_vec());
    Case {
        name: "insert/split",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act,
        meanwhile: many,
        exact: true,
    }
    .run();
}

/// Catches two splits of one leaf that get in each other's way.
#[test]
fn split_while_the_index_grows() {
    let act =
        |c: &Client, state: &mut State| (0..40).try_for_each(|i| set(c, state, &format!("s{i}"), b"split".to_vec()));
    Case { name: "split/split", geometry: strict(24).small_leaves(), setup: filled, act, meanwhile: many, exact: true }
        .run();
}

fn with_large(_: &World, actor: &Client, other: &Client, state: &mut State) {
    set(actor, state, "actor", b"a".to_vec()).unwrap();
    set(other, state, "other", b"o".to_vec()).unwrap();
    set(other, state, "large", vec![b'0'; 3000]).unwrap();
    set(other, state, "longer", vec![b'0'; 7000]).unwrap();
}

fn churn_large(c: &Client, state: &mut State) -> Result<(), String> {
    tolerate(c.t_maintain())?;
    for n in 1..6u8 {
        set(c, state, "large", vec![b'0' + n; 3000])?;
        set(c, state, "longer", vec![b'0' + n; 7000 - 500 * n as usize])?;
    }
    Ok(())
}

/// Catches a cleaner that frees a large record of today because of what it knew of yesterday's in the same place.
#[test]
fn maintain_while_large_records_come_and_go() {
    fn setup(world: &World, actor: &Client, other: &Client, state: &mut State) {
        with_large(world, actor, other, state);
        // A dead large record that nobody reclaimed yet: its writer died.
        let third = world.client();
        third.t_set(b"dead", &[b'd'; 3000]).unwrap();
        third.probe.rewind();
        third.probe.die_after(LARGE_DEAD);
        let _ = super::probe::until_death(|| third.t_del(b"dead"));
        third.kill();
        other.sweep().unwrap();
    }
    let act = |c: &Client, _: &mut State| tolerate(c.t_maintain());
    Case { name: "maintain/large", geometry: strict(16), setup, act, meanwhile: churn_large, exact: true }.run();
}

/// Stores of a deletion up to the count of dead bytes, so that the large record is dead and not yet reclaimed.
const LARGE_DEAD: u64 = 17;

/// Catches a large write that meets others of the same kind on its way through claiming, filling and reclaiming.
#[test]
fn large_writes_beside_large_writes() {
    let act = |c: &Client, state: &mut State| {
        set(c, state, "actor", vec![b'A'; 2500])?;
        set(c, state, "actor", vec![b'B'; 2600])
    };
    Case { name: "large/large", geometry: strict(16), setup: with_large, act, meanwhile: churn_large, exact: true }
        .run();
}

/// Catches a maintainer that moves or frees what somebody is just changing.
#[test]
fn maintain_while_records_come_and_go() {
    fn setup(world: &World, actor: &Client, other: &Client, state: &mut State) {
        filled(world, actor, other, state);
        for i in 0..40 {
            set(actor, state, &format!("d{i}"), wide("deleted")).unwrap();
        }
        for i in (0..40).filter(|i| i % 4 != 0) {
            // By different clients, so that none of them cleans in passing.
            let third = world.client();
            delete(&third, state, &format!("d{i}")).unwrap();
        }
    }
    let act = |c: &Client, _: &mut State| tolerate(c.t_maintain());
    Case { name: "maintain/churn", geometry: strict(24), setup, act, meanwhile: churn, exact: true }.run();
}

/// Catches a cleaner that moves what somebody has just overwritten: the value of before would be back.
#[test]
pub(super) fn clean_while_what_lives_is_overwritten() {
    fn act(c: &Client, _: &mut State) -> Result<(), String> {
        let mut lane = c.lane().map_err(|e| e.to_string())?;
        (0..c.segments()).try_for_each(|segment| tolerate(c.clean_segment(&mut lane, segment, Policy::Move)))
    }
    let meanwhile = |c: &Client, state: &mut State| set(c, state, "a0", wide("overwritten"));
    Case { name: "clean/replace", geometry: strict(24), setup: filled, act, meanwhile, exact: true }.run();
}

/// Catches a clear that loses or keeps what is written at the same time, or frees what is still in use.
#[test]
fn clear_while_records_come_and_go() {
    let act = |c: &Client, _: &mut State| tolerate(c.t_clear());
    Case { name: "clear/churn", geometry: strict(24), setup: filled, act, meanwhile: churn, exact: false }.run();
}

/// Catches a writer that commits into an index or a segment that a clear has freed.
#[test]
fn writes_while_the_store_is_cleared() {
    let act = |c: &Client, state: &mut State| {
        set(c, state, "a0", wide("replaced"))?;
        set(c, state, "large", vec![b'L'; 5000])?;
        (0..30).try_for_each(|i| set(c, state, &format!("s{i}"), b"split".to_vec()))
    };
    Case {
        name: "set/clear",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act,
        meanwhile: clear_and_refill,
        exact: false,
    }
    .run();
}

/// Catches a writer from before a clear that holds back what was first written after it.
#[test]
fn overwriting_for_ever_beside_a_writer_from_before_a_clear() {
    fn meanwhile(c: &Client, state: &mut State) -> Result<(), String> {
        c.t_clear().map_err(|e| format!("clear: {e}"))?;
        state.clear();
        for round in 0..300 {
            let key = apart(c, "o", round % 3);
            c.t_set(key.as_bytes(), &wide("again")).map_err(|e| format!("round {round}: {e}"))?;
            state.insert(key.into_bytes(), wide("again"));
        }
        Ok(())
    }
    let act = |c: &Client, state: &mut State| set(c, state, "a0", wide("replaced"));
    Case { name: "set/clear, for ever", geometry: strict(16), setup: filled, act, meanwhile, exact: false }.run();
}

/// Catches an eviction that frees a segment in which somebody writes.
#[test]
fn writes_while_others_evict() {
    let act = |c: &Client, state: &mut State| (0..12).try_for_each(|i| set(c, state, &format!("x{i}"), wide("mine")));
    let meanwhile =
        |c: &Client, state: &mut State| (0..60).try_for_each(|i| set(c, state, &format!("y{i}"), wide("theirs")));
    Case { name: "set/evict", geometry: cache(10), setup: filled, act, meanwhile, exact: false }.run();
}

/// Catches a repair that judges by what others are just changing.
#[test]
fn sweep_while_the_index_grows() {
    fn setup(world: &World, actor: &Client, other: &Client, state: &mut State) {
        filled(world, actor, other, state);
        // Dies when its large record, which the next split moves, is in the index, and does not yet say so.
        let key = (0..).map(|n| format!("large{n}")).find(|key| c_hash(actor, key) & 1 == 1).unwrap();
        let died = (0..2000).find(|stores| {
            let image = world.image();
            die_in_large(&image, &key, *stores);
            let there = image.reader().t_get(key.as_bytes()).unwrap().is_some();
            let unsettled = (0..actor.segments() + 9)
                .any(|s| image.client().state(s).state == hashmere_format::segment::State::LargeNew);
            there && unsettled
        });
        die_in_large(world, &key, died.unwrap());
        state.insert(key.into_bytes(), vec![b'l'; 3000]);
    }
    let act = |c: &Client, _: &mut State| tolerate(c.sweep());
    Case { name: "sweep/split", geometry: strict(24).small_leaves(), setup, act, meanwhile: many, exact: true }.run();
}

fn c_hash(c: &Client, key: &str) -> u64 {
    c.hash(key.as_bytes()).hash
}

fn die_in_large(world: &World, key: &str, stores: u64) {
    let third = world.client();
    third.lane().map(drop).unwrap();
    third.probe.die_after(stores);
    let _ = super::probe::until_death(|| third.t_set(key.as_bytes(), &[b'l'; 3000]));
    third.kill();
}
