//! Two writers, a drainer and a follower at the same time, in threads: for Miri, whose memory is weakly ordered.

use super::fixture::{client, Actor, Fixture, Gone, Same};
use crate::history::Found;
use crate::layout::{at, row, BUSY};
use crate::line::LogLine;
use hashmere_mem::HeapMem;
use std::thread;

const LINES: u32 = if cfg!(miri) { 5 } else { 400 };

fn text(number: u64, n: u32) -> String {
    format!("w{number}.{n}{}", "x".repeat(n as usize % 9))
}

fn write(actor: &Actor<HeapMem>, number: u64) {
    let mut cursor = actor.claim(number);
    for n in 0..LINES {
        let text = text(number, n);
        while !cursor.has_room(text.len() as u64) {
            cursor.look(&*actor.mem);
            thread::yield_now();
        }
        actor.append(&mut cursor, &text);
    }
    actor.core().release(&cursor);
}

fn drain(actor: &Actor<HeapMem>) {
    let core = actor.core();
    while core.get(at::LINES) < u64::from(2 * LINES) {
        let tail = |ring: u64| loop {
            let tail = core.get(core.geometry.row(ring) + row::TAIL);
            if tail & BUSY == 0 {
                return tail;
            }
            thread::yield_now();
        };
        core.merge(actor.now(), &Same, tail).unwrap();
        actor.deliver();
        thread::yield_now();
    }
}

/// Every line that is left is one that was logged, and each writer's come in order.
fn follow(actor: &Actor<HeapMem>) {
    let (mut position, mut record, mut next) = (0, LogLine::default(), [0, 0]);
    while next.iter().any(|next| *next < LINES) {
        match actor.core().read_line(position, &mut record).unwrap() {
            Found::Line(behind) => {
                let number = usize::from(record.text()[1] - b'0');
                let n = (next[number]..LINES).find(|n| record.text() == text(number as u64, *n).as_bytes());
                next[number] = n.expect("a line that was not logged, or too late") + 1;
                position = behind;
            }
            Found::Gone(oldest) => position = oldest,
            Found::End if actor.core().get(at::LINES) == u64::from(2 * LINES) => break,
            Found::End => thread::yield_now(),
        }
    }
}

#[test]
fn all_at_the_same_time() {
    let fixture = Fixture::new();
    let actor = || fixture.actor_on(fixture.heap.clone());
    thread::scope(|scope| {
        for number in 0..2 {
            let actor = actor();
            scope.spawn(move || write(&actor, number));
        }
        let (drainer, follower) = (actor(), actor());
        scope.spawn(move || drain(&drainer));
        scope.spawn(move || follow(&follower));
    });
    let lines = fixture.lines();
    for number in 0..2 {
        let came: Vec<_> = lines.iter().filter(|line| line.starts_with(&format!("w{number}."))).cloned().collect();
        assert_eq!(came, (0..LINES).map(|n| text(number, n)).collect::<Vec<_>>());
    }
    assert_eq!(lines.len(), 2 * LINES as usize);
    // A ring whose owner is gone outside any line is free afterwards.
    fixture.actor().core().recover_rings(client(9), &Gone(vec![client(0), client(1)])).unwrap();
    assert_eq!(fixture.core().halves(), 0);
}
