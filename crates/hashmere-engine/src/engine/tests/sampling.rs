//! Samples of what clients do: what they tell, that they end by themselves, and what a crash at each store leaves.

use super::fixture::{strict, Client, Fixture};
use super::probe::until_death;
use super::transact::{apply, Op};
use crate::error::WriteError;
use hashmere_format::header::at;
use hashmere_format::row::{self, Trigger};
use hashmere_format::sample::{self, Sample, Sampling, Use, SLOTS};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// With a clock that moves on by a millisecond at each look, this rate means: each operation.
const EACH: u64 = 1000;

/// What was sampled, by use and key, in the order of positions.
fn samples(observer: &Client, from: u64) -> Vec<(Use, String)> {
    (from..observer.samples_begun())
        .map(|position| observer.read_sample(position).unwrap_or_else(|| panic!("no sample {position}")))
        .map(|sample| {
            assert_eq!((sample.weight, sample.key_len as usize), (1, sample.key().len()));
            assert_eq!(sample.hash, observer.hash(sample.key()).hash);
            (sample.use_, String::from_utf8_lossy(sample.key()).into_owned())
        })
        .collect()
}

fn triggers(client: &Client) -> [u64; 3] {
    let row = client.writer().unwrap().row;
    Trigger::ALL.map(|trigger| client.mem.load(row + trigger.at(), Ordering::Relaxed))
}

/// A store with keys, a client that uses it, and one that observes.
fn pair() -> (Fixture, Client, Client) {
    let fixture = Fixture::new(strict(64));
    let (client, observer) = (fixture.client(), fixture.client());
    client.t_set(b"a", b"value of a").unwrap();
    client.t_set(b"b", b"value of b").unwrap();
    (fixture, client, observer)
}

fn on(observer: &Client) -> (Sampling, u64) {
    let renewed = observer.renew_sampling(EACH).unwrap();
    let from = observer.samples_begun();
    observer.arm_clients();
    (renewed, from)
}

#[test]
fn each_kind_of_operation_is_told_with_its_key() {
    let (_fixture, client, observer) = pair();
    client.t_get(b"a").unwrap();
    let (renewed, from) = on(&observer);
    client.t_get(b"a").unwrap();
    client.t_get(b"absent").unwrap();
    client.t_set(b"a", b"another value").unwrap();
    client.t_incr(b"n", 1, Some(100)).unwrap();
    client.t_incr(b"n", 1, None).unwrap();
    client.t_del(b"b").unwrap();
    apply(&client, &[Op::Set(b"x", b"1"), Op::Delete(b"a"), Op::Set(b"y", b"2"), Op::Delete(b"not there")]);
    client.t_set(b"z", b"3").unwrap();
    client.t_get(b"z").unwrap();
    let told = samples(&observer, from);
    let expected = [
        (Use::Hit, "a"),
        (Use::Miss, "absent"),
        (Use::Set, "a"),
        (Use::Set, "n"),
        (Use::Set, "n"),
        (Use::Delete, "b"),
        (Use::Set, "x"),
        (Use::Set, "y"),
        (Use::Delete, "a"),
        (Use::Set, "z"),
        (Use::Hit, "z"),
    ];
    assert_eq!(told, expected.map(|(use_, key)| (use_, key.to_string())));
    observer.end_sampling(renewed);
    assert_eq!(triggers(&client), [0; 3]);
    client.t_get(b"z").unwrap();
    client.t_set(b"z", b"4").unwrap();
    client.t_del(b"z").unwrap();
    assert_eq!(samples(&observer, from).len(), expected.len());
}

/// Catches clients that go on sampling when the observer was killed.
#[test]
pub(super) fn it_ends_by_itself() {
    let (fixture, client, observer) = pair();
    let (_, from) = on(&observer);
    let renewed = observer.mem.load(at::SAMPLING, Ordering::Relaxed);
    client.t_get(b"a").unwrap();
    assert!(samples(&observer, from).len() == 1 && triggers(&client)[0] != 0);
    observer.kill();
    fixture.peers.advance(Duration::from_millis(1999));
    client.t_get(b"a").unwrap();
    fixture.peers.advance(Duration::from_millis(2));
    let begun = client.samples_begun();
    for _ in 0..3 {
        client.t_get(b"a").unwrap();
        client.t_get(b"absent").unwrap();
        client.t_set(b"a", b"1").unwrap();
    }
    assert_eq!((client.samples_begun(), triggers(&client)), (begun, [0; 3]), "it goes on");
    assert_eq!(client.mem.load(at::SAMPLING, Ordering::Relaxed), renewed);
    // Nor do clocks that were set back keep it on.
    let (_, from) = on(&client);
    fixture.peers.set_now_ms(1000);
    client.mem.store(at::SAMPLING, Sampling::until(10_000_000, 7).0, Ordering::Relaxed);
    client.t_get(b"a").unwrap();
    assert_eq!(client.samples_begun(), from);
}

