//! Models: small scenarios of a few clients of a pool, run under a scheduler that lets them change places before every
//! access. See `docs/internals/testing.md`. Memory is sequentially consistent here: what is explored is interleavings,
//! not orderings.

use super::fixture::{client, Actor, Fixture};
use crate::fault::{self, Fault};
use crate::layout::{Geometry, Kind};
use crate::recover::Liveness;
use crate::ring::EndpointLayout;
use crate::transfer::{peek, pop_many, pop_one, push_many, push_one, wake_sleepers, Push};
use crate::wait::sleep;
use hashmere_engine::{ClientId, WriteError};
use hashmere_mem::scenarios::{self, explore, wrong};
use hashmere_mem::shuttle::rand::{thread_rng, Rng};
use hashmere_mem::shuttle::thread;
use hashmere_mem::traced::{until_death, Traced};
use hashmere_mem::{Mem, ModelMem};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn must_find(fault: Fault, scenario: impl Fn() + Send + Sync + 'static) {
    scenarios::must_find(&format!("{fault:?}"), |tell| fault::with(fault, tell), scenario);
}

/// A scenario on a copy of a pool.
#[derive(Clone)]
struct Play {
    mem: Arc<ModelMem>,
    geometry: Geometry,
    dead: Arc<Mutex<Vec<ClientId>>>,
}

impl Play {
    fn new(fixture: &Fixture) -> Play {
        Play { mem: ModelMem::new(fixture.heap.image()), geometry: fixture.geometry, dead: Arc::default() }
    }

    fn actor(&self) -> Actor<Traced<ModelMem>> {
        Actor { mem: Traced::new(&self.mem), geometry: self.geometry }
    }

    /// An actor with an endpoint of its own.
    fn spawn(
        &self,
        number: u64,
        act: impl FnOnce(&Actor<Traced<ModelMem>>, &EndpointLayout) + Send + 'static,
    ) -> Thread {
        let actor = self.actor();
        self.mem.spawn(move || {
            let endpoint = actor.endpoint(number);
            act(&actor, &endpoint);
        })
    }

    /// All elements are in one queue each, and no endpoint holds any.
    fn end(self, threads: Vec<Thread>) -> Vec<Vec<u32>> {
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let fixture = Fixture { heap: Arc::new(self.mem.heap().image()), geometry: self.geometry };
        fixture.census().unwrap_or_else(|text| wrong(text))
    }
}

type Thread = thread::JoinHandle<()>;

impl Liveness for Play {
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError> {
        Ok(self.dead.lock().unwrap().contains(&client))
    }
}

/// A pool of four elements, all of them in queue 1, and every cell was in use before.
fn in_one_queue() -> Fixture {
    let fixture = Fixture::new(4, Kind::Mpmc, 4, 0);
    let actor = fixture.actor();
    let endpoint = actor.endpoint(0);
    for _ in 0..12 {
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            pass(&actor, &endpoint, from, to);
        }
    }
    while pass(&actor, &endpoint, 0, 1).is_some() {}
    actor.core().release_endpoint(0);
    fixture
}

/// Takes one element from a queue and puts it into another.
fn pass<M: Mem>(actor: &Actor<M>, endpoint: &EndpointLayout, from: u64, to: u64) -> Option<u32> {
    let element = pop_one(&actor.mem, &actor.ring(from), endpoint, 0)?;
    assert_eq!(push_one(&actor.mem, &actor.ring(to), endpoint, 0, element), Push::Done(1));
    Some(element)
}

fn pass_many<M: Mem>(actor: &Actor<M>, endpoint: &EndpointLayout, from: u64, to: u64, n: u64) {
    pop_many(&actor.mem, &actor.ring(from), endpoint, n);
    push_many(&actor.mem, &actor.ring(to), endpoint, n);
}

