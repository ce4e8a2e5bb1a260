//! A process that has no addresses for all of the file: what it returns is right or is the error for that, whatever
//! others do to the store, and it does no harm to them.

use super::audit::audit;
use super::crash::{dump, is_sound, State};
use super::disk::Dice;
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use super::probe::until_death;
use crate::error::{ReadError, WriteError};
use hashmere_format::header::at;
use hashmere_mem::{AddressLimit, Mem};

/// What a process without addresses may return.
fn is_refusal(error: &WriteError) -> bool {
    matches!(error, WriteError::AddressSpace { needed, limit: AddressLimit::Neighbour } if *needed > at::DATA)
}

fn is_refused(error: &ReadError) -> bool {
    matches!(error, ReadError::AddressSpace { needed, limit: AddressLimit::Neighbour } if *needed > at::DATA)
}

fn key(number: u64) -> Vec<u8> {
    // Some of them share all hash bits that split a leaf, so that they overflow.
    if number % 5 == 0 { format!("#same{number}") } else { format!("key{number}") }.into_bytes()
}

fn value(dice: &mut Dice) -> Vec<u8> {
    let len = match dice.below(12) {
        0 => 3000 + dice.below(9000),
        _ => dice.below(400),
    };
    vec![b'a' + dice.below(26) as u8; len as usize]
}

struct Scenario {
    fixture: Fixture,
    /// It reaches everything.
    far: Client,
    /// It reaches what there was when it opened, or a little more.
    near: Client,
    state: State,
    dice: Dice,
    is_cache: bool,
    /// How often `near` was refused, and how often not.
    outcomes: [u64; 2],
}

impl Scenario {
    fn new(geometry: Geometry, seed: u64) -> Scenario {
        let fixture = Fixture::new(geometry);
        let (far, near) = (fixture.client(), fixture.client());
        near.t_set(b"key1", b"one").unwrap();
        let state = State::from([(b"key1".to_vec(), b"one".to_vec())]);
        Scenario { fixture, far, near, state, dice: Dice::new(seed), is_cache: geometry.cache, outcomes: [0; 2] }
    }

    /// Only as many addresses as the file has now, and `more` segments' worth at most.
    fn confine(&self, more: u64) {
        let now = at::DATA + (self.far.segments() << 12);
        // Not a whole number of segments: what is half within reach is not within reach.
        self.near.probe.confine(now + 100, now + 100 + (more << 12));
    }

    fn note(&mut self, done: bool) {
        self.outcomes[usize::from(done)] += 1;
    }

    /// A client that reaches everything does something.
    fn step_far(&mut self) {
        let key = key(self.dice.below(150));
        if self.dice.below(4) == 0 {
            let _ = self.far.t_del(&key).unwrap();
            self.state.remove(&key);
        } else {
            let value = value(&mut self.dice);
            match self.far.t_set(&key, &value) {
                Ok(()) => drop(self.state.insert(key, value)),
                Err(error) => assert!(matches!(error, WriteError::Full { .. }), "{error}"),
            }
        }
    }

    /// A client dies in the middle of something; first the one with few addresses comes to repair it.
    fn step_death(&mut self) {
        let client = self.fixture.client();
        let (key, value) = (key(self.dice.below(150)), value(&mut self.dice));
        client.probe.die_after(self.dice.below(120));
        let _ = until_death(|| client.t_set(&key, &value));
        client.kill();
        match self.near.sweep() {
            Ok(()) => self.note(true),
            Err(error) => self.note(!is_refusal(&error)),
        }
        self.far.sweep().unwrap();
        match self.far.t_get(&key).unwrap() {
            Some(value) => drop(self.state.insert(key, value)),
            None => drop(self.state.remove(&key)),
        }
    }

    /// A read by the one with few addresses.
    fn step_read(&mut self) {
        let key = key(self.dice.below(150));
        match self.near.t_get(&key) {
            // A cache may have dropped it.
            Ok(None) if self.is_cache => drop(self.state.remove(&key)),
            Ok(found) => {
                assert_eq!(found.as_ref(), self.state.get(&key), "{}", key.escape_ascii());
                self.note(true);
            }
            Err(error) => {
                assert!(is_refused(&error), "get: {error}");
                self.note(false);
            }
        }
    }

    /// A write by it: done, or nothing has changed.
    fn step_write(&mut self) {
        let (key, value) = (key(self.dice.below(150)), value(&mut self.dice));
        let done = match self.dice.below(4) {
            0 => self.near.t_del(&key).map(|_| drop(self.state.remove(&key))),
            1 => self.near.t_append(&key, b"+").map(|_| {
                if let Some(value) = self.state.get_mut(&key) {
                    value.push(b'+');
                }
            }),
            _ => self.near.t_set(&key, &value).map(|()| drop(self.state.insert(key.clone(), value))),
        };
        match done {
            Ok(()) => self.note(true),
            Err(WriteError::Full { .. }) => {}
            Err(error) => {
                assert!(is_refusal(&error), "write: {error}");
                self.note(false);
            }
        }
        if self.is_cache {
            // What was dropped, or appended to after it was dropped, is known to clients that reach it.
            self.state = self.far.t_scan().unwrap().into_iter().collect();
        }
    }

