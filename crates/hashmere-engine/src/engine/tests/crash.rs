//! Death at every store: each operation is cut off before each of its stores in turn, and the others go on.
//!
//! A killed process leaves a prefix of its stores behind, so an operation of `n` stores leaves `n + 1` states, and
//! all of them are looked at, and those beside them in which a store came late ([`super::store_reordering`]). After
//! each death, a survivor must see what was acknowledged exactly and what was under way not at all or completely,
//! repair it (also when it dies itself at any store of the repair), find nothing wrong, count right, lose no segment,
//! and go on. Of long operations a sample of the deaths is tried, unless `HASHMERE_WHOLE` is set: `make test-whole`.

use super::audit::{audit, Audit};
use super::feed;
use super::fixture::{Client, Fixture, Geometry};
use super::probe::{until_death, Stored};
use crate::engine::When;
use crate::error::WriteError;
use crate::fault;
use crate::types::Attributes;
use hashmere_mem::scenarios;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};

/// What a store holds.
pub(super) type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// What may be seen of the operation under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The store is as before or as after.
    Whole,
    /// Each key is as before, as after, or gone: the operation evicts.
    Evicts,
}

/// Those who take part.
pub(super) struct Cast {
    /// The one who dies.
    pub(super) victim: Client,
    /// Those who live on. The first has a client slot.
    pub(super) others: Vec<Client>,
}

/// An operation and what goes before it. Everything is deterministic: it is done again for every death.
#[derive(Clone, Copy)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) geometry: Geometry,
    pub(super) setup: fn(&Fixture) -> Cast,
    pub(super) act: fn(&mut Client),
    pub(super) rule: Rule,
}

/// Which deaths are tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Every how manieth store of the operation.
    pub(super) step: u64,
    /// At most about this many deaths of the repairer for each.
    pub(super) repairs: u64,
}

/// About how many deaths of an operation a sample has, and stores that come late.
const DEATHS: u64 = 60;
/// And deaths of a repairer behind each.
const REPAIRS: u64 = 2;

/// The first of `n` cases that are tried, and every how manieth from there on. A seeded fault is hunted everywhere.
pub(super) fn sample(n: u64) -> (u64, u64) {
    if fault::switch::on().is_some() {
        return (0, 1);
    }
    scenarios::sample(n, DEATHS)
}

impl Effort {
    /// What is tried of an operation of `stores` stores, and the first death.
    fn of(self, stores: u64) -> (u64, Effort) {
        let (first, step) = sample(stores);
        let all = scenarios::whole() || fault::switch::on().is_some();
        let repairs = if all { self.repairs } else { self.repairs.min(REPAIRS) };
        if step > self.step {
            (first, Effort { step, repairs })
        } else {
            (0, Effort { repairs, ..self })
        }
    }
}

/// What the enumeration of one operation did.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) deaths: u64,
    pub(super) late: u64,
    pub(super) repairs: u64,
    failures: BTreeMap<String, (u64, String)>,
}

impl Counts {
    pub(super) fn add(&mut self, at: String, outcome: Result<(), String>) {
        if let Err(text) = outcome {
            self.failures.entry(text).or_insert((0, at)).0 += 1;
        }
    }

    /// Whether a seeded fault was found: once is enough.
    pub(super) fn is_enough(&self) -> bool {
        fault::switch::on().is_some() && !self.failures.is_empty()
    }

    /// Panics with everything that went wrong.
    pub(super) fn expect_clean(&self, name: &str) {
        let mut text = String::new();
        for (failure, (times, at)) in &self.failures {
            let _ = writeln!(text, "  {failure} ({times} times, first {at})");
        }
        assert!(text.is_empty(), "{name}:\n{text}");
    }
}

/// Does something in which a panic is a failure like any other.
pub(super) fn attempt<R>(act: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    panic::catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panic: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")))
    })
}

/// What the operation does when no client dies.
pub(super) struct Frame {
    pub(super) stores: u64,
    pub(super) trace: Vec<Stored>,
    /// Stores that go on in a row of words, long ones only.
    pub(super) bulks: Vec<Range<u64>>,
    before: State,
    after: State,
    lost_index: u64,
    room: u64,
}

/// The rows of at least 256 stores to words that follow each other.
pub(super) fn bulks(stores: &[Stored]) -> Vec<Range<u64>> {
    let mut bulks = Vec::new();
    let mut start = 0;
    for end in 1..=stores.len() {
        if stores.get(end).map(|store| store.off) != stores[end - 1].off.checked_add(8) {
            if end - start >= 256 {
                bulks.push(start as u64..end as u64);
            }
            start = end;
        }
    }
    bulks
}

