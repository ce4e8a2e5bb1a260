//! Promise: 64-bit counters that wrap at 2^64 and floor at 0, read as decimal text, are created on request, refuse what
//! is no number, and add up over any number of processes; reference counts delete at zero. Signed ones and fractions do
//! the same below zero and behind the point, and refuse what they cannot hold.
//! Catches: lost increments, overflow handled wrongly, a text form that differs from the number.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, BatchResult, Counter, Expiry, Options, Store, Ttl, WriteBatch, WriteError};
use hashmere_testkit::limits::{wait_until, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, tiny, worker};
use std::time::Duration;

fn stage(name: &str) -> (Scratch, Store) {
    let scratch = Scratch::new(name);
    let store = small().open(scratch.store("counters")).unwrap();
    (scratch, store)
}

fn text(store: &Store, key: &[u8]) -> String {
    String::from_utf8(store.get(key).unwrap().unwrap()).unwrap()
}

const EXISTING: Counter = Counter::EXISTING;

#[test]
fn wraps_and_floors() {
    let (_scratch, store) = stage("counters-wrap");
    store.set(b"n", u64::MAX.to_string().as_bytes()).unwrap();
    assert_eq!(store.incr(b"n", 1, EXISTING).unwrap(), Some(0));
    assert_eq!(store.incr(b"n", u64::MAX, EXISTING).unwrap(), Some(u64::MAX));
    assert_eq!(text(&store, b"n"), "18446744073709551615");
    assert_eq!(store.incr(b"n", 11, EXISTING).unwrap(), Some(10));
    assert_eq!(text(&store, b"n"), "10");
    assert_eq!(store.decr(b"n", 9, EXISTING).unwrap(), Some(1));
    assert_eq!(text(&store, b"n"), "1");
    assert_eq!(store.decr(b"n", 2, EXISTING).unwrap(), Some(0));
    assert_eq!(store.decr(b"n", u64::MAX, EXISTING).unwrap(), Some(0));
    assert_eq!(store.incr_by(b"n", i64::MAX, EXISTING).unwrap(), Some(i64::MAX as u64));
    assert_eq!(store.incr_by(b"n", i64::MIN, EXISTING).unwrap(), Some(0));
    store.set(b"n", b"18446744073709551610").unwrap();
    assert_eq!(store.incr_by(b"n", 10, EXISTING).unwrap(), Some(4));
    assert_eq!(store.incr(b"n", 0, EXISTING).unwrap(), Some(4));
}

#[test]
fn every_length_of_text() {
    let (_scratch, store) = stage("counters-text");
    let steps = (0..20).flat_map(|digits: u32| [10u64.pow(digits), 1, u64::MAX, u64::MAX, 1]);
    let mut number = None::<u64>;
    for step in steps {
        let expected = number.map_or(step, |number| number.wrapping_add(step));
        number = store.incr(b"n", step, Counter::or_create(step)).unwrap();
        assert_eq!(number, Some(expected));
        let decimal = expected.to_string();
        assert_eq!(text(&store, b"n"), decimal);
        assert_eq!(store.metadata(b"n").unwrap().map(|meta| meta.value_len), Some(decimal.len() as u64));
        assert_eq!(*store.view(b"n").unwrap().unwrap(), *decimal.as_bytes());
        let pair = store.iter().next().unwrap().unwrap();
        assert_eq!(pair.value, decimal.as_bytes(), "through a scan");
    }
}

