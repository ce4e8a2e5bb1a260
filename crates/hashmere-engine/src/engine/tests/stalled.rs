//! A client stops inside a write, after each of its stores in turn, and another one goes on: thousands of new keys,
//! which need splits of the very leaf in which the first is stopped; overwriting, which needs cleaning; eviction; large
//! values.
//!
//! Only what needs a bucket that the stopped one has locked may be `Busy`: a key whose first bucket that is, in the
//! first tree, or in the overflow tree if the key belongs there. When it goes on it does what it would have done,
//! nothing was lost, and no key has got another UID.

use super::audit::audit;
use super::crash::{attempt, dump, is_sound, Counts, State};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use super::probe::{die, until_death};
use crate::engine::When;
use crate::error::WriteError;
use crate::types::{Attributes, Change, Expected, Ttl, Uid};
use hashmere_format::header::at;
use hashmere_format::leaf::{LockWord, LOCK_WORD};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Shorter than a split waits for a lock: it has to make do with less.
pub(super) const IMPATIENT: Duration = Duration::from_millis(3);
/// New keys while the other client is stopped.
pub(super) const MANY: u64 = if cfg!(miri) { 60 } else { 800 };

/// A write that a client stops in.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) geometry: Geometry,
    pub(super) setup: fn(&Fixture, &Client),
    /// What the stopped client does.
    pub(super) act: fn(&mut Client),
    /// What the other one does while it is stopped.
    pub(super) concurrent: fn(&mut Other) -> Result<(), String>,
    /// Every how manieth store is tried.
    pub(super) step: usize,
    /// How long the other one waits for a lock.
    pub(super) timeout: Duration,
}

/// The client that goes on, and the results it got.
pub(super) struct Other {
    pub(super) client: Client,
    fixture: Arc<Fixture>,
    pub(super) state: State,
    /// Refusals, all of them rightly.
    busy: u64,
    /// Whether records may go by themselves.
    evicts: bool,
    timeout: Duration,
}

impl Other {
    /// Whether a lock is held that a write of this key may need.
    pub(super) fn is_held(&self, key: &[u8]) -> bool {
        let c = &self.client;
        let owner = |offset: u64| LockWord(c.mem.load(offset, Ordering::Relaxed)).owner();
        if [at::SPACE_LOCK, at::INDEX_LOCK, at::RESERVE_LOCK].into_iter().any(|lock| owner(lock).is_some()) {
            // It grows the file, the index, or reclaims space in an emergency: a writer that needs the same waits for
            // it.
            return true;
        }
        let root = c.root_word();
        c.candidates(key, c.t_hash(key)).into_iter().any(|(tree, hash)| {
            let leaf = c.leaf_of(root, tree, hash).unwrap();
            let first = leaf.map(|leaf| c.place(leaf, hash).first);
            first.is_some_and(|first| owner(first + LOCK_WORD).is_some())
        })
    }

    /// Takes note of what a write returned.
    pub(super) fn told<R>(&mut self, key: &[u8], held: bool, done: Result<R, WriteError>) -> Result<Option<R>, String> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(WriteError::Busy { waited, .. }) if held && waited >= self.timeout => {
                self.busy += 1;
                Ok(None)
            }
            Err(error) => Err(format!("{}: {error:?}", key.escape_ascii())),
        }
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<(), String> {
        let key = key.into_bytes();
        let held = self.is_held(&key);
        let done = self.client.t_set(&key, &value);
        if self.told(&key, held, done)?.is_some() {
            self.state.insert(key, value);
        }
        Ok(())
    }

    fn delete(&mut self, key: String) -> Result<(), String> {
        let key = key.into_bytes();
        let held = self.is_held(&key);
        let known = self.state.contains_key(&key) || self.client.t_get(&key).map_err(|e| e.to_string())?.is_some();
        let done = self.client.t_del(&key);
        if let Some(there) = self.told(&key, held, done)? {
            self.state.remove(&key);
            if there != known && !self.evicts {
                return Err(format!("delete of {} says {there}", key.escape_ascii()));
            }
        }
        Ok(())
    }

    /// The store holds what its results say.
    fn holds_its_results(&self) -> Result<(), String> {
        for (key, value) in &self.state {
            let seen = self.client.t_get(key).map_err(|e| format!("get: {e}"))?;
            if seen.as_ref() != Some(value) && !(self.evicts && seen.is_none()) {
                return Err(format!("{} is {seen:?} after it was set", key.escape_ascii()));
            }
        }
        Ok(())
    }

    fn uids(&self) -> Vec<(Vec<u8>, Option<Uid>)> {
        let uid = |key: &Vec<u8>| self.client.peek(key, self.client.t_hash(key)).unwrap().map(|meta| meta.uid);
        self.state.keys().map(|key| (key.clone(), uid(key))).collect()
    }
}

