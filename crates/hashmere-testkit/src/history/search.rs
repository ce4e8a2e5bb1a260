//! The search for an order: Wing and Gong's, with Lowe's memory of where it has been.

use super::{step, Call, Operation, State};
use crate::rng::mix;
use std::collections::HashMap;
use std::fmt::Write;

/// The outcome of [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order.
    Linearizable,
    /// There is none.
    Violated {
        /// The operations around the point that the search could not get past.
        context: String,
    },
    /// The search was given up.
    Undecided,
}

/// Steps after which the search is given up: seconds of work.
const STEPS_MAX: u64 = 30_000_000;

/// Checks the operations on one key.
///
/// The operations with a reply are in a list in the order of their calls, each call with its return. The search
/// takes one operation after the other out of the list whose call is before the first return that is left.
/// Operations without a reply are tried last, because most of them are not needed to explain anything, and only where
/// they change something: one that did not is one that did not take place.
pub fn check(initial: State, operations: &[Operation]) -> Verdict {
    Search::new(operations).run(initial)
}

/// An operation to try next at some point: in the list of those with a reply, or one of those without.
#[derive(Clone, Copy)]
enum Candidate {
    /// Index of an event in the list.
    Event(usize),
    /// Index in `pending`.
    Pending(usize),
}

struct Event {
    operation: usize,
    is_call: bool,
    /// Event of the return that belongs to a call.
    partner: usize,
    next: usize,
    previous: usize,
}

/// What was taken, and what it was like before.
struct Taken {
    candidate: Candidate,
    state: State,
}

struct Search<'a> {
    operations: &'a [Operation],
    /// Event 0 is the head of the list, the last one its end.
    events: Vec<Event>,
    /// Operations without reply, in the order of their calls, and whether they are taken.
    pending: Vec<(usize, bool)>,
    /// Which operations without reply were taken on the ways to each place: a set of taken operations with a reply (as
    /// the exclusive or of their random numbers) and the state they led to. At 128 bits a false match is out of the
    /// question.
    ///
    /// A way that took all of those that another one took, and more, leads nowhere that the other does not: it has
    /// fewer left.
    seen: HashMap<(u128, State), Vec<Bits>>,
    taken_set: u128,
    taken_pending: Bits,
    deepest: (usize, usize),
}

impl<'a> Search<'a> {
    fn new(operations: &'a [Operation]) -> Search<'a> {
        let mut moments = Vec::new();
        let mut pending = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            if operation.reply.is_some() {
                // At equal times calls come before returns: the two overlap.
                moments.push((operation.called, 0, index));
                moments.push((operation.returned, 1, index));
            } else if operation.call != Call::Get {
                pending.push((index, false));
            }
        }
        moments.sort_unstable();
        pending.sort_unstable_by_key(|&(index, _)| operations[index].called);
        let end = moments.len() + 1;
        let mut calls = vec![0; operations.len()];
        let mut events: Vec<Event> = Vec::with_capacity(end + 1);
        events.push(Event { operation: 0, is_call: true, partner: 0, next: 1, previous: 0 });
        for (position, &(_, kind, operation)) in moments.iter().enumerate() {
            let this = position + 1;
            let mut partner = 0;
            if kind == 0 {
                calls[operation] = this;
            } else {
                partner = calls[operation];
                events[partner].partner = this;
            }
            events.push(Event { operation, is_call: kind == 0, partner, next: this + 1, previous: position });
        }
        events.push(Event { operation: 0, is_call: false, partner: 0, next: end, previous: end - 1 });
        let taken_pending = Bits::new(pending.len());
        Search { operations, events, pending, seen: HashMap::new(), taken_set: 0, taken_pending, deepest: (0, 1) }
    }

    fn run(&mut self, initial: State) -> Verdict {
        let end = self.events.len() - 1;
        let mut state = initial;
        let mut stack: Vec<Taken> = Vec::new();
        let mut candidate = Candidate::Event(self.events[0].next);
        for _ in 0..STEPS_MAX {
            let first = self.events[0].next;
            if first == end {
                return Verdict::Linearizable;
            }
            if stack.len() >= self.deepest.0 {
                self.deepest = (stack.len(), first);
            }
            match self.follow(candidate, state) {
                Follow::Take(after) => {
                    stack.push(Taken { candidate, state });
                    state = after;
                    candidate = Candidate::Event(self.events[0].next);
                }
                Follow::Next(next) => candidate = next,
                Follow::Back => {
                    let Some(last) = stack.pop() else {
                        return Verdict::Violated { context: self.context() };
                    };
                    self.put_back(last.candidate);
                    state = last.state;
                    candidate = self.after(last.candidate);
                }
            }
        }
        Verdict::Undecided
    }