#[test]
fn a_missing_one_is_created_only_on_request() {
    let (_scratch, store) = stage("counters-create");
    assert_eq!(store.incr(b"n", 5, EXISTING).unwrap(), None);
    assert_eq!(store.decr(b"n", 5, EXISTING).unwrap(), None);
    assert_eq!(store.incr_by(b"n", -5, EXISTING).unwrap(), None);
    assert!(!store.contains_key(b"n").unwrap());
    let attributes = Attributes::NONE.flags(9).ttl(Ttl::After(Duration::from_secs(1000)));
    let created = Counter { initial: Some(100), attributes };
    assert_eq!(store.incr(b"n", 5, created).unwrap(), Some(100), "the delta is not applied to a new one");
    assert_eq!(store.incr(b"n", 5, created).unwrap(), Some(105));
    let item = store.get_item(b"n").unwrap().unwrap();
    assert_eq!((&item.value[..], item.metadata.flags), (&b"105"[..], 9));
    assert!(
        matches!(store.ttl(b"n").unwrap(), Some(Expiry { remaining: Some(time) }) if time > Duration::from_secs(900))
    );
    // An existing one keeps its own attributes.
    store.incr(b"n", 1, Counter { initial: Some(1), attributes: Attributes::NONE.flags(5) }).unwrap();
    assert_eq!(store.metadata(b"n").unwrap().unwrap().flags, 9);
    assert!(store.ttl(b"n").unwrap() != Some(Expiry { remaining: None }));
}

#[test]
fn what_is_no_number_is_refused_and_stays() {
    let (_scratch, store) = stage("counters-nan");
    let texts: [&[u8]; 12] = [
        b"",
        b"abc",
        b"12a",
        b"-1",
        b"1.5",
        b"0x10",
        b"18446744073709551616",
        b"99999999999999999999",
        b"1 2",
        b"123456789012345678901",
        b"\0",
        b"\xff1",
    ];
    for value in texts {
        store.set(b"n", value).unwrap();
        let before = store.metadata(b"n").unwrap();
        for result in [
            store.incr(b"n", 1, Counter::or_create(0)),
            store.decr(b"n", 1, Counter::or_create(0)),
            store.incr_by(b"n", 1, Counter::or_create(0)),
            store.inc_ref(b"n", 1).map(Some),
            store.dec_ref(b"n", 1),
        ] {
            assert!(matches!(result, Err(WriteError::NotANumber)), "{value:?}: {result:?}");
        }
        assert_eq!(store.get(b"n").unwrap().as_deref(), Some(value));
        assert_eq!(store.metadata(b"n").unwrap(), before);
    }
}

#[test]
fn a_counter_is_an_ordinary_value_otherwise() {
    let (_scratch, store) = stage("counters-plain");
    store.incr(b"n", 1, Counter::or_create(41)).unwrap();
    store.append(b"n", b"7").unwrap();
    assert_eq!(store.incr(b"n", 1, EXISTING).unwrap(), Some(418));
    store.set(b"n", b"text").unwrap();
    store.set(b"n", b"5").unwrap();
    assert_eq!(store.incr(b"n", 1, EXISTING).unwrap(), Some(6));
    assert_eq!(store.take(b"n").unwrap().as_deref(), Some(&b"6"[..]));
}

const SIGNED: Counter<i64> = Counter::EXISTING;
const FRACTION: Counter<f64> = Counter::EXISTING;

#[test]
fn signed_ones_go_below_zero_and_refuse_to_overflow() {
    let (_scratch, store) = stage("counters-signed");
    assert_eq!(store.incr_signed(b"n", -5, SIGNED).unwrap(), None);
    assert!(!store.contains_key(b"n").unwrap());
    let attributes = Attributes::NONE.flags(9).ttl(Ttl::After(Duration::from_secs(1000)));
    let created = Counter { initial: Some(-3), attributes };
    assert_eq!(store.incr_signed(b"n", 7, created).unwrap(), Some(-3), "the step is not applied to a new one");
    // Of each length, up and down, in place and not.
    let mut number = -3i64;
    for digits in 0..19 {
        for step in [10i64.pow(digits), -1, -10i64.pow(digits), 1, -10i64.pow(digits), 10i64.pow(digits)] {
            let Some(sum) = number.checked_add(step) else { continue };
            number = sum;
            assert_eq!(store.incr_signed(b"n", step, created).unwrap(), Some(number));
            assert_eq!(text(&store, b"n"), number.to_string());
        }
    }
    assert_eq!(store.metadata(b"n").unwrap().unwrap().flags, 9);
    assert!(store.ttl(b"n").unwrap() != Some(Expiry { remaining: None }), "the expiry stays");
    for (value, step) in [(i64::MAX, 1), (i64::MIN, -1), (-2, i64::MIN), (2, i64::MAX), (i64::MIN, i64::MIN)] {
        store.set(b"n", value.to_string().as_bytes()).unwrap();
        let before = store.metadata(b"n").unwrap();
        let refused = store.incr_signed(b"n", step, created).unwrap_err();
        assert!(matches!(refused, WriteError::Overflow) && refused.code() == 42, "{value} + {step}: {refused}");
        assert_eq!((text(&store, b"n"), store.metadata(b"n").unwrap()), (value.to_string(), before));
    }
}

