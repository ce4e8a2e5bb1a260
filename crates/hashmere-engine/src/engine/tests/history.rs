//! What was done to a durable store, what was acknowledged when, and what a power cut may therefore leave of it.

use super::audit::audit;
use super::disk::{Choice, Dice, Disk, CHOICES};
use super::fixture::{Client, Fixture, Geometry};
use super::probe::until_death;
use super::transact::{Op, Parts};
use crate::engine::When;
use crate::error::WriteError;
use crate::types::{Attributes, Ttl};
use hashmere_mem::{HeapMem, Host};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A value with its flags and expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) value: Vec<u8>,
    flags: u32,
    expires: Option<u64>,
}

impl Thing {
    fn lives(&self, now_ms: u64) -> bool {
        self.expires.is_none_or(|at| at > now_ms)
    }
}

/// All that a store holds.
pub(super) type Whole = BTreeMap<Vec<u8>, Thing>;

/// A state of a key: from when it may be seen, and from when every client must see it.
#[derive(Clone, Debug)]
struct Epoch {
    thing: Option<Thing>,
    start: usize,
    end: usize,
}

/// A run of operations on a store on a disk.
pub(super) struct History {
    pub(super) fixture: Fixture,
    clients: Vec<Client>,
    pub(super) dice: Dice,
    keys: BTreeMap<Vec<u8>, Vec<Epoch>>,
    /// Completed syncs: when they began, when they returned.
    pub(super) syncs: Vec<(usize, usize)>,
    pub(super) deaths: u64,
    /// Of each transaction which keys it changed, and which of their states are its own.
    transactions: Vec<Vec<(Vec<u8>, usize)>>,
}

const KEYS: u64 = 36;

impl History {
    pub(super) fn new(geometry: Geometry, seed: u64) -> History {
        let fixture = Fixture::on_disk(geometry);
        let clients = (0..3).map(|_| fixture.client()).collect();
        let start = fixture.disk.as_ref().unwrap().now();
        let (keys, syncs) = (BTreeMap::new(), vec![(start, start)]);
        History { fixture, clients, dice: Dice::new(seed), keys, syncs, deaths: 0, transactions: Vec::new() }
    }

    /// Goes on after a power cut.
    pub(super) fn resume(fixture: Fixture, rescuer: Client, seed: u64) -> History {
        let clients = vec![rescuer, fixture.client(), fixture.client()];
        let start = fixture.disk.as_ref().unwrap().now();
        let syncs = vec![(start, start)];
        let (dice, keys, transactions) = (Dice::new(seed), BTreeMap::new(), Vec::new());
        let mut history = History { fixture, clients, dice, keys, syncs, deaths: 0, transactions };
        history.look(start);
        history.keys.values_mut().flatten().for_each(|epoch| (epoch.start, epoch.end) = (0, 0));
        history
    }

    pub(super) fn disk(&self) -> &Arc<Disk> {
        self.fixture.disk.as_ref().unwrap()
    }

    fn now(&self) -> usize {
        self.disk().now()
    }