/// Two take single elements and one a batch, from the same queue to the same queue, and one of them takes them back.
fn moves() -> impl Fn() + Send + Sync + 'static {
    let fixture = in_one_queue();
    move || {
        let play = Play::new(&fixture);
        let single = |number: u64| {
            play.spawn(number, |actor, endpoint| {
                for _ in 0..2 {
                    pass(actor, endpoint, 1, 2);
                }
            })
        };
        let batch = play.spawn(2, |actor, endpoint| {
            pass_many(actor, endpoint, 1, 2, 2);
            pass_many(actor, endpoint, 2, 1, 3);
        });
        play.clone().end(vec![single(0), single(1), batch]);
    }
}

#[test]
fn nothing_is_lost_or_doubled() {
    explore("queue/moves", moves());
}

#[test]
fn finds_a_head_that_is_stored() {
    must_find(Fault::HeadStored, moves());
}

#[test]
fn finds_a_tail_that_is_stored() {
    must_find(Fault::TailStored, moves());
}

#[test]
fn finds_a_cell_that_is_believed() {
    must_find(Fault::CellUnchecked, moves());
}

/// Two producers push two elements each, single and as a batch; a consumer takes them one by one.
fn order(kind: Kind, producers: u64) -> impl Fn() + Send + Sync + 'static {
    let fixture = Fixture::new(4, kind, 4, 0);
    move || {
        let play = Play::new(&fixture);
        let wanted = 2 * producers as usize;
        let mut threads: Vec<Thread> = (0..producers)
            .map(|number| {
                play.spawn(number, move |actor, endpoint| {
                    // Elements come out of `free` in the order of their numbers.
                    if number == 0 {
                        (0..2).for_each(|_| assert!(pass(actor, endpoint, 0, 1).is_some()));
                    } else {
                        pass_many(actor, endpoint, 0, 1, 2);
                    }
                })
            })
            .collect();
        threads.push(play.spawn(3, move |actor, endpoint| {
            let mut came: Vec<u32> = Vec::new();
            while came.len() < wanted {
                match pass(actor, endpoint, 1, 3) {
                    Some(element) => came.push(element),
                    None => thread::yield_now(),
                }
            }
        }));
        let queues = play.clone().end(threads);
        if producers == 1 && queues[3] != [0, 1] {
            wrong(format!("the order is {:?}", queues[3]));
        }
    }
}

#[test]
fn a_consumer_beside_two_producers() {
    explore("queue/mpsc", order(Kind::Mpsc, 2));
    explore("queue/mpmc", order(Kind::Mpmc, 2));
}

#[test]
fn one_producer_and_one_consumer_keep_the_order() {
    explore("queue/spsc", order(Kind::Spsc, 1));
}

/// One dies at any of its stores, beside another who moves the same elements; two clear up at the same time, while the
/// other goes on.
fn deaths() -> impl Fn() + Send + Sync + 'static {
    let fixture = in_one_queue();
    move || {
        let play = Play::new(&fixture);
        let (victim, dead) = (play.actor(), play.dead.clone());
        let endpoint = victim.endpoint(0);
        victim.mem.die_at(victim.mem.stores() + thread_rng().gen_range(0..40));
        let victim = thread::spawn(move || {
            let done = until_death(|| {
                pass(&victim, &endpoint, 1, 2);
                pop_one(&victim.mem, &victim.ring(1), &endpoint, 5);
                pass_many(&victim, &endpoint, 1, 2, 2);
                pop_many(&victim.mem, &victim.ring(2), &endpoint, 1);
            });
            let _ = done;
            dead.lock().unwrap().push(client(0));
        });
        let other = play.spawn(1, |actor, endpoint| {
            for (from, to) in [(1, 2), (2, 1), (1, 2)] {
                pass(actor, endpoint, from, to);
            }
        });
        let repair = |number: u64| {
            let peers = play.clone();
            play.spawn(number, move |actor, _| {
                while actor.core().recover(client(number), &peers).unwrap() == 0
                    && peers.dead.lock().unwrap().is_empty()
                {
                    thread::yield_now();
                }
            })
        };
        let threads = vec![victim, other, repair(2), repair(3)];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // What crashed actors popped after the last look of both.
        play.actor().core().recover(client(5), &play).unwrap();
        play.clone().end(Vec::new());
    }
}