/// What one kind of counter takes for a number and another does not, all of it by its text alone.
#[test]
fn kinds_share_a_key_as_far_as_its_text_goes() {
    let (_scratch, store) = stage("counters-kinds");
    store.incr(b"n", 1, Counter::or_create(2)).unwrap();
    assert_eq!(store.incr_signed(b"n", -3, SIGNED).unwrap(), Some(-1));
    assert!(matches!(store.incr(b"n", 1, EXISTING), Err(WriteError::NotANumber)));
    assert_eq!(store.incr_float(b"n", 0.5, FRACTION).unwrap(), Some(-0.5));
    assert!(matches!(store.incr_signed(b"n", 1, SIGNED), Err(WriteError::NotANumber)));
    assert_eq!(store.incr_float(b"n", 1.5, FRACTION).unwrap(), Some(1.0));
    assert_eq!(store.incr(b"n", 1, EXISTING).unwrap(), Some(2));
    store.set(b"n", (1u64 << 63).to_string().as_bytes()).unwrap();
    assert!(matches!(store.incr_signed(b"n", -1, SIGNED), Err(WriteError::NotANumber)));
    for number in ["-", "--1", "+1", "1.0", "-9223372036854775809", " 1", "-1x"] {
        store.set(b"n", number.as_bytes()).unwrap();
        assert!(matches!(store.incr_signed(b"n", 1, Counter::or_create(1)), Err(WriteError::NotANumber)), "{number}");
        assert_eq!(text(&store, b"n"), number);
    }
}