impl Scenario {
    /// Tries the deaths.
    pub(super) fn enumerate(&self, effort: Effort) -> Counts {
        let frame = self.frame();
        let (mut at, effort) = effort.of(frame.stores);
        let mut counts = Counts::default();
        while at <= frame.stores && !counts.is_enough() {
            self.die_at(at, &frame, effort, &mut counts);
            counts.deaths += 1;
            // The last few stores are always tried: they are the ones after the commit.
            at += if at + 8 >= frame.stores { 1 } else { effort.step };
            // Of bytes that are copied or zeroed in a row three deaths are as good as thousands.
            if let Some(bulk) = frame.bulks.iter().find(|bulk| bulk.contains(&at)) {
                at = [bulk.start, bulk.start + (bulk.end - bulk.start) / 2, bulk.end]
                    .into_iter()
                    .find(|b| *b >= at)
                    .unwrap();
            }
        }
        self.come_late(&frame, effort, &mut counts);
        let Counts { deaths, late, repairs, .. } = counts;
        println!(
            "{}: {} stores, {deaths} deaths, {late} with a late store, {repairs} of a repairer",
            self.name, frame.stores
        );
        counts
    }

    fn frame(&self) -> Frame {
        let fixture = Fixture::new(self.geometry);
        let mut cast = (self.setup)(&fixture);
        let before = dump(&fixture.reader(), &State::new()).unwrap();
        cast.victim.probe.record();
        (self.act)(&mut cast.victim);
        let stores = cast.victim.probe.stores();
        let trace = cast.victim.probe.recorded();
        let bulks = bulks(&trace);
        let after = dump(&fixture.reader(), &State::new()).unwrap();
        cast.victim.kill();
        let survivor = fixture.client();
        survivor.sweep().unwrap();
        let lost_index = audit(&survivor).unwrap().lost_index;
        let room_after = self.room_of(&fixture, &survivor, &after);
        Frame { stores, trace, bulks, before, after, lost_index, room: self.room_without().min(room_after) }
    }

    /// How many records fit if the operation never began.
    fn room_without(&self) -> u64 {
        let fixture = Fixture::new(self.geometry);
        let cast = (self.setup)(&fixture);
        let before = dump(&fixture.reader(), &State::new()).unwrap();
        cast.victim.kill();
        let survivor = fixture.client();
        survivor.sweep().unwrap();
        self.room_of(&fixture, &survivor, &before)
    }

    fn room_of(&self, fixture: &Fixture, survivor: &Client, state: &State) -> u64 {
        let state = self.work(fixture, survivor, state.clone()).unwrap();
        if self.geometry.cache {
            return 0;
        }
        room(survivor, state).unwrap()
    }

    fn die_at(&self, at: u64, frame: &Frame, effort: Effort, counts: &mut Counts) {
        let fixture = Fixture::new(self.geometry);
        let mut cast = (self.setup)(&fixture);
        cast.victim.probe.die_after(at);
        let lived = until_death(|| (self.act)(&mut cast.victim)).is_some();
        assert_eq!(lived, at >= frame.stores, "{} is not deterministic", self.name);
        cast.victim.kill();
        counts.add(format!("death {at}"), attempt(|| self.repair_at_once(&fixture.image(), frame)));
        // An image for each death of the repairer, all from before the repair.
        let mut repairs = Vec::new();
        counts.add(
            format!("death {at}, before a repair"),
            attempt(|| self.die_in_repair(&fixture, at, frame, effort, &mut repairs)),
        );
        for (second, outcome) in repairs {
            counts.repairs += 1;
            counts.add(format!("death {at}, and of the repairer {second}"), outcome);
        }
        counts.add(
            format!("death {at}, incremental repair"),
            attempt(|| self.repair_incrementally(&fixture, &cast, frame)),
        );
    }

    /// The next process to open the store repairs everything.
    fn repair_at_once(&self, fixture: &Fixture, frame: &Frame) -> Result<(), String> {
        let seen = self.look(fixture, frame)?;
        // What a crash left half done is no damage.
        if let Some(problem) = fixture.reader().check().problems.first() {
            return Err(format!("check before the repair: {} {}", problem.code, problem.text));
        }
        let survivor = fixture.client();
        survivor.sweep().map_err(|e| format!("sweep: {e}"))?;
        self.is_repaired(fixture, &survivor, &seen, frame)?;
        self.go_on(fixture, &survivor, seen, frame)
    }

