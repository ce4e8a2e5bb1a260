//! What the four operations promise without a crash: order, room, nothing lost between threads.

use super::fixture::{client, Fixture, Gone, BASE, QUEUES};
use crate::layout::{Geometry, Kind};
use crate::transfer::{peek, pop_many, pop_one, push_many, push_one, Push};
use hashmere_mem::Mem;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

#[test]
#[cfg_attr(miri, ignore = "takes minutes there, and shows nothing that the others do not")]
fn first_in_first_out_through_many_rounds() {
    for kind in [Kind::Mpmc, Kind::Mpsc, Kind::Spsc] {
        for elements in [1, 2, 3, 8, 9, 30] {
            let fixture = Fixture::new(elements, kind, elements, 0);
            let actor = fixture.actor();
            let endpoint = actor.endpoint(0);
            let (free, queue) = (actor.ring(0), actor.ring(1));
            let mut number = 0;
            for round in 0..60 {
                let n = round % (elements + 1);
                for _ in 0..n {
                    let element = pop_one(&actor.mem, &free, &endpoint, 0).unwrap();
                    assert_eq!(u64::from(element), number % elements, "the order in which they were put back");
                    number += 1;
                    assert_eq!(push_one(&actor.mem, &queue, &endpoint, 0, element), Push::Done(1));
                }
                assert_eq!((queue.len(&actor.mem), free.len(&actor.mem)), (n, elements - n));
                let mut left = n;
                while left > 0 {
                    let popped = pop_many(&actor.mem, &queue, &endpoint, left);
                    assert!(popped > 0);
                    assert_eq!(push_many(&actor.mem, &free, &endpoint, popped), Push::Done(popped));
                    left -= popped;
                }
                assert_eq!(pop_one(&actor.mem, &queue, &endpoint, 0), None);
                assert_eq!(pop_many(&actor.mem, &queue, &endpoint, 9), 0);
            }
        }
    }
}

#[test]
fn a_bound_is_kept_by_singles_and_batches() {
    for kind in [Kind::Mpmc, Kind::Mpsc, Kind::Spsc] {
        let fixture = Fixture::new(8, kind, 3, 0);
        let actor = fixture.actor();
        let endpoint = actor.endpoint(0);
        let (free, queue) = (actor.ring(0), actor.ring(1));
        assert_eq!(pop_many(&actor.mem, &free, &endpoint, 5), 5);
        assert_eq!(push_many(&actor.mem, &queue, &endpoint, 5), Push::Done(3));
        assert_eq!(push_many(&actor.mem, &queue, &endpoint, 5), Push::Full);
        let element = pop_one(&actor.mem, &free, &endpoint, 7).unwrap();
        assert_eq!(push_one(&actor.mem, &queue, &endpoint, 7, element), Push::Full);
        assert_eq!(actor.element(&endpoint, 7), element, "it is in the endpoint still");
        assert_eq!(pop_one(&actor.mem, &queue, &endpoint, 1), Some(0));
        assert_eq!(push_one(&actor.mem, &queue, &endpoint, 7, element), Push::Done(1));
        assert_eq!(actor.core().release_endpoint(0), 3);
        let census = fixture.census().unwrap();
        assert_eq!(census[1], [1, 2, element]);
    }
}

