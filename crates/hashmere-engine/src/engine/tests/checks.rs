//! What `check` says of a store in which a client died. That it finds no damage there, whatever the operation, is part
//! of the enumerations of deaths.

use super::fixture::{strict, Fixture};
use super::probe::until_death;
use crate::engine::index::Tree;
use hashmere_format::hash::TAG_BITS;
use hashmere_format::header::at;
use hashmere_format::segment::{State, Word};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Wherever a set dies, at most its own lock is counted as a dead one, until it is repaired.
#[test]
fn locks_of_crashed_clients_are_counted() {
    let mut seen = 0;
    for stores in 1.. {
        let fixture = Fixture::new(strict(64));
        let (victim, survivor) = (fixture.client(), fixture.client());
        victim.t_set(b"key", b"before").unwrap();
        victim.probe.rewind();
        victim.probe.die_after(stores);
        let lived = until_death(|| victim.t_set(b"key", b"after")).is_some();
        // As long as it lives the lock is only held.
        assert_eq!(survivor.check().dead_locks, 0, "death {stores}");
        victim.kill();
        let report = survivor.check();
        assert!(report.is_clean() && report.dead_locks <= 1, "death {stores}: {report:?}");
        seen += report.dead_locks;
        survivor.t_set(b"key", b"repaired").unwrap();
        assert_eq!(survivor.check().dead_locks, 0, "death {stores}");
        if lived {
            break;
        }
    }
    assert!(seen > 0, "no client died with a lock");
}

/// Slots that lead below 1 MiB are reserved: a store of this format has none, and one that has is damaged, whatever is
/// there.
#[test]
fn a_slot_that_leads_below_the_segments_is_damage() {
    let fixture = Fixture::new(strict(64));
    let client = fixture.client();
    client.t_set(b"key", b"value").unwrap();
    let hash = client.hash(b"key").hash;
    let leaf = client.leaf_of(client.root(), Tree::First, hash).unwrap().unwrap();
    let slot = client.leaf_slots(leaf).find(|slot| !client.slot(*slot).is_empty()).unwrap();
    let whole = client.mem.load(slot, Ordering::Relaxed);
    for offset in [8, at::CLIENTS, at::DATA - 8] {
        client.mem.store(slot, ((offset / 8) << TAG_BITS) | whole & ((1 << TAG_BITS) - 1), Ordering::Relaxed);
        assert!(!client.check().is_clean(), "a slot that leads to {offset} is not found");
        assert!(client.t_get(b"key").is_err(), "a slot that leads to {offset} is followed");
    }
    client.mem.store(slot, whole, Ordering::Relaxed);
    assert!(client.check().is_clean());
    assert_eq!(client.t_get(b"key").unwrap().unwrap(), b"value");
}

/// The rest of a large record, taken for a segment of its own, would be filled again: that is found before it is.
#[test]
fn the_rest_of_a_large_record_taken_for_itself_is_damage() {
    let fixture = Fixture::new(strict(64));
    let client = fixture.client();
    client.t_set(b"large", &[b'L'; 9000]).unwrap();
    let large = (0..client.segments()).find(|s| client.state(*s).state == State::Large).unwrap();
    for rest in 1..u64::from(client.state(large).length) {
        for state in [State::Free, State::Claimed, State::Sealed] {
            client.set_state(large + rest, Word::new(state));
            let problems = client.check().problems;
            assert!(problems.iter().any(|p| p.code == "rest-taken"), "{rest} is {state:?}: {problems:?}");
        }
        client.set_state(large + rest, Word::new(State::Tail));
    }
    assert!(client.check().is_clean());
}