impl Case {
    /// Returns how many writes were refused.
    pub(super) fn run(&self) -> u64 {
        let mut counts = Counts::default();
        let (mut refused, mut stops) = (0, 0);
        for at in self.stores().into_iter().step_by(if cfg!(miri) { 40 } else { self.step }) {
            let outcome = attempt(|| self.once(at));
            stops += 1;
            refused += *outcome.as_ref().unwrap_or(&0);
            counts.add(format!("stopped before access {at}"), outcome.map(drop));
            if counts.is_enough() {
                break;
            }
        }
        println!("{}: {stops} stops, {refused} refusals", self.name);
        counts.expect_clean(self.name);
        refused
    }

    /// The accesses before which something has been stored since the one before.
    fn stores(&self) -> Vec<u64> {
        let fixture = Fixture::new(self.geometry);
        let mut actor = fixture.client();
        (self.setup)(&fixture, &actor);
        actor.probe.record();
        (self.act)(&mut actor);
        actor.probe.recorded().iter().map(|store| store.access + 1).collect()
    }

    /// With a stop before access `at`. Returns how many writes were refused.
    fn once(&self, at: u64) -> Result<u64, String> {
        let fixture = Arc::new(Fixture::new(self.geometry));
        let mut actor = fixture.client();
        (self.setup)(&fixture, &actor);
        let client = fixture.impatient(self.timeout);
        // It has a client slot and a segment before the other one stops.
        client.t_set(b"of the other", b"o").map_err(|e| e.to_string())?;
        let other = Other {
            client,
            fixture: fixture.clone(),
            state: State::new(),
            busy: 0,
            evicts: self.geometry.cache,
            timeout: self.timeout,
        };
        let other = Arc::new(Mutex::new((other, Ok(()))));
        let (hooked, concurrent) = (other.clone(), self.concurrent);
        actor.probe.interrupt(at, move || {
            let (other, told) = &mut *hooked.lock().unwrap();
            *told = concurrent(other).and_then(|()| other.holds_its_results());
        });
        actor.probe.be_lenient();
        (self.act)(&mut actor);
        let (other, told) = &mut *other.lock().unwrap();
        std::mem::replace(told, Ok(())).map_err(|e| format!("interrupting: {e}"))?;
        self.go_on(&fixture, other)?;
        Ok(other.busy)
    }

    /// The stopped one has gone on.
    fn go_on(&self, fixture: &Fixture, other: &mut Other) -> Result<(), String> {
        other.holds_its_results().map_err(|e| format!("when it has gone on: {e}"))?;
        let before = other.uids();
        let busy = std::mem::take(&mut other.busy);
        for i in 0..60 {
            other.set(format!("later{i}"), b"later".to_vec())?;
        }
        if std::mem::replace(&mut other.busy, busy) != 0 {
            return Err("still busy when it has gone on".into());
        }
        let after = other.uids();
        let moved = before.iter().find(|uid| !after.contains(uid));
        if let Some((key, _)) = moved.filter(|_| !other.evicts) {
            return Err(format!("{} has got another UID", key.escape_ascii()));
        }
        let now = dump(&fixture.reader(), &other.state)?;
        is_sound(&other.client, if other.evicts { other.client.check().items } else { now.len() as u64 })?;
        audit(&other.client).map(drop)
    }
}