#[test]
fn the_end_of_the_batch_is_reached_and_begun_again() {
    let fixture = Fixture::new(20, Kind::Mpmc, 20, 0);
    let actor = fixture.actor();
    let endpoint = actor.endpoint(0);
    let (free, queue) = (actor.ring(0), actor.ring(1));
    // A batch has room for eight.
    assert_eq!(pop_many(&actor.mem, &free, &endpoint, 6), 6);
    assert_eq!(push_many(&actor.mem, &queue, &endpoint, 4), Push::Done(4));
    assert_eq!(pop_many(&actor.mem, &free, &endpoint, 6), 2);
    assert_eq!(pop_many(&actor.mem, &free, &endpoint, 6), 0);
    assert_eq!(push_many(&actor.mem, &queue, &endpoint, 100), Push::Done(4));
    assert_eq!(pop_many(&actor.mem, &free, &endpoint, 100), 8);
    assert_eq!(actor.core().return_batch(&endpoint), 8);
    assert_eq!(fixture.census().unwrap()[1], [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
pub(super) fn no_client_takes_the_endpoint_of_a_live_one() {
    let fixture = Fixture::new(4, Kind::Mpmc, 4, 0);
    let actor = fixture.actor();
    let endpoint = actor.endpoint(0);
    pop_one(&actor.mem, &actor.ring(0), &endpoint, 0).unwrap();
    assert_eq!(actor.core().recover(client(1), &Gone(Vec::new())).unwrap(), 0);
    assert_eq!(actor.core().recover(client(1), &Gone(vec![client(0)])).unwrap(), 1);
    assert_eq!(actor.core().recover(client(1), &Gone(vec![client(0)])).unwrap(), 0);
    assert_eq!(fixture.census().unwrap()[0], [1, 2, 3, 0]);
    let endpoints: Vec<_> = (0..4).map(|n| actor.endpoint(n)).collect();
    assert!(actor.core().take_endpoint(client(5)).is_none());
    drop(endpoints);
}

/// Producers and consumers at once: nothing is lost or doubled, and each producer's elements arrive in its order.
#[test]
fn threads_lose_nothing_and_keep_their_order() {
    let rounds = if cfg!(miri) { 12 } else { 20_000 };
    for kind in [Kind::Mpmc, Kind::Spsc] {
        let fixture = Fixture::new(8, kind, 8, 0);
        let pairs = if kind == Kind::Mpmc { 2 } else { 1 };
        std::thread::scope(|scope| {
            for number in 0..pairs {
                let fixture = &fixture;
                scope.spawn(move || {
                    let actor = fixture.actor();
                    let endpoint = actor.endpoint(number);
                    for i in 0..rounds {
                        let element = loop {
                            match pop_one(&actor.mem, &actor.ring(0), &endpoint, 0) {
                                Some(element) => break element,
                                None => std::thread::yield_now(),
                            }
                        };
                        let at = 256 + fixture.geometry.element(u64::from(element));
                        hashmere_mem::Mem::store(
                            &*fixture.heap,
                            at,
                            number << 32 | i,
                            std::sync::atomic::Ordering::Relaxed,
                        );
                        assert_eq!(push_one(&actor.mem, &actor.ring(1), &endpoint, 0, element), Push::Done(1));
                    }
                });
                scope.spawn(move || {
                    let actor = fixture.actor();
                    let endpoint = actor.endpoint(2 + number);
                    let mut last: HashMap<u64, u64> = HashMap::new();
                    for i in 0..rounds {
                        let element = loop {
                            match pop_one(&actor.mem, &actor.ring(1), &endpoint, 0) {
                                Some(element) => break element,
                                None => std::thread::yield_now(),
                            }
                        };
                        let at = 256 + fixture.geometry.element(u64::from(element));
                        let word = hashmere_mem::Mem::load(&*fixture.heap, at, std::sync::atomic::Ordering::Relaxed);
                        let before = last.insert(word >> 32, word & 0xffff_ffff);
                        assert!(
                            before.is_none_or(|before| before < word & 0xffff_ffff),
                            "round {i}: {before:?} {word:x}"
                        );
                        assert_eq!(push_one(&actor.mem, &actor.ring(0), &endpoint, 0, element), Push::Done(1));
                    }
                });
            }
        });
        assert_eq!(fixture.census().unwrap()[0].len(), 8);
    }
}

/// A copy of the first element is whole and as it was, or there is none, while another thread takes that element and
/// writes to it.
#[test]
fn a_peek_sees_whole_elements_beside_a_consumer() {
    const WORDS: u64 = 8;
    for attempt in 0..if cfg!(miri) { 12 } else { 2_000 } {
        let kind = if attempt % 2 == 0 { Kind::Mpmc } else { Kind::Mpsc };
        let fixture = Fixture::of(Geometry::new(1, 8 * WORDS, QUEUES, 4, 1).unwrap(), kind, 1, 0);
        let at = BASE + fixture.geometry.element(0);
        let fill = |word| (0..WORDS).for_each(|n| fixture.heap.store(at + 8 * n, word, Ordering::Relaxed));
        fill(1);
        let (actor, mover) = (fixture.actor(), fixture.actor().endpoint(0));
        let element = pop_one(&actor.mem, &actor.ring(0), &mover, 0).unwrap();
        push_one(&actor.mem, &actor.ring(1), &mover, 0, element);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let actor = fixture.actor();
                let endpoint = actor.endpoint(1);
                pop_one(&actor.mem, &actor.ring(1), &endpoint, 0).unwrap();
                fill(2);
            });
            scope.spawn(|| {
                let actor = fixture.actor();
                if let Some(bytes) = peek(&actor.mem, &actor.ring(1), &actor.geometry, BASE) {
                    assert!(bytes.chunks(8).all(|word| word[0] == 1), "attempt {attempt}, {kind:?}: {bytes:?}");
                }
            });
        });
    }
}