#[test]
fn what_a_crashed_endpoint_held_comes_back_once() {
    explore("queue/deaths", deaths());
}

#[test]
fn finds_a_move_that_is_not_confirmed() {
    must_find(Fault::SuccessUnconfirmed, deaths());
}

#[test]
fn finds_two_who_clear_up() {
    must_find(Fault::OwnerOverwritten, deaths());
}

/// Two sleep until there is something to pop; one pushes two elements, one after the other.
fn sleepers() -> impl Fn() + Send + Sync + 'static {
    let fixture = Fixture::new(4, Kind::Mpmc, 4, 0);
    move || {
        let play = Play::new(&fixture);
        let sleeper = |number: u64| {
            play.spawn(number, |actor, endpoint| {
                while pass(actor, endpoint, 1, 2).is_none() {
                    sleep(&actor.mem, &actor.ring(1), Duration::MAX);
                }
            })
        };
        let threads = vec![
            sleeper(0),
            sleeper(1),
            play.spawn(2, |actor, endpoint| {
                for _ in 0..2 {
                    pass(actor, endpoint, 0, 1);
                    wake_sleepers(&actor.mem, &actor.ring(1));
                }
            }),
        ];
        let queues = play.clone().end(threads);
        if queues[2].len() != 2 {
            wrong("a consumer got nothing");
        }
    }
}

#[test]
fn no_endpoint_sleeps_on_beside_an_element() {
    explore("queue/sleepers", sleepers());
}

#[test]
fn finds_a_look_before_the_flag() {
    must_find(Fault::CheckedEarly, sleepers());
}

#[test]
fn finds_an_event_that_is_read_too_late() {
    must_find(Fault::EventLate, sleepers());
}

#[test]
fn finds_a_flag_that_is_taken_off_too_late() {
    must_find(Fault::FlagLate, sleepers());
}

/// One looks at the first element, while another takes it, writes it, and endpoints it on, and the next one.
fn peeks() -> impl Fn() + Send + Sync + 'static {
    let geometry = Geometry::new(2, 16, super::fixture::QUEUES, 4, 2).unwrap();
    let fixture = Fixture::of(geometry, Kind::Mpmc, 2, 0);
    let base = super::fixture::BASE;
    for word in 0..4 {
        fixture.heap.store(base + geometry.element(0) + 8 * word, 0, Ordering::Relaxed);
    }
    move || {
        let play = Play::new(&fixture);
        let threads = vec![
            play.spawn(0, move |actor, _| {
                for _ in 0..2 {
                    if let Some(bytes) = peek(&actor.mem, &actor.ring(0), &actor.geometry, base) {
                        if bytes[..8] != bytes[8..] {
                            wrong("half of an element was seen");
                        }
                    }
                }
            }),
            play.spawn(1, move |actor, endpoint| {
                for round in 1..3 {
                    let element =
                        pop_one(&actor.mem, &actor.ring(0), endpoint, 0).unwrap_or_else(|| wrong("it is gone"));
                    let at = base + actor.geometry.element(element.into());
                    actor.mem.store(at, round, Ordering::Relaxed);
                    actor.mem.store(at + 8, round, Ordering::Relaxed);
                    push_one(&actor.mem, &actor.ring(0), endpoint, 0, element);
                }
            }),
        ];
        play.clone().end(threads);
    }
}

#[test]
fn a_peek_sees_whole_elements() {
    explore("queue/peek", peeks());
}

#[test]
fn finds_a_peek_that_is_believed() {
    must_find(Fault::PeekUnchecked, peeks());
}
