//! One client is interrupted before each of its accesses in turn, and another does a whole lot in between.
//!
//! Of all interleavings of two clients these are the ones with one interruption: few enough to try every one
//! (`make test-all` tries twenty times as many as `make test`), and most races show in one of them.

mod checking;
mod feeding;
mod reading;
mod tidying;
mod transacting;
mod writing;

use super::audit::audit;
use super::crash::{attempt, dump, is_sound, State};
use super::fixture::{Client, Fixture, Geometry};
use super::power::seed;
use crate::engine::reclaim::clean::Policy;
use crate::error::WriteError;
use crate::fault;
use hashmere_mem::scenarios;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub(super) use feeding::{follow_while_it_goes_round, write_while_it_is_switched_off};
pub(super) use reading::{
    item_while_it_is_replaced_in_place, replace_in_place_while_it_is_read, scan_while_the_index_grows,
};
pub(super) use tidying::{
    clean_while_what_lives_is_overwritten, compact_while_large_records_come_and_go, expire_while_it_is_touched,
};

/// What a client does, and what the store holds after it, by the results it got.
type Act = fn(&Client, &mut State) -> Result<(), String>;

struct Case {
    name: &'static str,
    geometry: Geometry,
    setup: fn(&Fixture, &Client, &Client, &mut State),
    act: Act,
    concurrent: Act,
    /// Whether the store must hold what the results of both say in the end: not if it was cleared in between, or
    /// evicts.
    exact: bool,
}

/// About how many interruptions are tried of each case, evenly spread from one that the seed chooses.
/// `HASHMERE_INTERRUPTIONS=n` tries another number.
fn tried() -> u64 {
    let otherwise = match scenarios::whole() {
        _ if cfg!(miri) => 4,
        true => 200,
        false => 100,
    };
    std::env::var("HASHMERE_INTERRUPTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

impl Case {
    fn run(&self) {
        let accesses = self.once(u64::MAX).unwrap();
        let mut failures = BTreeMap::new();
        // A seeded fault is hunted at the same places every time.
        let hunting = fault::switch::on().is_some();
        let step = accesses.div_ceil(if hunting { 700 } else { tried().max(1) }).max(1);
        let first = if hunting { 0 } else { seed() % step };
        for at in (first..accesses).step_by(step as usize) {
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
        let fixture = Fixture::new(self.geometry);
        let (actor, other) = (fixture.client(), fixture.client());
        let mut state = State::new();
        (self.setup)(&fixture, &actor, &other, &mut state);
        let told = Arc::new(Mutex::new((state.clone(), Ok(()))));
        let (hooked, theirs, concurrent) = (other.clone(), told.clone(), self.concurrent);
        actor.probe.interrupt(at, move || {
            let mut told = theirs.lock().unwrap();
            let mut after = told.0.clone();
            told.1 = concurrent(&hooked, &mut after);
            told.0 = after;
        });
        actor.probe.be_lenient();
        let mut mine = state.clone();
        (self.act)(&actor, &mut mine)?;
        let accesses = actor.probe.accesses();
        let (theirs, outcome) = told.lock().unwrap().clone();
        outcome.map_err(|e| format!("interrupting: {e}"))?;
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
        let now = dump(&fixture.reader(), &expected)?;
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

/// The key `prefix` with the `i`-th number of those that need another lock than `a0`: the one who is interrupted may
/// hold that one.
fn apart(c: &Client, prefix: &str, i: u64) -> String {
    let bucket = |key: &str| hashmere_format::hash::buckets(c.hash(key.as_bytes()).hash, c.layout.buckets).0;
    let mut keys = (0..).map(|n| format!("{prefix}{n}")).filter(|key| bucket(key) != bucket("a0"));
    keys.nth(i as usize).unwrap()
}

fn wide(text: &str) -> Vec<u8> {
    format!("{text} {}", "w".repeat(440)).into_bytes()
}

/// Eight wide records, which fill a segment that no client has open.
fn filled(fixture: &Fixture, actor: &Client, other: &Client, state: &mut State) {
    set(other, state, "other", b"o".to_vec()).unwrap();
    set(actor, state, "actor", b"a".to_vec()).unwrap();
    let mut third = fixture.client();
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
    let mut writer = c.writer().map_err(|e| e.to_string())?;
    for segment in 0..c.segments() {
        tolerate(c.clean_segment(&mut writer, segment, Policy::Move))?;
    }
    drop(writer);
    (0..24).try_for_each(|i| set(c, state, &apart(c, "b", i), wide("more")))
}

fn clear_and_refill(c: &Client, state: &mut State) -> Result<(), String> {
    match c.t_clear() {
        Ok(()) => state.clear(),
        Err(WriteError::Busy { .. }) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    }
    set(c, state, "a0", wide("second"))?;
    // To the last byte: then a record is where the index of before was.
    let full = |c: &Client| c.free_segments() <= 2 && c.segments() == c.segments_max();
    (0..2000).take_while(|_| !full(c)).try_for_each(|i| set(c, state, &format!("r{i}"), wide("refill")))
}

/// As [`filled`], with so much more that a clear frees more than the reserve.
fn filled_more(fixture: &Fixture, actor: &Client, other: &Client, state: &mut State) {
    filled(fixture, actor, other, state);
    (0..24).for_each(|i| set(other, state, &format!("more{i}"), wide("first")).unwrap());
}

fn many(c: &Client, state: &mut State) -> Result<(), String> {
    (0..90).try_for_each(|i| set(c, state, &format!("m{i}"), format!("many {i}").into_bytes()))
}

fn with_large(_: &Fixture, actor: &Client, other: &Client, state: &mut State) {
    set(actor, state, "actor", b"a".to_vec()).unwrap();
    set(other, state, "other", b"o".to_vec()).unwrap();
    set(other, state, "large", vec![b'0'; 3000]).unwrap();
    set(other, state, "longer", vec![b'0'; 7000]).unwrap();
}

fn churn_large(c: &Client, state: &mut State) -> Result<(), String> {
    tolerate(c.t_compact())?;
    for n in 1..6u8 {
        set(c, state, "large", vec![b'0' + n; 3000])?;
        set(c, state, "longer", vec![b'0' + n; 7000 - 500 * n as usize])?;
    }
    Ok(())
}