pub(super) fn some(_: &Fixture, actor: &Client) {
    for i in 0..12 {
        actor.t_set(format!("key{i}").as_bytes(), b"of before").unwrap();
    }
    actor.t_incr(b"n", 1, Some(9)).unwrap();
    let expires = Attributes { ttl: Ttl::At(50_000), ..Attributes::NONE };
    actor.t_put(b"ttl", b"expires", expires, When::Always).unwrap();
    actor.t_set(b"large", &[b'L'; 9000]).unwrap();
}

fn collided(fixture: &Fixture, actor: &Client) {
    some(fixture, actor);
    (0..17).for_each(|i| actor.t_set(format!("#{i}").as_bytes(), b"collides").unwrap());
}

/// Thousands of new keys; of the first some change and go again.
pub(super) fn grow(other: &mut Other) -> Result<(), String> {
    for i in 0..MANY {
        other.set(format!("new{i}"), format!("new {i}").into_bytes())?;
    }
    for i in (0..MANY).step_by(7) {
        other.set(format!("new{i}"), b"changed".to_vec())?;
        other.delete(format!("new{}", i + 1))?;
        other.set(format!("later than those {i}"), b"new".to_vec())?;
    }
    for i in 0..4 {
        other.set(format!("wide{i}"), vec![b'w'; 9000])?;
    }
    other.client.t_compact().map_err(|e| format!("compact: {e}"))?;
    other.client.t_scan().map_err(|e| format!("scan: {e}"))?;
    let report = other.client.check();
    report.sound()
}

pub(super) const WIDE: Geometry = strict(160).small_leaves();

fn case(name: &'static str, setup: fn(&Fixture, &Client), act: fn(&mut Client)) {
    Case { name, geometry: WIDE, setup, act, concurrent: grow, step: 1, timeout: IMPATIENT }.run();
}

#[test]
pub(super) fn new_keys_beside_one_that_is_stopped_in_a_plain_write() {
    case("new", some, |c| c.t_set(b"mine", b"new").unwrap());
    case("replace", some, |c| c.t_set(b"key3", b"replaced").unwrap());
    case("delete", some, |c| assert!(c.t_del(b"key3").unwrap()));
    case("counter", some, |c| assert_eq!(c.t_incr(b"n", 1, None).unwrap(), Some(10)));
    case("append", some, |c| c.t_append(b"key3", b"tail").map(drop).unwrap());
    case("touch", some, |c| assert!(c.t_touch(b"ttl", Ttl::At(70_000)).unwrap()));
    case("compare and set", some, |c| {
        let (seen, change) = (Expected::Value(b"of before"), Change::Set(b"compared"));
        c.cas(&mut c.writer().unwrap(), b"key3", c.hash(b"key3"), seen, change).unwrap();
    });
}

#[test]
fn new_keys_beside_one_that_is_stopped_in_a_large_write() {
    let case = |name, act| {
        Case { name, geometry: WIDE, setup: some, act, concurrent: grow, step: 19, timeout: IMPATIENT }.run()
    };
    case("large, new", |c| c.t_set(b"mine", &[b'm'; 5000]).unwrap());
    case("large, replaced", |c| c.t_set(b"large", &[b'm'; 5000]).unwrap());
    case("large, deleted", |c| assert!(c.t_del(b"large").unwrap()));
}

/// One that is stopped, and known to be, and then killed is a dead one: its leaf is split as ever.
#[test]
fn stopped_then_killed() {
    for at in (0..150).step_by(3) {
        let fixture = Fixture::new(WIDE);
        let actor = fixture.client();
        some(&fixture, &actor);
        let other = fixture.impatient(IMPATIENT);
        let hooked = other.clone();
        actor.probe.interrupt(at, move || {
            for i in 0..200 {
                let _ = hooked.t_set(format!("new{i}").as_bytes(), b"while it is stopped");
            }
            die();
        });
        drop(until_death(|| actor.t_set(b"key3", b"replaced")));
        actor.kill();
        let splits = other.stats(0, 0).splits;
        for i in 0..400 {
            other.t_set(format!("new{i}").as_bytes(), b"after its death").unwrap();
        }
        assert!(
            other.stats(0, 0).splits >= splits + 8,
            "killed before access {at}: hardly a leaf was split afterwards"
        );
        other.sweep().unwrap();
        is_sound(&other, other.t_scan().unwrap().len() as u64).unwrap();
        audit(&other).unwrap();
    }
}

