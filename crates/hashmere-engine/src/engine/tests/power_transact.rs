//! Power cuts during and after a transaction that deletes a key so long that the record of its deletion is a large one.

use super::disk::{Choice, Dice, CHOICES};
use super::fixture::{strict, Fixture};
use super::history::{is_whole, rescue, whole, History};
use super::power::QUICK;
use super::power_between::sync;
use super::transact::{apply, Op};
use hashmere_mem::scenarios;

const OLD: &[u8] = b"before the transaction";
const NEW: &[u8] = b"after it";

#[test]
fn a_large_tombstone_is_taken_with_the_rest() {
    let history = History::new(strict(64).durable(), 1);
    let client = history.fixture.client();
    // Longer than half of a segment, and one that needs several.
    for bytes in [3000, 9000] {
        let long = vec![b'k'; bytes];
        client.t_set(&long, OLD).unwrap();
        client.t_set(b"other", OLD).unwrap();
        sync(&client).unwrap();
        let begun = history.disk().now();
        apply(&*client, &[Op::Delete(&long), Op::Set(b"other", NEW)]);
        let done = history.disk().now();
        client.t_set(b"between", &[b'b'; 600]).unwrap();
        let last = history.disk().now();

        let step = match (QUICK, scenarios::whole()) {
            (true, _) => 97,
            (_, true) => 5,
            _ => 15,
        };
        let moments = (begun..=last).step_by(step).chain([done, last]);
        let mut moments: Vec<(usize, Choice)> =
            moments.flat_map(|moment| CHOICES.iter().map(move |choice| (moment, *choice))).collect();
        moments.sort_by_key(|(moment, _)| *moment);
        let (mut taken, mut not) = (0, 0);
        history.disk().cuts(&moments, &mut Dice::new(bytes as u64), |moment, choice, heap, len| {
            let fixture = Fixture::after_cut(heap, history.now_ms());
            let client = rescue(&fixture, len).unwrap_or_else(|error| panic!("{moment} {choice:?}: {error}"));
            is_whole(&client).unwrap_or_else(|error| panic!("{moment} {choice:?}: {error}"));
            let seen = whole(&client);
            let value = |key: &[u8]| seen.get(key).map(|thing| thing.value.as_slice());
            match (value(&long), value(b"other")) {
                (Some(OLD), Some(OLD)) => not += 1,
                (None, Some(NEW)) => taken += 1,
                half => panic!("{moment} {choice:?}: half a transaction: {half:?}"),
            }
            if choice == Choice::New && moment >= done {
                assert_eq!(value(&long), None, "all of it had arrived");
            }
        });
        assert!(taken > 0 && not > 0, "{taken} images with it, {not} without");

        // A sync later it is there in any case.
        sync(&client).unwrap();
        let synced = history.disk().now();
        history.disk().cuts(&[(synced, Choice::Old), (synced, Choice::New)], &mut Dice::new(1), |_, _, heap, len| {
            let client = rescue(&Fixture::after_cut(heap, history.now_ms()), len).unwrap();
            let seen = whole(&client);
            assert!(!seen.contains_key(&long) && seen[b"other".as_slice()].value == NEW);
        });
    }
}