    /// Does `steps` random operations.
    pub(super) fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            let who = self.dice.below(3) as usize;
            let dies = self.dice.one_in(25);
            if dies {
                let stores = if self.dice.one_in(3) { self.dice.below(400) } else { self.dice.below(60) };
                self.clients[who].probe.die_after(stores);
            }
            let start = self.now();
            let client = self.clients[who].clone();
            let dice = &mut self.dice;
            let mut transacts = false;
            let lived = until_death(|| step(&client, dice, &mut transacts));
            client.probe.rewind();
            match lived {
                None => {
                    self.deaths += 1;
                    client.kill();
                    self.clients[who] = self.fixture.client();
                }
                Some(Step::Synced) => self.syncs.push((start, self.now())),
                Some(Step::Closed) => {
                    drop(client);
                    self.clients[who].retire();
                    self.clients[who] = self.fixture.client();
                }
                Some(Step::Waited) => self.fixture.peers.advance(Duration::from_secs(3)),
                Some(Step::Done) => {}
            }
            let changed = self.look(start);
            if transacts && changed.len() > 1 {
                self.transactions.push(changed);
            }
        }
    }

    /// Notes what has changed. Whatever is seen here is known from now on, acknowledged or not. Returns the new states.
    pub(super) fn look(&mut self, start: usize) -> Vec<(Vec<u8>, usize)> {
        let reader = self.fixture.reader();
        let now = whole(&reader);
        let end = self.now();
        let mut changed = Vec::new();
        for key in now.keys().chain(self.keys.clone().keys()) {
            let thing = now.get(key).cloned();
            let epochs = self.keys.entry(key.clone()).or_default();
            if epochs.last().and_then(|e| e.thing.clone()) != thing {
                changed.push((key.clone(), epochs.len()));
                epochs.push(Epoch { thing, start, end });
            }
        }
        changed
    }

    /// No transaction is there in one key and not yet in another.
    fn expect_whole(&self, seen: &Whole, now_ms: u64) -> Result<(), String> {
        for transaction in &self.transactions {
            let state = |key: &Vec<u8>, at: usize| self.keys[key][at].thing.as_ref();
            // What is there says when it was, unless it was so before: short values come again.
            let is_there = |(key, at): &(Vec<u8>, usize)| {
                let is = |time: usize| state(key, time) == seen.get(key);
                state(key, *at).is_some() && is(*at) && !(0..*at).any(is)
            };
            let is_before = |(key, at): &(Vec<u8>, usize)| {
                // A later state may have expired by now: then nothing is seen of it.
                let shown = |time: usize| state(key, time).filter(|thing| thing.lives(now_ms));
                let mut times = (0..self.keys[key].len()).filter(|time| shown(*time) == seen.get(key));
                times.next_back().map_or(seen.get(key).is_none(), |last| last < *at)
            };
            let there = transaction.iter().find(|one| is_there(one));
            let before = transaction.iter().find(|one| is_before(one));
            if let (Some((there, _)), Some((before, _))) = (there, before) {
                let names = (there.escape_ascii(), before.escape_ascii());
                return Err(format!("half a transaction: {} is as after it, {} as before", names.0, names.1));
            }
        }
        Ok(())
    }

    /// Whether this may be there after a power cut at a moment, seen at a time.
    pub(super) fn expect(&self, moment: usize, seen: &Whole, now_ms: u64) -> Result<(), String> {
        self.expect_whole(seen, now_ms)?;
        let synced = self.syncs.iter().filter(|(_, end)| *end <= moment).map(|(start, _)| *start).max().unwrap_or(0);
        if let Some(key) = seen.keys().find(|key| !self.keys.contains_key(*key)) {
            return Err(format!("{} was never stored", key.escape_ascii()));
        }
        for (key, epochs) in &self.keys {
            let there = seen.get(key);
            let known = epochs.iter().rposition(|epoch| epoch.end <= synced);
            // What was known by then counts in any case: it can begin at the very moment of the cut, for a key expires
            // with time alone, without a store.
            let counts = |epoch: &&Epoch| epoch.end <= synced || epoch.start < moment;
            let later = epochs.iter().skip(known.unwrap_or(0)).filter(counts);
            let mut allowed = later.map(|epoch| epoch.thing.as_ref().filter(|thing| thing.lives(now_ms)));
            if !(known.is_none() && there.is_none() || allowed.any(|thing| thing == there)) {
                let shown = there.map(|t| t.value[..t.value.len().min(24)].escape_ascii().to_string());
                return Err(format!("{} is {shown:?}, which it was not since the last sync", key.escape_ascii()));
            }
        }
        Ok(())
    }

    /// Cuts the power at random moments, and hands on what is left.
    pub(super) fn cut(&mut self, times: u64, check: &mut dyn FnMut(&History, usize, Choice, HeapMem, u64)) {
        let (first, last) = (self.syncs[0].0, self.now());
        let mut dice = Dice::new(self.dice.next());
        let mut moments: Vec<(usize, Choice)> = (0..times)
            .map(|i| {
                // Around and within syncs there is most to go wrong.
                let (begun, ended) = dice.pick(&self.syncs);
                let near = begun + dice.below((ended - begun) as u64 + 40) as usize;
                let any = first + dice.below((last - first) as u64 + 1) as usize;
                (if dice.one_in(2) { near.min(last) } else { any }, CHOICES[i as usize % CHOICES.len()])
            })
            .collect();
        moments.sort_unstable_by_key(|(moment, _)| *moment);
        let disk = self.disk().clone();
        disk.cuts(&moments, &mut dice, |moment, choice, heap, len| check(self, moment, choice, heap, len));
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clients[0].engine.host.now_ms()
    }
}