/// All keys of the leaf that is split have to wait, and those of other leaves if it holds the lock of the index and the
/// overflow tree is full.
#[test]
fn new_keys_beside_one_that_is_stopped_in_a_split() {
    fn full(fixture: &Fixture, actor: &Client) {
        some(fixture, actor);
        (0..40).for_each(|i| actor.t_set(format!("full{i}").as_bytes(), b"full").unwrap());
    }
    let act = |c: &mut Client| (40..60).for_each(|i| c.t_set(format!("full{i}").as_bytes(), b"full").unwrap());
    Case { name: "splits", geometry: WIDE, setup: full, act, concurrent: grow, step: 11, timeout: IMPATIENT }.run();
}

/// Nothing can go from a cache in which one client holds the locks of all records: a writer that needs room waits as
/// long as for any lock.
#[test]
pub(super) fn room_is_waited_for_beside_one_that_is_stopped_in_a_split() {
    // Enough that they fill their only leaf, which is split, and the file.
    fn few(_: &Fixture, actor: &Client) {
        (0..16).for_each(|i| actor.t_set(format!("few{i}").as_bytes(), &[b'f'; 1900]).unwrap());
    }
    let act = |c: &mut Client| (0..8).for_each(|i| c.t_set(format!("n{i}").as_bytes(), b"new").unwrap());
    let (geometry, timeout) = (cache(7).small_leaves(), Duration::from_millis(300));
    Case { name: "split, eviction", geometry, setup: few, act, concurrent: crowd, step: 3, timeout }.run();
}

/// It may hold a bucket in either tree.
#[test]
pub(super) fn new_keys_beside_one_that_is_stopped_in_the_overflow_tree() {
    case("overflow, new", collided, |c| c.t_set(b"#99", b"new").unwrap());
    case("overflow, replaced", collided, |c| c.t_set(b"#16", b"replaced").unwrap());
    case("overflow, deleted", collided, |c| assert!(c.t_del(b"#16").unwrap()));
}

fn wide(text: &str) -> Vec<u8> {
    format!("{text} {}", "w".repeat(440)).into_bytes()
}

/// Wide records in segments that no client has open. Those whose names begin with `a`, one in eight, are of the client
/// that will stop.
fn filled(fixture: &Fixture, actor: &Client) {
    let mut third = fixture.client();
    for i in 0..4 {
        let ttl = Attributes { ttl: Ttl::At(60_000), ..Attributes::NONE };
        third.t_put(format!("a{i}").as_bytes(), &wide("of before"), ttl, When::Always).unwrap();
        (0..7).for_each(|n| third.t_set(format!("b{i}{n}").as_bytes(), &wide("of before")).unwrap());
    }
    third.retire();
    actor.t_set(b"mine", b"of before").unwrap();
}

/// The same few keys again and again, between others that stay, which needs segments that only cleaning can free.
/// Beside the records of the stopped client all are dead, so that their segment is what a cleaner would take first.
fn overwrite(other: &mut Other) -> Result<(), String> {
    (0..28).try_for_each(|i| other.delete(format!("b{}{}", i / 7, i % 7)))?;
    for round in 0..60 {
        for i in 0..5 {
            other.set(format!("o{i}"), wide(&format!("round {round}")))?;
        }
        other.set(format!("stays{}", round % 24), wide("stays"))?;
    }
    other.client.t_compact().map_err(|e| format!("compact: {e}"))?;
    (0..5).try_for_each(|i| other.delete(format!("o{i}")))
}