#[test]
fn fractions_are_exact_and_have_one_text() {
    let (_scratch, store) = stage("counters-fractions");
    assert_eq!(store.incr_float(b"f", 1.0, FRACTION).unwrap(), None);
    assert_eq!(store.incr_float(b"f", 9.0, Counter::or_create(0.1)).unwrap(), Some(0.1));
    for _ in 0..9 {
        store.incr_float(b"f", 0.1, FRACTION).unwrap();
    }
    assert_eq!(text(&store, b"f"), "1", "where doubles make 0.9999999999999999 of it");
    for (value, step, sum) in [
        ("10.50", 0.1, "10.6"),
        ("5.0e3", 200.0, "5200"),
        ("-0.5", 0.5, "0"),
        ("0", -0.0, "0"),
        ("0", 1e-17, "0.00000000000000001"),
        ("1", 1e-18, "1"),
        ("0", 5e-18, "0.00000000000000001"),
        ("0", -5e-18, "-0.00000000000000001"),
        ("0", 5e-324, "0"),
        ("9007199254740993", 1.0, "9007199254740994"),
        ("100000000000000000000", 0.25, "100000000000000000000.25"),
    ] {
        store.set(b"f", value.as_bytes()).unwrap();
        let now = store.incr_float(b"f", step, FRACTION).unwrap().unwrap();
        assert_eq!((text(&store, b"f"), now), (sum.to_owned(), sum.parse().unwrap()), "{value} + {step}");
    }
    assert_eq!(store.incr_float(b"large", 1.0, Counter::or_create(f64::MAX)).unwrap(), Some(f64::MAX));
    assert_eq!(text(&store, b"large").len(), 309, "without an exponent");
    for (value, step, number) in [
        ("1e308", 1.7e308, 42),
        ("1e4000", 1.0, 42),
        ("inf", 1.0, 42),
        ("nan", 1.0, 35),
        ("", 1.0, 35),
        ("1,5", 1.0, 35),
        ("1", f64::NAN, 37),
        ("1", f64::INFINITY, 37),
        ("1", f64::NEG_INFINITY, 37),
    ] {
        store.set(b"f", value.as_bytes()).unwrap();
        let before = store.metadata(b"f").unwrap();
        assert_eq!(
            store.incr_float(b"f", step, Counter::or_create(1.0)).unwrap_err().code(),
            number,
            "{value} + {step}"
        );
        assert_eq!((text(&store, b"f"), store.metadata(b"f").unwrap()), (value.to_owned(), before));
    }
    for initial in [f64::NAN, f64::INFINITY] {
        assert_eq!(store.incr_float(b"new", 1.0, Counter::or_create(initial)).unwrap_err().code(), 37);
    }
    assert!(!store.contains_key(b"new").unwrap());
    let attributes = Attributes::NONE.flags(9).ttl(Ttl::After(Duration::from_secs(1000)));
    store.incr_float(b"new", 1.0, Counter { initial: Some(-1.5), attributes }).unwrap();
    store.incr_float(b"new", 1.0, Counter::or_create(0.0)).unwrap();
    assert_eq!((text(&store, b"new").as_str(), store.metadata(b"new").unwrap().unwrap().flags), ("-0.5", 9));
    assert!(store.ttl(b"new").unwrap() != Some(Expiry { remaining: None }), "the expiry stays");
}

/// Where every value is as long, there are zeros between the sign and the digits.
#[test]
fn in_a_store_of_fixed_lengths() {
    let scratch = Scratch::new("counters-fixed");
    let store = small().fixed_value_len(6).open(scratch.store("counters")).unwrap();
    assert_eq!(store.incr_signed(b"n", 1, Counter::or_create(5)).unwrap(), Some(5));
    assert_eq!(text(&store, b"n"), "000005");
    assert_eq!(store.incr_signed(b"n", -17, SIGNED).unwrap(), Some(-12));
    assert_eq!(text(&store, b"n"), "-00012");
    assert_eq!(store.incr_float(b"n", 0.5, FRACTION).unwrap(), Some(-11.5));
    assert_eq!(text(&store, b"n"), "-011.5");
    assert!(matches!(store.incr_float(b"n", 0.0001, FRACTION), Err(WriteError::WrongLength { .. })));
    store.set(b"n", b"-99999").unwrap();
    assert!(matches!(store.incr_signed(b"n", -1, SIGNED), Err(WriteError::WrongLength { .. })));
    assert_eq!(text(&store, b"n"), "-99999");
}

/// By whatever names the key, and by how many threads: no step is lost.
#[test]
fn steps_of_every_kind_add_up() {
    let _watchdog = Watchdog::start("counters-kinds");
    let scratch = Scratch::new("counters-sums");
    let store = tiny().open(scratch.store("counters")).unwrap();
    const STEPS: i64 = 2000;
    store.set(b"signed", b"5").unwrap();
    store.set(b"fraction", b"0").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let store = &store;
            scope.spawn(move || {
                let (signed, fraction) =
                    (store.id_of(b"signed").unwrap().unwrap(), store.id_of(b"fraction").unwrap().unwrap());
                for _ in 0..STEPS {
                    // Two up, two down: the sum crosses zero again and again.
                    let step = if thread % 2 == 0 { 3 } else { -3 };
                    match thread {
                        0 | 1 => store.incr_signed(b"signed", step, SIGNED).unwrap(),
                        _ => store.incr_signed(signed, step, SIGNED).unwrap(),
                    };
                    match thread {
                        0 | 1 => store.incr_float(b"fraction", 0.1, FRACTION).unwrap(),
                        _ => store.incr_float(fraction, 0.1, FRACTION).unwrap(),
                    };
                    store.inc_ref(b"refs", 3).unwrap();
                }
            });
        }
    });
    assert_eq!((text(&store, b"signed").as_str(), text(&store, b"fraction").as_str()), ("5", "800"));
    assert_eq!(text(&store, b"refs"), (12 * STEPS).to_string());
}