#[test]
fn observers_do_not_end_each_others() {
    let (fixture, client, observer) = pair();
    let other = fixture.client();
    let (mine, from) = on(&observer);
    fixture.peers.advance(Duration::from_millis(100));
    let (theirs, _) = on(&other);
    assert_eq!(mine.session(), theirs.session());
    observer.end_sampling(mine);
    client.t_get(b"a").unwrap();
    assert_eq!(samples(&other, from), [(Use::Hit, "a".to_string())]);
    other.end_sampling(theirs);
    client.t_get(b"a").unwrap();
    assert_eq!(other.samples_begun(), from + 1);
    // The next session is another one: a trigger of this one is not believed.
    let again = observer.renew_sampling(EACH).unwrap();
    assert_ne!(again.session(), mine.session());
    let row = client.writer().unwrap().row;
    client.mem.store(row + Trigger::Hit.at(), 1u64.wrapping_neg() - 1, Ordering::Relaxed);
    client.t_get(b"a").unwrap();
    assert_eq!(other.samples_begun(), from + 1);
    client.t_get(b"a").unwrap();
    assert_eq!(other.samples_begun(), from + 2);
}

/// Each operation is sampled with the same probability, and has the weight that it should have.
#[test]
#[cfg_attr(miri, ignore)]
fn weights_add_up_to_what_was_done() {
    let (fixture, client, observer) = pair();
    // An operation takes no time by this clock, but for those that are sampled.
    fixture.peers.set_tick(Duration::from_micros(3));
    let renewed = observer.renew_sampling(500).unwrap();
    observer.arm_clients();
    let (mut next, mut sums, mut squares) = (observer.samples_begun(), [0.0; 2], [0.0; 2]);
    let keys = [b"a", b"b"];
    const ROUNDS: usize = 60_000;
    for round in 0..ROUNDS {
        // Three of four are of one key, in a pattern that repeats.
        client.t_get(keys[usize::from(round % 4 == 3)]).unwrap();
        fixture.peers.advance(Duration::from_micros(10));
        for position in next..observer.samples_begun() {
            let sample = observer.read_sample(position).unwrap();
            let of = usize::from(sample.key() == b"b");
            sums[of] += sample.weight as f64;
            squares[of] += (sample.weight * (sample.weight - 1)) as f64;
        }
        next = observer.samples_begun();
        if round % 10_000 == 0 {
            observer.renew_sampling(500).unwrap();
        }
    }
    observer.end_sampling(renewed);
    for (of, done) in [(0, ROUNDS * 3 / 4), (1, ROUNDS / 4)] {
        // Five standard deviations: the clock of a test is the same each time, so this either holds or not.
        let off = (sums[of] - done as f64).abs();
        assert!(off < 5.0 * squares[of].sqrt() && squares[of] > 0.0, "{} of {done}", sums[of]);
    }
}

/// A sampler dies after each of its stores: what it leaves is a whole sample or none, and no other client notices.
#[test]
fn deaths_of_samplers() {
    let stores = {
        let (_fixture, client, observer) = pair();
        on(&observer);
        client.probe.rewind();
        client.t_get(b"a").unwrap();
        client.probe.stores()
    };
    assert!(stores >= 16, "{stores} stores");
    let mut whole = 0;
    for death in 0..stores {
        let (fixture, client, observer) = pair();
        let (_, from) = on(&observer);
        let slot = client.writer().unwrap().slot;
        client.probe.die_after(death);
        assert!(until_death(|| client.t_get(b"a")).is_none(), "death {death}");
        client.kill();
        let begun = observer.samples_begun();
        assert!(begun <= from + 1);
        for position in from..begun {
            if let Some(sample) = observer.read_sample(position) {
                assert_eq!(sample, Sample::new(Use::Hit, 1, observer.hash(b"a").hash, b"a"), "death {death}");
                whole += 1;
            }
        }
        // The next client of the slot begins afresh.
        let next = fixture.client();
        assert_eq!(next.writer().unwrap().slot, slot);
        assert_eq!(triggers(&next), [0; 3], "death {death}");
        observer.arm_clients();
        next.t_get(b"b").unwrap();
        assert_eq!(samples(&observer, begun), [(Use::Hit, "b".to_string())], "death {death}");
        super::audit::audit(&observer).unwrap();
    }
    assert!(whole > 0 && whole < stores);
}

