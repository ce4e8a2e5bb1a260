//! An update that is beaten by plain writes again and again is let through, and who dies after asking for that is no
//! hindrance.

use super::crash::{Cast, Effort, Rule, Scenario};
use super::fixture::{strict, Client, Fixture};
use crate::types::Update;
use hashmere_format::leaf::{LockWord, LOCK_WORD};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The lock word of a key.
fn word(client: &Client, key: &[u8]) -> LockWord {
    let hash = client.t_hash(key).hash;
    let path = client.path_of(client.root(), crate::engine::index::Tree::First, hash).unwrap().unwrap();
    LockWord(client.mem.load(client.place(path.leaf, hash).first + LOCK_WORD, Ordering::Relaxed))
}

/// Updates a key whose value others write while the function runs, `lost` times.
fn update_beaten(client: &Client, lost: u32, mut beat: impl FnMut(u32)) {
    let kh = client.t_hash(b"key1");
    let mut asked = 0;
    let mut f = |_: Option<&_>| {
        asked += 1;
        if asked <= lost {
            beat(asked);
        }
        Ok(Update::Set(b"updated".to_vec()))
    };
    client.update(b"key1", kh, &mut || client.t_item(b"key1", kh), &mut f).unwrap();
    assert_eq!(client.t_get(b"key1").unwrap().unwrap(), b"updated");
}

#[test]
pub(super) fn writers_yield_to_an_update_that_was_beaten() {
    let fixture = Fixture::new(strict(24));
    let (client, other) = (fixture.client(), fixture.client());
    client.t_set(b"key1", b"first").unwrap();
    let mut waits = Vec::new();
    update_beaten(&client, 20, |asked| {
        // The first rounds are lost to the faster writer; then writers wait, and give up in the end.
        assert_eq!(word(&other, b"key1").asks_to_yield(), asked > 16, "round {asked}");
        let start = other.host.monotonic();
        other.t_set(b"key1", b"beaten").unwrap();
        waits.push(other.host.monotonic().saturating_sub(start));
        assert!(!word(&other, b"key1").asks_to_yield(), "the next writer does not wait again");
    });
    let courtesy = Duration::from_millis(5);
    assert!(waits[..16].iter().all(|wait| *wait < courtesy), "{waits:?}");
    assert!(waits[16..].iter().all(|wait| *wait >= courtesy), "{waits:?}");
    let after = word(&client, b"key1");
    assert!(after.is_open() && !after.has_waiters(), "{after:?}");
}

/// The bit, wherever it is left, is no damage and stops no client.
#[test]
fn deaths_of_one_that_asks() {
    let few = |fixture: &Fixture| {
        let (other, victim) = (fixture.client(), fixture.client());
        (0..3).for_each(|i| victim.t_set(format!("key{i}").as_bytes(), b"value").unwrap());
        Cast { victim, others: vec![other] }
    };
    let act = |client: &mut Client| {
        let client = &*client;
        update_beaten(client, 17, |_| client.t_set(b"key1", b"value").unwrap());
    };
    let effort = if cfg!(miri) { Effort { step: 97, repairs: 2 } } else { Effort { step: 3, repairs: 4 } };
    let name = "update, asking others to yield";
    Scenario { name, geometry: strict(24), setup: few, act, rule: Rule::Whole }.enumerate(effort).expect_clean(name);
}