#[test]
fn reference_counts_delete_at_zero() {
    let (_scratch, store) = stage("counters-refs");
    assert_eq!(store.dec_ref(b"r", 1).unwrap(), None);
    for number in 1..=5 {
        assert_eq!(store.inc_ref(b"r", 1).unwrap(), number);
    }
    assert_eq!(text(&store, b"r"), "5");
    for number in (0..5).rev() {
        assert_eq!(store.dec_ref(b"r", 1).unwrap(), Some(number));
    }
    assert!(!store.contains_key(b"r").unwrap());
    // By any step, which may take more than there are; none at all changes nothing.
    assert_eq!((store.inc_ref(b"r", 0).unwrap(), store.dec_ref(b"r", 0).unwrap()), (0, None));
    assert_eq!((store.inc_ref(b"r", 7).unwrap(), store.inc_ref(b"r", 4).unwrap()), (7, 11));
    assert_eq!((store.dec_ref(b"r", 0).unwrap(), store.dec_ref(b"r", 10).unwrap()), (Some(11), Some(1)));
    assert!(matches!(store.inc_ref(b"r", u64::MAX), Err(WriteError::Overflow)));
    assert_eq!((text(&store, b"r").as_str(), store.dec_ref(b"r", 9).unwrap()), ("1", Some(0)));
    assert_eq!(store.len(), 0);
}