    /// The repairer dies as well, at stores that differ from death to death, and another one completes what it began.
    fn die_in_repair(
        &self,
        fixture: &Fixture,
        at: u64,
        frame: &Frame,
        effort: Effort,
        log: &mut Vec<(u64, Result<(), String>)>,
    ) -> Result<(), String> {
        let trial = fixture.image();
        let seen = self.look(&trial, frame)?;
        let repairer = trial.client();
        repairer.probe.record();
        repairer.sweep().map_err(|e| format!("sweep: {e}"))?;
        let stores = repairer.probe.stores();
        self.come_late_in_repair(fixture, (&repairer.probe.recorded(), &seen), frame, effort.repairs, log);
        let step = stores.div_ceil(effort.repairs.max(1)).max(1);
        for second in (at % step..stores).step_by(step as usize) {
            let outcome = attempt(|| {
                let image = fixture.image();
                let repairer = image.client();
                repairer.probe.die_after(second);
                let _ = until_death(|| repairer.sweep());
                repairer.kill();
                let survivor = image.client();
                survivor.sweep().map_err(|e| format!("second sweep: {e}"))?;
                self.is_repaired(&image, &survivor, &seen, frame)
            });
            log.push((second, outcome));
        }
        Ok(())
    }

    /// A client that had the store open all the while goes on, and repairs what is in the way.
    fn repair_incrementally(&self, fixture: &Fixture, cast: &Cast, frame: &Frame) -> Result<(), String> {
        let seen = self.look(fixture, frame)?;
        let Some(other) = cast.others.first() else { return Ok(()) };
        other.probe.limit(other.probe.accesses() + 50_000_000);
        let seen = self.work(fixture, other, seen)?;
        other.sweep().map_err(|e| format!("sweep: {e}"))?;
        self.is_repaired(fixture, other, &seen, frame)?;
        self.go_on(fixture, other, seen, frame)
    }

    /// What a reader sees before any client repairs.
    pub(super) fn look(&self, fixture: &Fixture, frame: &Frame) -> Result<State, String> {
        let union = frame.before.iter().chain(&frame.after).map(|(k, v)| (k.clone(), v.clone())).collect();
        let seen = dump(&fixture.reader(), &union)?;
        let as_was = |key: &Vec<u8>| seen.get(key) == frame.before.get(key) || seen.get(key) == frame.after.get(key);
        let fine = match self.rule {
            Rule::Whole => seen == frame.before || seen == frame.after,
            Rule::Evicts => seen.keys().all(as_was),
        };
        if fine {
            return Ok(seen);
        }
        Err(format!("seen is neither before nor after: {}", difference(&seen, &frame.before)))
    }

    pub(super) fn is_repaired(
        &self,
        fixture: &Fixture,
        survivor: &Client,
        seen: &State,
        frame: &Frame,
    ) -> Result<(), String> {
        let now = dump(&fixture.reader(), seen)?;
        if now != *seen {
            return Err(format!("the repair changed what is there: {}", difference(&now, seen)));
        }
        is_sound(survivor, self.count(survivor, seen))?;
        if self.geometry.feed.is_some() {
            feed::tells(survivor, seen)?;
        }
        let audit = audit(survivor)?;
        if audit.lost_index > frame.lost_index {
            return Err(format!("{} bytes of the index are lost", audit.lost_index - frame.lost_index));
        }
        Ok(())
    }

    /// What the count should be. How much of what expires was cleaned away already is not known.
    pub(super) fn count(&self, survivor: &Client, state: &State) -> u64 {
        if self.rule == Rule::Evicts {
            survivor.check().items
        } else {
            state.len() as u64
        }
    }

    /// Writes, deletes, fills and clears.
    fn go_on(&self, fixture: &Fixture, survivor: &Client, seen: State, frame: &Frame) -> Result<(), String> {
        let state = self.work(fixture, survivor, seen)?;
        is_sound(survivor, self.count(survivor, &state))?;
        if !self.geometry.cache {
            let room = room(survivor, state)?;
            if room < frame.room {
                return Err(format!("{room} records fit into the emptied store, {} without a death", frame.room));
            }
        }
        fixture.heap.set_budget(u64::MAX);
        is_emptied(survivor)
    }