    /// Takes the candidate if it fits and leads to something new.
    fn follow(&mut self, candidate: Candidate, state: State) -> Follow {
        let index = match candidate {
            Candidate::Event(event) if !self.events[event].is_call => return Follow::Next(Candidate::Pending(0)),
            Candidate::Event(event) => self.events[event].operation,
            Candidate::Pending(number) => {
                let Some(&(index, taken)) = self.pending.get(number) else { return Follow::Back };
                if self.operations[index].called > self.first_return() {
                    return Follow::Back;
                }
                if taken {
                    return Follow::Next(self.after(candidate));
                }
                index
            }
        };
        let operation = &self.operations[index];
        let changes_something = |after: &State| operation.reply.is_some() || *after != state;
        if let Some(after) = step(state, operation.call, operation.reply).filter(changes_something) {
            self.take(candidate);
            if self.is_new(after) {
                return Follow::Take(after);
            }
            self.put_back(candidate);
        }
        Follow::Next(self.after(candidate))
    }

    /// Whether no other way that left at least the same operations led here.
    fn is_new(&mut self, state: State) -> bool {
        let ways = self.seen.entry((self.taken_set, state)).or_default();
        if ways.iter().any(|way| way.is_part_of(&self.taken_pending)) {
            return false;
        }
        ways.retain(|way| !self.taken_pending.is_part_of(way));
        ways.push(self.taken_pending.clone());
        true
    }

    fn after(&self, candidate: Candidate) -> Candidate {
        match candidate {
            Candidate::Event(event) => Candidate::Event(self.events[event].next),
            Candidate::Pending(number) => Candidate::Pending(number + 1),
        }
    }

    /// Time of the first return that is left: whatever was called later cannot come next.
    fn first_return(&self) -> u64 {
        let mut event = self.events[0].next;
        while self.events[event].is_call {
            event = self.events[event].next;
        }
        self.operations[self.events[event].operation].returned
    }

    fn take(&mut self, candidate: Candidate) {
        match candidate {
            Candidate::Pending(number) => {
                self.pending[number].1 = true;
                self.taken_pending.flip(number);
            }
            Candidate::Event(call) => {
                self.unlink(call);
                self.unlink(self.events[call].partner);
                self.taken_set ^= number_of(self.events[call].operation);
            }
        }
    }

    fn put_back(&mut self, candidate: Candidate) {
        match candidate {
            Candidate::Pending(number) => {
                self.pending[number].1 = false;
                self.taken_pending.flip(number);
            }
            Candidate::Event(call) => {
                // In the reverse order of the removal, so that each finds its neighbours as it left them.
                self.relink(self.events[call].partner);
                self.relink(call);
                self.taken_set ^= number_of(self.events[call].operation);
            }
        }
    }

    fn unlink(&mut self, event: usize) {
        let (previous, next) = (self.events[event].previous, self.events[event].next);
        self.events[previous].next = next;
        self.events[next].previous = previous;
    }

    fn relink(&mut self, event: usize) {
        let (previous, next) = (self.events[event].previous, self.events[event].next);
        self.events[previous].next = event;
        self.events[next].previous = event;
    }

    /// The operations that were called around the furthest point reached.
    fn context(&self) -> String {
        let at = self.operations[self.events[self.deepest.1].operation].called;
        let mut near: Vec<&Operation> = self.operations.iter().collect();
        near.sort_by_key(|operation| operation.called);
        let middle = near.partition_point(|operation| operation.called < at);
        let mut text = String::new();
        for operation in &near[middle.saturating_sub(12)..near.len().min(middle + 8)] {
            let mark = if operation.called == at { ">" } else { " " };
            let Operation { worker, call, reply, version, called, returned, .. } = operation;
            let took = returned.saturating_sub(*called);
            let _ = writeln!(
                text,
                "{mark} worker {worker:3} at {called} for {took} ns: {call:?} -> {reply:?} version {version}"
            );
        }
        text
    }
}

/// A set of small numbers.
#[derive(Clone, Debug)]
struct Bits(Box<[u64]>);

impl Bits {
    fn new(most: usize) -> Bits {
        Bits(vec![0; most.div_ceil(64)].into())
    }

    fn flip(&mut self, number: usize) {
        self.0[number / 64] ^= 1 << (number % 64);
    }

    fn is_part_of(&self, other: &Bits) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| own & !other == 0)
    }
}

enum Follow {
    Take(State),
    Next(Candidate),
    Back,
}

fn number_of(operation: usize) -> u128 {
    let low = mix(operation as u64);
    u128::from(low) | u128::from(mix(low ^ 0x5bd1_e995)) << 64
}