/// Of those who release at once, exactly one sees the zero.
#[test]
fn exactly_one_sees_the_last_reference_go() {
    let _watchdog = Watchdog::start("counters-last");
    let scratch = Scratch::new("counters-last");
    let store = tiny().open(scratch.store("counters")).unwrap();
    let gate = hashmere_testkit::threads::Gate::new();
    let zeros = std::sync::atomic::AtomicU64::new(0);
    const ROUNDS: usize = 3000;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let store = Options::new().open(store.path()).unwrap();
                for round in 0..ROUNDS {
                    let key = payload::key(round as u64);
                    store.inc_ref(&key, 1).unwrap();
                    gate.pass(3, round);
                    let last = store.dec_ref(&key, 1).unwrap() == Some(0);
                    zeros.fetch_add(u64::from(last), std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(zeros.into_inner(), ROUNDS as u64);
    assert_eq!(store.len(), 0);
}

#[test]
fn eight_processes_add_up() {
    let _watchdog = Watchdog::start("counters-eight");
    let scratch = Scratch::new("counters-eight");
    let store = tiny().open(scratch.store("counters")).unwrap();
    let path = store.path().display();
    let mut workers: Vec<Worker> = (0..8).map(|_| Worker::start(worker!(), "hammer", &[&path, &5, &"incr"])).collect();
    workers.iter_mut().for_each(|worker| worker.expect("ready"));
    std::thread::sleep(Duration::from_secs(2));
    let first = || text(&store, &payload::key(0)).parse::<u64>().unwrap();
    wait_until("they have counted for a while", LIMIT, || first() > 1000);
    let mut total = 0;
    for mut worker in workers {
        worker.no_more();
        total += worker.hear(LIMIT).strip_prefix("added ").unwrap().parse::<u64>().unwrap();
        worker.finish(LIMIT).ok("hammer");
    }
    for key in 0..5 {
        assert_eq!(text(&store, &payload::key(key)), total.to_string(), "counter {key}");
    }
}

#[test]
fn every_kind_of_counter_counts_in_a_batch_and_in_a_transaction() {
    use BatchResult::{Counted, CountedFloat, CountedSigned};
    let (scratch, store) = stage("counters-transactions");
    let counter = Counter { initial: Some(-2), attributes: Attributes::NONE.flags(3) };
    let fraction = Counter { initial: Some(0.1), ..Counter::default() };
    let mut batch = WriteBatch::new();
    batch.incr_signed("signed", 5, counter).incr_signed("signed", -5, counter);
    batch.incr_signed("none", 5, Counter::default()).incr_float("none", 5.0, Counter::default());
    batch.incr_float("float", 7.0, fraction).incr_float("float", 0.2, fraction).incr("float none", 1, EXISTING);
    let results = store.write_batch(&batch).unwrap();
    assert_eq!(results[..3], [CountedSigned(Some(-2)), CountedSigned(Some(-7)), CountedSigned(None)]);
    assert_eq!(results[3..], [CountedFloat(None), CountedFloat(Some(0.1)), CountedFloat(Some(0.3)), Counted(None)]);
    let signed = store.get_item("signed").unwrap().unwrap();
    assert_eq!((&signed.value[..], signed.metadata.flags), (&b"-7"[..], 3));
    assert_eq!(store.get("float").unwrap().unwrap(), b"0.3");
    // It keeps flags, adds to what the transaction wrote, and sees what others count.
    let seen = store.transaction(|t| -> Result<_, WriteError> {
        let first = t.incr_signed("signed", 1, Counter::default())?;
        t.set("own", "1.5")?;
        let own = (t.incr_float("own", -2.0, Counter::default())?, t.incr_float("none", 1.0, Counter::default())?);
        Ok((first, own, t.incr_signed("signed", -1, Counter::default())?))
    });
    assert_eq!(seen.unwrap(), (Some(-6), (Some(-0.5), None), Some(-7)));
    assert_eq!(store.metadata("signed").unwrap().unwrap().flags, 3);
    // The limits of each kind, and what is none: nothing has changed then.
    store.set("most", i64::MAX.to_string().as_bytes()).unwrap();
    store.set("large", b"1.7e308").unwrap();
    let refused = |add: &dyn Fn(&mut WriteBatch)| {
        let mut batch = WriteBatch::new();
        batch.set("changed", "x");
        add(&mut batch);
        let error = store.write_batch(&batch).unwrap_err();
        assert!(!store.contains_key("changed").unwrap(), "{error:?}");
        error
    };
    let existing = Counter::default();
    let none = Counter::default();
    assert!(matches!(refused(&|b| _ = b.incr_signed("most", 1, existing)), WriteError::Overflow));
    assert!(matches!(refused(&|b| _ = b.incr_signed("float", 1, existing)), WriteError::NotANumber));
    assert!(matches!(refused(&|b| _ = b.incr("signed", 1, EXISTING)), WriteError::NotANumber));
    assert!(matches!(refused(&|b| _ = b.incr_float("large", 1.7e308, none)), WriteError::Overflow));
    assert!(matches!(refused(&|b| _ = b.incr_float("float", f64::NAN, none)), WriteError::InvalidState(_)));
    let infinite = Counter { initial: Some(f64::INFINITY), ..Counter::default() };
    assert!(matches!(refused(&|b| _ = b.incr_float("new", 1.0, infinite)), WriteError::InvalidState(_)));
    assert_eq!(store.get("most").unwrap().unwrap(), i64::MAX.to_string().as_bytes());
    // In a store of fixed lengths a number is filled up with zeros, as by the calls for one key.
    let fixed = Options::new().fixed_value_len(6).open(scratch.store("fixed")).unwrap();
    let mut batch = WriteBatch::new();
    batch.incr_signed("signed", 5, counter).incr_float("float", 0.2, fraction);
    fixed.write_batch(&batch).unwrap();
    assert_eq!(fixed.get("signed").unwrap().unwrap(), b"-00002");
    assert_eq!(fixed.get("float").unwrap().unwrap(), b"0000.1");
    assert_clean(&store);
}