/// And long values, which need segments side by side.
fn overwrite_long(other: &mut Other) -> Result<(), String> {
    overwrite(other)?;
    (0..6).try_for_each(|round| other.set(format!("long{}", round % 2), vec![b'l'; 5000]))
}

/// Records that can be cleaned away, too few for a writer to do it between writes, in a store that is large enough to
/// keep a segment for the cleaner.
fn with_garbage(fixture: &Fixture, actor: &Client) {
    (0..48).for_each(|i| actor.t_set(format!("k{i}").as_bytes(), &wide("stays")).unwrap());
    filled(fixture, actor);
    (0..28).for_each(|i| assert!(actor.t_del(format!("b{}{}", i / 7, i % 7).as_bytes()).unwrap()));
}

/// Overwriting, if the one that is stopped has the space lock: it must not be refused, for there is something to clean.
/// Counts those stops in place of refusals.
fn overwrite_without_growth(other: &mut Other) -> Result<(), String> {
    let lock = LockWord(other.client.mem.load(at::SPACE_LOCK, Ordering::Relaxed));
    if lock.owner().is_none() {
        return Ok(());
    }
    for round in 0..24 {
        let (key, value) = (format!("o{}", round % 5).into_bytes(), wide(&format!("round {round}")));
        other.client.t_set(&key, &value).map_err(|e| format!("round {round}: {e}"))?;
        other.state.insert(key, value);
    }
    other.busy += 1;
    Ok(())
}

#[test]
pub(super) fn overwriting_goes_on_beside_one_that_is_stopped_while_it_grows_the_file() {
    let act: fn(&mut Client) = |c| (0..20).for_each(|i| c.t_set(format!("mine{i}").as_bytes(), &wide("new")).unwrap());
    let concurrent = overwrite_without_growth;
    let stops =
        Case { name: "growth", geometry: WIDE, setup: with_garbage, act, concurrent, step: 1, timeout: IMPATIENT }
            .run();
    assert!(stops > 0, "it never had the space lock");
}

/// New keys all the time, for which others have to go.
fn crowd(other: &mut Other) -> Result<(), String> {
    for i in 0..120 {
        other.set(format!("c{i}"), wide("crowd"))?;
    }
    (0..4).try_for_each(|i| other.set(format!("long{i}"), vec![b'l'; 5000]))
}

/// The same when the records of the stopped client have expired.
fn crowd_later(other: &mut Other) -> Result<(), String> {
    other.fixture.peers.advance(Duration::from_secs(120));
    crowd(other)
}

#[test]
pub(super) fn cleaning_goes_on_beside_one_that_is_stopped() {
    let case = |name, act| {
        // With few segments all cleaning is in an emergency.
        Case { name, geometry: strict(16), setup: filled, act, concurrent: overwrite, step: 1, timeout: IMPATIENT }
            .run();
        Case {
            name,
            geometry: strict(24),
            setup: filled,
            act,
            concurrent: overwrite_long,
            step: 3,
            timeout: IMPATIENT,
        }
        .run();
    };
    case("replace, cleaning", |c| c.t_set(b"a0", &wide("replaced")).unwrap());
    case("delete, cleaning", |c| assert!(c.t_del(b"a1").unwrap()));
    case("touch, cleaning", |c| assert!(c.t_touch(b"a2", Ttl::At(70_000)).unwrap()));
}

#[test]
fn eviction_and_expiry_go_on_beside_one_that_is_stopped() {
    let case = |name, act, concurrent| {
        Case { name, geometry: cache(14), setup: filled, act, concurrent, step: 1, timeout: IMPATIENT }.run();
    };
    let replace: fn(&mut Client) = |c| c.t_set(b"a0", &wide("replaced")).unwrap();
    let touch: fn(&mut Client) = |c| _ = c.t_touch(b"a2", Ttl::At(70_000)).unwrap();
    case("replace, eviction", replace, crowd as fn(&mut Other) -> Result<(), String>);
    case("replace, expiry", replace, crowd_later);
    case("touch, eviction", touch, crowd);
    case("touch, expiry", touch, crowd_later);
}
