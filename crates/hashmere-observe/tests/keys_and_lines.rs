//! The keys that take the room, what look-ups cost, the last lines of a log: what is said is what is there.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Cursor, Options, ReadError, Store};
use hashmere_log::{Level, Log, LogError, LogOptions, Sink};
use hashmere_observe::{BigKeys, BigKeysOptions, LogTail, LookupProbe};
use hashmere_testkit::scratch::Scratch;
use std::collections::BTreeSet;

fn key(i: usize) -> Vec<u8> {
    format!("user:{}:{i}", i % 7).into_bytes()
}

#[test]
fn a_count_in_steps_is_that_of_all_keys() {
    let scratch = Scratch::new("observe-big");
    let store = Store::open(scratch.store("s")).unwrap();
    (0..3000).for_each(|i| assert!(store.set(&key(i), &vec![b'x'; i]).is_ok()));
    store.set(b"page/1", b"y").unwrap();
    let whole = |places: usize| {
        let mut keys = BigKeys::new(&BigKeysOptions { top: 3, ..Default::default() });
        let mut steps = 0;
        while keys.cursor().is_some() {
            keys.step(&store, places, u64::MAX).unwrap();
            steps += 1;
        }
        (keys, steps)
    };
    let (keys, steps) = whole(100);
    assert!(steps > 20, "{steps}");
    let summary = keys.summary();
    let bytes: usize = (0..3000).map(|i| key(i).len() + i).sum();
    assert_eq!((summary.keys(), summary.total().bytes), (3001, bytes as u64 + 7));
    let largest: Vec<_> = summary.largest().into_iter().map(|one| (one.key, one.value_len)).collect();
    assert_eq!(largest, [(key(2999), 2999), (key(2998), 2998), (key(2997), 2997)]);
    let levels: Vec<_> =
        summary.prefixes(2).into_iter().map(|line| (line.prefix, line.level, line.count.keys)).collect();
    assert_eq!(
        (levels[0].clone(), levels.last().unwrap().clone()),
        ((Some(b"user:".to_vec()), 0, 3000), (Some(b"page/".to_vec()), 0, 1))
    );
    assert_eq!(summary.sizes().map(|(_, count)| count.keys).sum::<u64>(), 3001);
    // However large a step is.
    let (again, steps) = whole(usize::MAX);
    assert_eq!((again.summary().total(), steps), (summary.total(), 1));
    // One that ends early goes on where it was; one key is counted once.
    let mut first = BigKeys::new(&BigKeysOptions::default());
    first.step(&store, usize::MAX, 1000).unwrap();
    assert_eq!(first.summary().keys(), 1000);
    let from = first.cursor().unwrap();
    let mut rest = BigKeys::new(&BigKeysOptions { from, ..Default::default() });
    rest.step(&store, usize::MAX, u64::MAX).unwrap();
    assert_eq!((rest.summary().keys(), rest.cursor()), (2001, None));
    let mut pages = BigKeys::new(&BigKeysOptions { prefix: b"page/".to_vec(), ..Default::default() });
    pages.step(&store, usize::MAX, u64::MAX).unwrap();
    assert_eq!(pages.summary().keys(), 1);
    // A cursor that is none is said once.
    let mut bad = BigKeys::new(&BigKeysOptions { from: Cursor(u64::MAX), ..Default::default() });
    assert!(matches!(bad.step(&store, 10, u64::MAX), Err(ReadError::BadCursor)));
    assert!(bad.cursor().is_none() && bad.step(&store, 10, u64::MAX).is_ok());
}

#[test]
fn look_ups_are_of_other_keys_each_time_and_count_as_no_reads() {
    let scratch = Scratch::new("observe-lookups");
    let store = Options::new().expected_items(1000).open(scratch.store("s")).unwrap();
    let mut probe = LookupProbe::default();
    // Of an empty store there is nothing to say.
    assert_eq!(probe.poll(&store).unwrap(), None);
    assert_eq!(probe.poll(&store).unwrap(), None);
    (0..1000).for_each(|i| assert!(store.set(&key(i), b"value").is_ok()));
    store.set(hashmere::Key::with_hash(b"with a hash", 7), b"value").unwrap();
    assert_eq!(probe.poll(&store).unwrap(), None, "it chooses before it times");
    let mut timed = 0;
    for _ in 0..100 {
        let Some(times) = probe.poll(&store).unwrap() else { continue };
        timed += times.count;
        assert!(times.p50_ns > 0 && times.p50_ns <= times.p90_ns && times.p90_ns <= times.p99_ns, "{times:?}");
        assert!(times.p99_ns <= times.max_ns && times.clock_ns > 0, "{times:?}");
    }
    assert!(timed > 2000, "{timed}");
    let stats = store.stats();
    assert_eq!((stats.hits, stats.misses), (0, 0));
    // Keys that are gone are not timed.
    store.clear().unwrap();
    assert_eq!(probe.poll(&store).unwrap(), None);
}

#[test]
fn a_tail_has_each_line_once_in_order_and_takes_none_away() {
    let scratch = Scratch::new("observe-tail");
    let store = Store::open(scratch.store("s")).unwrap();
    assert!(matches!(LogTail::open(&store, "events"), Err(LogError::NotFound { .. })));
    let log = Log::open(&store, "events", LogOptions::default()).unwrap();
    let mut drain = log.drain_manual(Sink::callback(|_| ())).unwrap();
    let mut write = |numbers: std::ops::Range<usize>| {
        for i in numbers {
            assert!(log.line_fields(Level::Warn, format!("<b>{i}\n\u{e9}"), &[("n", (i as u64).into())]).unwrap());
            while drain.poll().unwrap().1 {}
        }
    };
    write(0..5);
    let mut tail = LogTail::open(&store, "events").unwrap();
    tail.poll().unwrap();
    let texts = |tail: &LogTail, after| -> Vec<String> {
        tail.lines(after).map(|line| String::from_utf8(line.json.clone()).unwrap()).collect()
    };
    let first = texts(&tail, None);
    assert_eq!(first.len(), 5);
    assert!(
        first[4].starts_with("{\"time\":\"") && first[4].ends_with("\"text\":\"<b>4\\n\u{e9}\",\"fields\":{\"n\":4}}"),
        "{}",
        first[4]
    );
    // From a position on: what came since.
    let last = tail.lines(None).last().unwrap().position;
    assert_eq!(texts(&tail, Some(last)).len(), 0);
    write(5..8);
    tail.poll().unwrap();
    let since = texts(&tail, Some(last));
    assert!(since.len() == 3 && since[0].contains("<b>5"), "{since:?}");
    // No more than the last 200, in order, each once.
    write(8..1000);
    tail.poll().unwrap();
    let positions: Vec<u64> = tail.lines(None).map(|line| line.position).collect();
    assert_eq!(positions.len(), 200);
    assert!(positions.windows(2).all(|two| two[0] < two[1]));
    assert_eq!(positions.iter().collect::<BTreeSet<_>>().len(), 200);
    assert!(texts(&tail, None)[199].contains("<b>999") && tail.missed_bytes() == 0);
    // Another one begins with the last lines, and none was taken from it.
    let mut other = LogTail::open(&store, "events").unwrap();
    other.poll().unwrap();
    assert_eq!(texts(&other, None), texts(&tail, None));
}
