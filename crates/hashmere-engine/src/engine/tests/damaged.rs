//! Words that no client can have written: a segment's, whatever state they say and whose they say it is, and those of a
//! dead client's row, which its repair follows. A client that cannot exist is never looked up, and no call panics.

use super::fixture::{cache, strict, Client, Fixture, Geometry};
use super::power::seed;
use super::probe::until_death;
use crate::engine::index::Tree;
use hashmere_format::header::at;
use hashmere_format::leaf::{self, LINE};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::scenarios;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// A store with values in most of its segments.
fn filled(geometry: Geometry) -> (Fixture, Client) {
    let fixture = Fixture::new(geometry);
    let client = fixture.client();
    let values = if geometry.cache { 400 } else { 120 };
    (0..values).for_each(|i| drop(client.t_set(format!("key{i}").as_bytes(), &[b'v'; 480])));
    (fixture, client)
}

/// Everything that looks for segments. What comes of it does not matter.
fn use_it(client: &Client) {
    let _ = client.t_set(b"large", &[b'l'; 20_000]);
    (0..40).for_each(|i| drop(client.t_set(format!("new{i}").as_bytes(), &[b'n'; 480])));
    let _ = (client.t_compact(), client.sweep(), client.check(), client.t_set(b"large", &[b'l'; 30_000]));
    let _ = (client.t_scan(), client.t_clear(), client.t_set(b"after", b"value"));
}

/// All segments of a cache are being emptied by a client that cannot exist: a large value waited for that one, and died
/// of looking for its name (a bus error, on a file).
#[test]
fn a_cache_emptied_by_an_impossible_owner() {
    for owner in [1025, 0xfffe, 0xffff] {
        let (_fixture, client) = filled(cache(32));
        for segment in (0..client.segments()).filter(|s| !matches!(client.state(*s).state, State::Index | State::Open))
        {
            let word = Word { owner, ..Word::new(State::Cleaning) };
            client.mem.store(client.entry_of(segment) + segment::at::STATE, word.pack(), Ordering::Relaxed);
        }
        let refused = client.t_set(b"large", &[b'l'; 20_000]).unwrap_err();
        assert_eq!(refused.code(), 31, "{refused}");
        use_it(&client);
    }
}

#[test]
fn each_segment_in_each_state_of_an_impossible_owner() {
    for geometry in [cache(32), strict(32)] {
        let segments = filled(geometry).1.segments();
        let step = if cfg!(miri) { 13 } else { 5 };
        for segment in (1..segments).step_by(step) {
            for state in 0..=15u64 {
                for owner in [1025u64, 0xfffe] {
                    let (_fixture, client) = filled(geometry);
                    let at = client.entry_of(segment) + segment::at::STATE;
                    client.mem.store(at, state | owner << 8, Ordering::Relaxed);
                    // What was a hole is read as if it were none.
                    client.probe.be_lenient();
                    client.probe.limit(client.probe.accesses() + 50_000_000);
                    use_it(&client);
                }
            }
        }
    }
}

/// A client that dies after `stores` stores of the set that splits the first leaf, with a store of one leaf; `None`: it
/// lived.
fn died_in_a_split(stores: u64) -> Option<(Client, u64)> {
    let fixture = Fixture::new(strict(64).small_leaves());
    let (victim, survivor) = (fixture.client(), fixture.client());
    for i in 0.. {
        let key = format!("key{i}");
        let root = victim.root();
        let leaf = victim.leaf_of(root, Tree::First, victim.hash(key.as_bytes()).hash).unwrap().unwrap();
        let before = victim.depth(victim.root_block(root), Tree::First);
        let image = fixture.image();
        let rehearsal = image.client();
        rehearsal.t_set(key.as_bytes(), b"value").unwrap();
        if rehearsal.depth(rehearsal.root_block(root), Tree::First) != before {
            victim.probe.rewind();
            victim.probe.die_after(stores);
            let lived = until_death(|| victim.t_set(key.as_bytes(), b"value")).is_some();
            victim.kill();
            survivor.probe.be_lenient();
            return (!lived).then_some((survivor, leaf));
        }
        victim.t_set(key.as_bytes(), b"value").unwrap();
    }
    None
}

/// What its row, and the leaf that it split, say at its death: each word of them, made into one that leads nowhere, or
/// between two words.
#[test]
fn each_word_that_a_repair_follows() {
    let words = [
        row::at::LOCK,
        row::at::LOCK_2,
        row::at::INTENT,
        row::at::INTENT_NEW,
        row::at::INTENT_OLD,
        row::at::HEAD,
        row::at::OPEN,
        row::at::SPLIT,
        row::at::LEAF,
        row::at::PINS,
    ];
    let step = match cfg!(miri) {
        true => 23,
        false if scenarios::whole() => 3,
        false => 13,
    };
    let mut deaths = 0;
    for stores in (1 + seed() % step..).step_by(step as usize) {
        let Some((_, leaf)) = died_in_a_split(stores) else { break };
        deaths += 1;
        for word in words.map(Some).into_iter().chain([None]) {
            for value in
                [1, leaf + 1, leaf + 8, leaf + LINE + 1, at::DATA - 8, at::DATA + 7, (at::DATA << 4) + 1, u64::MAX]
            {
                let (survivor, leaf) = died_in_a_split(stores).expect("it died here before");
                let at = word.map_or(leaf + leaf::at::SPLIT, |word| row::offset(0) + word);
                survivor.mem.store(at, value, Ordering::Relaxed);
                survivor.probe.limit(survivor.probe.accesses() + 50_000_000);
                use_it(&survivor);
            }
        }
    }
    assert!(deaths > 0, "no set split a leaf");
}