/// A sampler is held up at each access while the ring comes round: no slot reads as a sample that no client made.
#[test]
#[cfg_attr(miri, ignore)]
pub(super) fn a_ring_that_comes_round() {
    let accesses = {
        let (_fixture, client, observer) = pair();
        on(&observer);
        client.probe.rewind();
        client.t_get(b"a").unwrap();
        client.probe.accesses()
    };
    for at in 0..=accesses {
        let (fixture, client, observer) = pair();
        let other = fixture.client();
        drop(other.writer().unwrap());
        let (_, from) = on(&observer);
        let around = other.clone();
        client.probe.interrupt(at, move || {
            for _ in 0..SLOTS {
                around.t_get(b"b").unwrap();
            }
        });
        client.t_get(b"a").unwrap();
        let made = ["a", "b"].map(|key| Sample::new(Use::Hit, 1, observer.hash(key.as_bytes()).hash, key.as_bytes()));
        let begun = observer.samples_begun();
        // Behind its last access nothing interrupts it.
        assert_eq!(begun - from, if at < accesses { SLOTS + 1 } else { 1 });
        let mut read = 0;
        for position in begun.saturating_sub(SLOTS)..begun {
            let Some(sample) = observer.read_sample(position) else { continue };
            assert!(made.contains(&sample), "interrupted at {at}: {sample:?} at {position}");
            read += 1;
        }
        assert!(read >= SLOTS.min(begun - from) - 1, "interrupted at {at}: {read} read");
    }
}

#[test]
fn without_room_for_the_ring_it_stays_off() {
    let (fixture, client, observer) = pair();
    observer.probe.refuse(0..1);
    assert!(matches!(observer.renew_sampling(EACH), Err(WriteError::NoSpace(_))));
    assert_eq!(observer.mem.load(at::SAMPLING, Ordering::Relaxed), 0);
    client.t_get(b"a").unwrap();
    assert_eq!(triggers(&client), [0; 3]);
    let (renewed, from) = on(&observer);
    client.t_get(b"a").unwrap();
    assert_eq!(samples(&observer, from).len(), 1);
    observer.end_sampling(renewed);
    let reader = fixture.reader();
    assert!(matches!(reader.renew_sampling(EACH), Err(WriteError::ReadOnly)));
    reader.t_get(b"a").unwrap();
}

/// Whatever the words of a damaged file are, operations do what they should.
#[test]
fn damaged_words_cost_time_at_most() {
    let odd = [0, 1, 2, 3, 1 << 31, 1 << 63, u64::MAX - 1, u64::MAX];
    for (n, value) in odd.into_iter().enumerate() {
        let (_fixture, client, observer) = pair();
        on(&observer);
        let row = client.writer().unwrap().row;
        for trigger in Trigger::ALL {
            client.mem.store(row + trigger.at(), value, Ordering::Relaxed);
        }
        client.mem.store(at::SAMPLE_RATE, odd[odd.len() - 1 - n], Ordering::Relaxed);
        client.mem.store(sample::BEGUN, value, Ordering::Relaxed);
        for round in 0..4u8 {
            assert_eq!(client.t_get(b"a").unwrap().as_deref(), Some(&b"value of a"[..]));
            assert_eq!(client.t_get(b"absent").unwrap(), None);
            client.t_set(b"b", &[round; 20]).unwrap();
            assert!(client.t_del(b"b").unwrap());
        }
        for position in (0..400).chain([value, value.wrapping_add(1)]) {
            observer.read_sample(position);
        }
        super::audit::audit(&client).unwrap();
    }
}

#[test]
fn rows_have_room_for_what_is_in_them() {
    assert_eq!(row::at::TRIGGERS, row::Stat::Deletes.at() + 8);
    assert_eq!(row::Stat::LockWaits.at(), row::Trigger::Write.at() + 8);
}