enum Step {
    Done,
    Synced,
    Closed,
    Waited,
}

/// One operation. What it does to which key shows afterwards.
fn step(client: &Client, dice: &mut Dice, transacts: &mut bool) -> Step {
    let key = match dice.below(12) {
        0 => format!("#{}", dice.below(20)).into_bytes(),
        1 => format!("n{}", dice.below(3)).into_bytes(),
        _ => format!("key{}", dice.below(KEYS)).into_bytes(),
    };
    let done = match dice.below(100) {
        0..=54 => {
            let value = value(dice);
            let ttl = match dice.below(8) {
                0 => Ttl::At(1_000_000 + dice.below(1000)),
                1 => Ttl::After(Duration::from_secs(5)),
                _ => Ttl::Never,
            };
            let flags = if dice.one_in(4) { 7 } else { 0 };
            client.t_put(&key, &value, Attributes { flags, ttl, ..Attributes::NONE }, When::Always).map(drop)
        }
        55..=64 => client.t_del(&key).map(drop),
        70..=74 => client.t_touch(&key, Ttl::At(2_000_000 + dice.below(1000))).map(drop),
        75..=78 => client.t_incr(format!("n{}", dice.below(3)).as_bytes(), 1, Some(1)).map(drop),
        // (Its keys have no hash of the caller's.)
        65..=69 | 79 if key[0] != b'#' => {
            *transacts = true;
            let other = format!("key{}", dice.below(KEYS)).into_bytes();
            let (value, more) = (value(dice), value(dice));
            let ops = [Op::Set(&key, &value), if dice.one_in(3) { Op::Delete(&other) } else { Op::Set(&other, &more) }];
            let ops = if key == other { &ops[..1] } else { &ops[..] };
            let mut parts = Parts::of(&**client, ops);
            client.writer().and_then(|mut writer| parts.commit(client, &mut writer).map(drop))
        }
        65..=69 | 79..=81 => client.t_append(&key, b"+tail").map(drop),
        82 => client.t_compact().map(drop),
        83 if dice.one_in(2) => client.t_clear(),
        84 => return Step::Closed,
        85 => return Step::Waited,
        86..=93 => match client.sync(&client.writer().unwrap()) {
            Ok(_) => return Step::Synced,
            Err(error) => panic!("sync: {error}"),
        },
        _ => client.t_put(&key, b"absent before", Attributes::NONE, When::Absent).map(drop),
    };
    match done {
        Ok(()) | Err(WriteError::Full { .. } | WriteError::NoSpace(_) | WriteError::NotANumber) => Step::Done,
        Err(error) => panic!("{error}"),
    }
}

/// Small values mostly, wide ones, some that need segments of their own, one that looks like a record.
fn value(dice: &mut Dice) -> Vec<u8> {
    let len = match dice.below(20) {
        0..=11 => dice.below(90),
        12..=17 => 300 + dice.below(300),
        18 => 1100 + dice.below(2800),
        _ => 4000 + dice.below(8000),
    };
    let mark = dice.next();
    let mut bytes = format!("{mark:x}").into_bytes();
    bytes.resize(len as usize, (mark >> 8) as u8);
    bytes
}

/// Everything that a client sees.
pub(super) fn whole(client: &Client) -> Whole {
    let mut whole = Whole::new();
    for (key, value) in client.t_scan().unwrap() {
        let Some(item) = client.t_item(&key, client.t_hash(&key)).unwrap() else { continue };
        assert_eq!(item.value, value);
        let thing = Thing { value, flags: item.metadata.flags, expires: item.metadata.expires_at_ms };
        assert!(whole.insert(key, thing).is_none(), "a key twice in a scan");
    }
    whole
}

/// Rebuilds what a power cut left.
pub(super) fn rescue(fixture: &Fixture, len: u64) -> Result<Client, String> {
    let client = fixture.rescuer();
    client.rebuild(len, &mut |_, _| ()).map_err(|e| format!("rebuild: {e}"))?;
    Ok(client)
}

/// Nothing contradicts itself, in memory or for the disk.
pub(super) fn is_whole(client: &Client) -> Result<(), String> {
    let report = client.check();
    report.sound()?;
    if client.items() != report.items {
        return Err(format!("count says {}, there are {}", client.items(), report.items));
    }
    audit(client).map(drop)
}