    /// Something that looks at everything.
    fn step_whole(&mut self) {
        match self.dice.below(5) {
            0 => match self.near.t_scan() {
                Ok(pairs) => {
                    let seen: State = pairs.into_iter().collect();
                    assert!(seen == self.state, "a scan is not what is there");
                    self.note(true);
                }
                Err(error) => {
                    assert!(is_refused(&error), "scan: {error}");
                    self.note(false);
                }
            },
            1 => {
                let report = self.near.check();
                let codes: Vec<&str> = report.problems.iter().map(|problem| problem.code).collect();
                assert!(codes.is_empty() || codes == ["not-reachable"], "{:?}", report.problems);
                self.note(codes.is_empty());
            }
            2 => match self.near.t_compact() {
                Ok(_) => self.note(true),
                Err(error) => {
                    assert!(is_refusal(&error), "compact: {error}");
                    self.note(false);
                }
            },
            3 => self.step_region(),
            _ => {
                let began = self.near.begin_snapshot(&mut self.near.writer().unwrap()).map(drop);
                if let Err(error) = &began {
                    assert_eq!(error.code(), 13, "backup: {error}");
                }
                self.note(began.is_ok());
            }
        }
    }

    /// A region that the other made is found, or not within reach, but never made a second time.
    fn step_region(&mut self) {
        let name = format!("region{}", self.dice.below(3));
        let mut writer = self.far.writer().unwrap();
        let there = match self.far.open_region(1, name.as_bytes()).unwrap() {
            Some(place) => {
                self.far.close_region(place);
                true
            }
            None if self.dice.below(2) == 0 => {
                match self.far.create_region(&mut writer, (1, name.as_bytes()), 6000, |_| ()) {
                    Ok(place) => {
                        place.into_iter().for_each(|place| self.far.close_region(place));
                        true
                    }
                    Err(error) => {
                        assert!(matches!(error, WriteError::Full { .. }), "{error}");
                        false
                    }
                }
            }
            None => false,
        };
        drop(writer);
        let mut writer = self.near.writer().unwrap();
        let made = self.near.create_region(&mut writer, (1, name.as_bytes()), 6000, |_| ());
        drop(writer);
        match made {
            Ok(place) => {
                assert_eq!(place.is_none(), there, "{name}");
                place.into_iter().for_each(|place| self.near.close_region(place));
                self.note(true);
            }
            Err(WriteError::Full { .. }) => {}
            Err(error) => {
                assert!(is_refusal(&error), "region: {error}");
                self.note(false);
            }
        }
        if self.is_cache {
            self.state = self.far.t_scan().unwrap().into_iter().collect();
        }
    }

    fn end(self) -> [u64; 2] {
        let Scenario { far, near, state, is_cache, outcomes, .. } = self;
        near.kill();
        far.sweep().unwrap();
        let seen = dump(&far, &state).unwrap();
        if is_cache {
            assert!(seen.iter().all(|(key, value)| state.get(key) == Some(value)));
        } else {
            assert!(seen == state, "what is there is not what was acknowledged");
        }
        is_sound(&far, seen.len() as u64).unwrap();
        audit(&far).unwrap();
        outcomes
    }
}

fn run(geometry: Geometry, seed: u64, steps: u64) -> [u64; 2] {
    let mut scenario = Scenario::new(geometry, seed);
    for step in 0..steps {
        if step == steps / 6 {
            let more = scenario.dice.below(12);
            scenario.confine(more);
        }
        match scenario.dice.below(20) {
            0..=5 => scenario.step_far(),
            6 => scenario.step_death(),
            7..=12 => scenario.step_read(),
            13..=17 => scenario.step_write(),
            _ => scenario.step_whole(),
        }
    }
    scenario.end()
}

pub(super) fn histories() {
    let mut outcomes = [0, 0];
    for seed in 0..24 {
        for geometry in [strict(300), strict(300).small_leaves(), cache(60)] {
            let [refused, done] = run(geometry, seed, 240);
            outcomes = [outcomes[0] + refused, outcomes[1] + done];
        }
    }
    // Both happen all the time, or the test tests nothing.
    println!("{} refused, {} done", outcomes[0], outcomes[1]);
    assert!(outcomes.iter().all(|n| *n > 500), "{outcomes:?}");
}

#[test]
#[cfg_attr(miri, ignore)]
fn what_cannot_be_reached_is_an_error_and_does_no_harm() {
    histories();
}

/// A record that is half within reach: neither the reader of its first bytes nor that of a view goes beyond.
#[test]
fn a_segment_is_within_reach_or_not() {
    let fixture = Fixture::new(strict(40));
    let (far, near) = (fixture.client(), fixture.client());
    near.probe.confine(at::DATA + 4096, at::DATA + 4096);
    for i in 0..60u64 {
        far.t_set(format!("key{i}").as_bytes(), &[i as u8; 300]).unwrap();
    }
    for extra in [0, 8, 300, 1000, 4000, 4090, 4096, 4096 * 5 + 64] {
        near.probe.confine(at::DATA + 8192 + extra, at::DATA + 8192 + extra);
        for i in 0..60u64 {
            let key = format!("key{i}");
            for found in [
                near.t_get(key.as_bytes()),
                near.t_view(key.as_bytes(), near.t_hash(key.as_bytes())).map(|item| item.map(|item| item.value)),
            ] {
                match found {
                    Ok(found) => assert_eq!(found, Some(vec![i as u8; 300])),
                    Err(error) => assert!(is_refused(&error), "{error}"),
                }
            }
        }
    }
    // With addresses for all of it, all of it is there.
    near.probe.confine(near.mem.capacity(), u64::MAX);
    for i in 0..60u64 {
        assert_eq!(near.t_get(format!("key{i}").as_bytes()).unwrap(), Some(vec![i as u8; 300]));
    }
    assert!(near.check().is_clean());
}