    /// Overwrites everything, deletes every third key, adds some.
    pub(super) fn work(&self, fixture: &Fixture, survivor: &Client, seen: State) -> Result<State, String> {
        let mut state = seen;
        let fresh = (0..6).map(|i| format!("fresh{i}").into_bytes());
        let keys: Vec<_> = state.keys().cloned().chain(fresh).collect();
        for (i, key) in keys.iter().enumerate() {
            if i % 3 == 0 {
                let there = survivor.t_del(key).map_err(|e| format!("delete: {e}"))?;
                if there != state.remove(key).is_some() && !self.geometry.cache {
                    return Err(format!("delete of {} says {there}", key.escape_ascii()));
                }
                continue;
            }
            let value = format!("new value of {} {}", key.escape_ascii(), "+".repeat(i % 40)).into_bytes();
            let before = survivor.peek(key, survivor.t_hash(key)).map_err(|e| format!("peek: {e}"))?;
            match survivor.t_put(key, &value, Attributes::NONE, When::Always) {
                Ok(stored) => {
                    let (old, new) = (before.map(|meta| meta.version), stored.map(|stored| stored.version));
                    if old >= new {
                        return Err(format!("{} has version {new:?} after {old:?}", key.escape_ascii()));
                    }
                    state.insert(key.clone(), value);
                }
                Err(WriteError::Full { .. } | WriteError::NoSpace(_)) if !self.geometry.cache => {}
                Err(error) => return Err(format!("set: {error}")),
            }
        }
        let now = dump(&fixture.reader(), &state)?;
        let kept = |(key, value): (&Vec<u8>, &Vec<u8>)| state.get(key) == Some(value);
        if self.geometry.cache && now.iter().all(kept) {
            return Ok(now);
        }
        if now != state {
            return Err(format!("after more work: {}", difference(&now, &state)));
        }
        Ok(state)
    }
}

/// Everything that a client sees, by scan and by key. The keys of `others` that the scan does not return must be
/// absent.
pub(super) fn dump(client: &Client, others: &State) -> Result<State, String> {
    let pairs = client.t_scan().map_err(|e| format!("scan: {e}"))?;
    let many = pairs.len();
    let state: State = pairs.into_iter().collect();
    if state.len() != many {
        return Err(format!("the scan returned {many} pairs of {} keys", state.len()));
    }
    for key in state.keys().chain(others.keys().filter(|key| !state.contains_key(*key))) {
        let got = client.t_get(key).map_err(|e| format!("get: {e}"))?;
        if got.as_ref() != state.get(key) {
            return Err(format!("get and scan differ about {}", key.escape_ascii()));
        }
    }
    Ok(state)
}

fn difference(seen: &State, expected: &State) -> String {
    for key in seen.keys().chain(expected.keys()) {
        let (a, b) = (seen.get(key), expected.get(key));
        if a != b {
            let text =
                |v: Option<&Vec<u8>>| v.map_or("nothing".into(), |v| v[..v.len().min(40)].escape_ascii().to_string());
            return format!("{} is {}, not {}", key.escape_ascii(), text(a), text(b));
        }
    }
    "nothing differs".into()
}

/// `check` finds nothing, and the count is right.
pub(super) fn is_sound(client: &Client, items: u64) -> Result<(), String> {
    let report = client.check();
    report.sound()?;
    if client.items() != items {
        return Err(format!("count says {}, there are {items}", client.items()));
    }
    Ok(())
}

/// Deletes everything, and says how many records fit then.
fn room(client: &Client, state: State) -> Result<u64, String> {
    for key in state.keys() {
        client.t_del(key).map_err(|e| format!("delete all: {e}"))?;
    }
    client.t_compact().map_err(|e| format!("compact: {e}"))?;
    let mut n = 0u64;
    loop {
        match client.t_set(format!("fill{n}").as_bytes(), &[b'f'; 450]) {
            Ok(()) => n += 1,
            Err(WriteError::Full { .. } | WriteError::NoSpace(_)) => break,
            Err(error) => return Err(format!("fill: {error}")),
        }
    }
    Ok(n)
}

/// After a clear everything is free, except the index and what this client writes to.
fn is_emptied(client: &Client) -> Result<(), String> {
    client.t_clear().map_err(|e| format!("clear: {e}"))?;
    client.t_compact().map_err(|e| format!("compact after clear: {e}"))?;
    is_sound(client, 0)?;
    let audit = audit(client)?;
    let Audit { total, free, table, held, log, large, index, pending_free, region, offline, .. } = audit;
    let pinned = client.stats(0, 0).clients.iter().map(|c| c.pins).sum();
    if index != 1
        || large != 0
        || pending_free > pinned
        || log > 1
        || free + log + held + pending_free + region + offline + 1 + table != total
    {
        return Err(format!("after a clear: {audit:?}"));
    }
    Ok(())
}
